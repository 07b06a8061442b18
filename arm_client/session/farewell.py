"""What a program is told when it leaves a board: the findings that are its own; and its exit code under HBRT_CHECK."""

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
"""For boards that have a process of the run still, such as one that outlives the first process."""

found: list[Finding] = []
"""Every finding of this process's mistakes, of all boards that it has left."""


def leave(link: Link, *, is_private: bool, is_silent: bool) -> None:
    """Have the board look for what this process leaves on it, and say what it found meanwhile.

    Args:
        link: This process's attachment, which is about to close; it owns nothing on the board any more.
        is_private: Whether the board belongs to this process: it has said its findings, and those of nobody are ours.
        is_silent: Whether somebody else says them.
    """
    with contextlib.suppress(RequestRefusedError):  # the board is gone, or does not answer in time
        ours = [finding_of(one) for one in link.request("leave")]
        ours = [one for one in ours if is_private or one.client]
        found.extend(ours)
        if not link.knows_run and (run := joined()) is not None:
            with contextlib.closing(run):
                run.add(ours)
        for one in ours:
            if not (is_private or is_silent or KINDS[one.kind].is_told):
                from arm_client.cabi.say import tell

                tell(one)


def end_run(run: FirstProcess | None) -> list[Finding]:
    """Have the run of this process know what was found; returns the findings that its exit code is for.

    Those are its own, and of the first process of a run those of all its processes.

    Args:
        run: The run that this process has begun.
    """
    run = run or begun()  # a setting that the program made itself comes late
    if run is None:
        return found
    run.wait(_WAIT_SECONDS)
    known = {one.fingerprint for one in run.findings}
    run.add(one for one in found if one.fingerprint not in known)  # of a board that has died, or is elsewhere
    return end_record(run)


def end_record(run: FirstProcess) -> list[Finding]:
    """Write the file of HBRT_SARIF for the last time; returns all that was found in the run."""
    try:
        run.write_sarif()
    except OSError as error:
        from arm_client.cabi.say import warn

        warn(
            "The findings cannot be written to %s (HBRT_SARIF): %s. Name a file in a directory that can be written.",
            error.filename,
            error.strerror,
        )
    return run.end()


def has_failed(findings: list[Finding]) -> bool:
    """Whether a program whose settings ask for that is to fail for what was found; says it then."""
    mistakes = [one for one in findings if one.is_mistake]
    if not mistakes or not is_failing():
        return False
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream that is closed, or none
        count = f"{counted(len(mistakes), 'mistake')} {'was' if len(mistakes) == 1 else 'were'}"
        sys.stderr.write(f"{count} found (HBRT_CHECK=fail), the last: {line_of(mistakes[-1])}\n")
    return True


def end_with_exit_code(findings: list[Finding]) -> None:
    """End the process with exit code 1 when something was found and HBRT_CHECK=fail asks for that.

    For the last exit handler: the interpreter has no other way to change the code then.
    """
    if not has_failed(findings):
        return
    import logging

    logging.shutdown()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)
