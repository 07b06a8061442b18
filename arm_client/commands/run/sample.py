"""Run one sample program and report its result; ``sys.argv`` is ``FILE ANSWER OPTIONS``.

Each sample has its own process, so that a crash fails that sample alone. Its output goes to the usual streams. The
values of its calls and the comparison of its result go to the file ANSWER, as JSON. OPTIONS is a JSON object: arguments
of ``main()`` by name; those that ``main()`` does not have are ignored.

The output of a program with ``REPORTS = True`` is shown, as is that of a program with models.

A core loads an op's libraries at the op's first call. So a program with few calls runs twice, and again while it is
slow, since each run may use a core that has not loaded them. The time of the fastest run counts.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import sys
import traceback
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from arm_client.commands.run.calls import Calls
from arm_client.commands.run.references import verdict_of
from hbrt.borders.traces import beyond

FEW_CALLS, MIN_RUNS, MAX_RUNS, LOADING_US = 10, 2, 4, 50_000
# The samples' sentence on a failed call of a C name.
_CALL_FAILED = re.compile(r"hb\w+ returned (-?[0-9]+):")


def main() -> int:
    """Run ``FILE`` with the ``OPTIONS`` that it takes, write to ``ANSWER``; return the exit code."""
    file, where, options = Path(sys.argv[0]), Path(sys.argv[1]), json.loads(sys.argv[2])
    sys.argv = [str(file)]
    calls = Calls()
    try:
        calls.watch(file.read_text(encoding="utf-8"))
        answer = _run(file, options, calls)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a sample raises
        os.environ["HBRT_CHECK"] = "tell"  # it fails for this error, whatever it leaves behind
        _hand_over(where, calls.document() | _status_in(error) | {"problem": _print(error)})
        return 1
    _hand_over(where, answer)
    return 0


def _run(file: Path, options: dict[str, Any], calls: Calls) -> dict[str, Any]:
    names = runpy.run_path(str(file))
    run = names.get("main")
    if not callable(run):
        sys.exit(f"{file} has no main(), which every sample needs.")
    known = inspect.signature(run).parameters
    given = {name: value for name, value in options.items() if name in known}
    result = run(**given)
    answer = {"has_report": names.get("REPORTS", calls.has_models), **calls.document()}
    runs = 1
    while (
        not names.get("REPORTS")
        and calls.count <= FEW_CALLS
        and (runs < MIN_RUNS or (runs < MAX_RUNS and _is_slow(answer)))
    ):
        calls.restart()
        with redirect_stdout(StringIO()):
            result = run(**given)
        answer = min(answer, {**answer, **calls.document()}, key=lambda known: known.get("host_time_us", 0))
        runs += 1
    verdict = verdict_of(file.parent.name, file.stem, result, SimpleNamespace(**names), given)
    if verdict is None:
        return answer | {"passed": True}
    return answer | {"max_error": verdict.max_error, "passed": verdict.passed, **verdict.more}


def _is_slow(answer: dict[str, Any]) -> bool:
    return bool(answer.get("host_time_us", 0) > LOADING_US)


def _print(error: BaseException) -> str:
    """Print a program's error message, or its traceback from its own first line, to stderr; returns its exit."""
    if isinstance(error, SystemExit):
        sentence = error.code if isinstance(error.code, str) else f"It exited with code {error.code}."
        print(sentence, file=sys.stderr)
        return sentence.rstrip().rpartition("\n")[2]
    traceback.print_exception(error.with_traceback(beyond(error, lambda frame: frame.f_code.co_filename == __file__)))
    return "".join(traceback.format_exception_only(error)).rstrip().rpartition("\n")[2]


def _hand_over(where: Path, result: Any) -> None:
    with where.open("w", encoding="utf-8") as out:
        json.dump(result, out, default=float)  # numpy's numbers are no JSON


def _status_in(error: BaseException) -> dict[str, int]:
    """Status of the call that failed, where the error has it."""
    from arm_client.errors import HbrtError

    if isinstance(error, HbrtError):
        return {"status": error.status}
    said = _CALL_FAILED.match(str(error))
    return {"status": int(said[1])} if said else {}
