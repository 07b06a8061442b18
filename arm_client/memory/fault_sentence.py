"""Prints an explanation before a process dies of SIGSEGV after touching device memory out of its reach."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from hbrt.ddr.faults import on_fault
from hbrt.findings.record import Finding
from hbrt.findings.text import stderr_line_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.findings.record import Place

_NOTE_MS = 2000
_PIPE = {signal.SIGPIPE}
_tellers: list[Callable[[int], str]] = []


def install(teller: Callable[[int], str]) -> None:
    """Print ``teller``'s explanation, if any, at each fault; adding it again changes nothing."""
    if teller not in _tellers:
        _tellers.append(teller)
    on_fault(_tell)


def note(link: Link, kind: str, text: str, *places: Place) -> str:
    """Have the board record what ends this process as a finding; returns the line for standard error."""
    if not link.fault:
        link.request_ms = _NOTE_MS
        link.find(kind, text, *places)  # if the board cannot record it, the line on standard error remains
    return stderr_line_of(Finding(kind, text))


def _tell(address: int, _is_write: bool | None) -> bool:  # noqa: FBT001 - as hbrt.ddr.faults calls it
    sentence = next((found for teller in _tellers if (found := teller(address))), "")
    if sentence:
        # Standard error may have no reader. The process must die of the fault, not of SIGPIPE.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PIPE)
        with contextlib.suppress(OSError):
            sys.stderr.flush()
            os.write(2, f"{sentence}\n".encode())
        if not _PIPE & before:
            signal.sigtimedwait(_PIPE, 0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PIPE)
    return False
