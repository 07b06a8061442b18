"""The virAddr that a refused call left unset: using it faults, and a message names the call."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi.call_site import call_site
from arm_client.memory import fault_sentence
from hbrt.findings.record import Finding, Place
from hbrt.findings.text import stderr_line_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link

NULL_BYTES = 1 << 16  # no mapping starts below this (vm.mmap_min_addr): such an address is NULL plus an offset


class _Refusal(NamedTuple):
    call: str
    at: str
    reason: str
    link: weakref.ref[Link] | None  # a detached board is not kept alive


_last: list[_Refusal] = []


def note_refusal(call: str, sentence: str, link: Link | None) -> None:
    """Record a call that failed to fill an hbSysMem; ``link``: the board's, or None."""
    reason = sentence.rpartition("\n")[2]  # only the error line of a traceback
    _last[:] = [_Refusal(call, call_site(), reason, None if link is None else weakref.ref(link))]
    fault_sentence.install(_null_use)


def _null_use(address: int) -> str:
    """Return the message for a fault at NULL; empty for any other fault."""
    if address >= NULL_BYTES or not _last:
        return ""
    refusal, site = _last[0], call_site()
    text = (
        f"{site}: access to address {address:#x}, a NULL pointer. {refusal.call} at {refusal.at} was refused: "
        f"{refusal.reason} Check the status of a call before using its result."
    )
    places = Place("used", site), Place("refused", refusal.at)
    link = refusal.link() if refusal.link is not None else None
    if link is None:
        return stderr_line_of(Finding("null-pointer", text, places))
    return fault_sentence.note(link, "null-pointer", text, *places)
