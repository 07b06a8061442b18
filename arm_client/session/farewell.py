"""What a program is told when it leaves a board: the findings that are its own; and its exit code under HBRT_CHECK."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from hbrt import settings
from hbrt.errors import RequestRefusedError
from hbrt.findings.record import KINDS, Finding, Severity, finding_of
from hbrt.findings.text import line_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link

_FAILING = frozenset({"fail", "fail-fast"})

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
        for one in ours:
            if not (is_private or is_silent or KINDS[one.kind].is_told):
                import logging

                logging.getLogger("hbrt").warning("%s", line_of(one))


def write_sarif() -> None:
    """Write what was found into the file of HBRT_SARIF; also when nothing was: who reads it wants to know that."""
    name = settings.text("HBRT_SARIF").replace("{pid}", str(os.getpid()))
    if not name:
        return
    import json
    from pathlib import Path

    from hbrt.findings.sarif import sarif_of

    try:
        Path(name).write_text(json.dumps(sarif_of(found, str(Path.cwd())), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        import logging

        logging.getLogger("hbrt").warning(
            "The findings cannot be written to %s (HBRT_SARIF): %s. Name a file in a directory that can be written.",
            name,
            error.strerror,
        )


def end_with_exit_code() -> None:
    """End the process with exit code 1 when something was found and HBRT_CHECK=fail asks for that.

    For the last exit handler: the interpreter has no other way to change the code then.
    """
    mistakes = [one for one in found if one.severity is not Severity.ADVICE and one.kind != "injected"]
    if not mistakes or not settings.words("HBRT_CHECK") & _FAILING:
        return
    import logging

    logging.shutdown()
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream that is closed, or none
        count = "1 mistake was" if len(mistakes) == 1 else f"{len(mistakes)} mistakes were"
        sys.stderr.write(f"{count} found (HBRT_CHECK=fail), the last: {line_of(mistakes[-1])}\n")
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)
