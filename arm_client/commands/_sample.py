"""Run one sample program and hand its result over: ``python -m arm_client.commands._sample FILE FD``.

A process of its own for each sample: one that crashes is that sample's failure and nobody else's. What the sample
prints goes where it always goes; the dictionary that its ``run()`` returns goes to the descriptor, as JSON.
"""

from __future__ import annotations

import json
import os
import runpy
import sys


def main() -> int:
    """Run ``FILE``, write to ``FD``."""
    file, fd = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(fd, False)
    sys.argv = [file]
    run = runpy.run_path(file).get("run")
    if not callable(run):
        print(f"{file} has no run(); a sample returns its result from one.", file=sys.stderr)
        return 1
    result = run()
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(result, out, default=float)  # numpy's numbers are no JSON
    return 0


if __name__ == "__main__":
    sys.exit(main())
