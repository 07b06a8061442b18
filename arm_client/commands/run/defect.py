"""Child of ``hbrt run defects``: runs ``FUNCTION`` of ``FILE``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(sys.argv[1]).parent))
    runpy.run_path(sys.argv[1])[sys.argv[2]]()
