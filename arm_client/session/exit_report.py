"""The report at program exit: the program's own findings on the boards it used, and its exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from hbrt.board.run_record import begun, is_failing, joined
from hbrt.errors import RequestRefusedError
from hbrt.findings.record import KINDS, Finding, finding_of
from hbrt.findings.text import counted, line_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.board.run_record import FirstProcess

_WAIT_SECONDS = 2.0
"""How long the end of a run waits for boards that still have one of its processes, which outlives the first."""

found: list[Finding] = []
"""Findings about this process's mistakes, on all boards that it has left."""


def report_findings(link: Link, *, is_private: bool, is_silent: bool) -> None:
    """Have the board check for leaks of this process, and report its findings.

    Args:
        link: This process's attachment, which is about to close; it no longer owns anything on the board.
        is_private: Whether the board belongs to this process. If so, it has already reported its findings, and those
            without a program belong to this process, too.
        is_silent: Whether another process reports them.
    """
    with contextlib.suppress(RequestRefusedError):  # the board is gone, or does not answer in time
        ours = [finding_of(one) for one in link.request("leave")]
        ours = [one for one in ours if is_private or one.client]
        found.extend(ours)
        if not link.knows_run and (run := joined()) is not None:
            with contextlib.closing(run):
                run.add(ours)
        for one in ours:
            if not (is_private or is_silent or KINDS[one.kind].is_reported_at_once):
                from arm_client.cabi.say import tell

                tell(one)


def end_run(run: FirstProcess | None) -> list[Finding]:
    """Add this process's findings to the record of its run; returns the findings that decide its exit code.

    Those are its own or, in the first process of a run, those of all its processes.

    Args:
        run: The run that this process started.
    """
    run = run or begun()  # the program may have changed the settings
    if run is None:
        return found
    run.wait(_WAIT_SECONDS)
    known = {one.fingerprint for one in run.findings}
    run.add(one for one in found if one.fingerprint not in known)  # the board has died, or is elsewhere
    return end_record(run)


def end_record(run: FirstProcess) -> list[Finding]:
    """Write the file of HBRT_SARIF for the last time; returns all findings of the run."""
    try:
        run.write_sarif()
    except OSError as error:
        from arm_client.cabi.say import warn

        warn(
            "Cannot write findings to %s (HBRT_SARIF): %s. Name a file in a writable directory.",
            error.filename,
            error.strerror,
        )
    return run.end()


def has_failed(findings: list[Finding]) -> bool:
    """Return whether findings fail the program under HBRT_CHECK=fail; prints that, too."""
    mistakes = [one for one in findings if one.is_mistake]
    if not mistakes or not is_failing():
        return False
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed or None
        count = f"{counted(len(mistakes), 'mistake')} {'was' if len(mistakes) == 1 else 'were'}"
        sys.stderr.write(f"{count} found (HBRT_CHECK=fail), the last: {line_of(mistakes[-1])}\n")
    return True


def end_with_exit_code(findings: list[Finding]) -> None:
    """End the process with exit code 1 when ``has_failed``.

    For the last exit handler, where the interpreter has no other way to change the code.
    """
    if not has_failed(findings):
        return
    import logging

    logging.shutdown()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)
