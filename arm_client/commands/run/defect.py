"""Child of ``hbrt run defects``: runs ``FUNCTION`` of ``FILE`` and writes what was found of it to ``FD``, as JSON."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

from arm_client.session import farewell
from arm_client.session.process import process


def main() -> None:
    """Run it, and leave the board, which then looks for what the program has left."""
    file, function, fd = sys.argv[1], sys.argv[2], int(sys.argv[3])
    os.set_inheritable(fd, False)
    sys.path.insert(0, str(Path(file).parent))
    try:
        runpy.run_path(file)[function]()
    finally:
        for session in process.take_all():
            session.close()
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            json.dump([one.as_dict() for one in farewell.found], out)


if __name__ == "__main__":
    main()
