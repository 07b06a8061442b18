"""Run one sample program and hand its result over: ``python -m arm_client.commands._sample FILE FD OPTIONS``.

A process of its own for each sample: one that crashes is that sample's failure and nobody else's. What the sample
prints goes where it always goes; the dictionary that its ``run()`` returns goes to the descriptor, as JSON, and so does
what is known of the call when it raises. OPTIONS is a JSON object: arguments of ``run()`` by name, of which a sample
gets those that it has.

A call that took long may have been its core's first of the kind, which loads OpenCV or numba. So it is made once more,
and the second time is what is said.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import sys
import traceback
from typing import Any

LOADING_US = 50_000
# How samples say that a call of the C names failed.
_CALL_FAILED = re.compile(r"hb\w+ returned (-?[0-9]+):")


def main() -> int:
    """Run ``FILE`` with what it takes of ``OPTIONS``, write to ``FD``."""
    file, fd, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    os.set_inheritable(fd, False)
    sys.argv = [file]
    run = runpy.run_path(file).get("run")
    if not callable(run):
        print(f"{file} has no run(); a sample returns its result from one.", file=sys.stderr)
        return 1
    known = inspect.signature(run).parameters
    given = {name: value for name, value in options.items() if name in known}
    try:
        result = run(**given)
        if isinstance(result, dict) and result.get("passed") and result.get("host_time_us", 0) > LOADING_US:
            result = run(**given)
    except Exception as error:  # noqa: BLE001 - whatever a sample raises; the trace begins with its own lines
        trace = error.__traceback__
        traceback.print_exception(error.with_traceback(trace and trace.tb_next))
        _hand_over(fd, _known_of(error))
        return 1
    _hand_over(fd, result)
    return 0


def _hand_over(fd: int, result: Any) -> None:
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(result, out, default=float)  # numpy's numbers are no JSON


def _known_of(error: Exception) -> dict[str, int]:
    """Status of the call that failed, and command and core that the sample had written into its control structure."""
    from arm_client import hbDSPRpcCtrlParam
    from arm_client.errors import HbrtError

    known: dict[str, int] = {}
    if isinstance(error, HbrtError):
        known["status"] = error.status
    elif said := _CALL_FAILED.match(str(error)):
        known["status"] = int(said[1])
    for frame, _line in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, hbDSPRpcCtrlParam):
                known |= {"command": value.rpcCmd, "core": value.dspCoreId}
    return known


if __name__ == "__main__":
    sys.exit(main())
