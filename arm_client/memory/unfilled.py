"""The virAddr that a refused call did not fill: a use of it faults, and a sentence names the call."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi.call_site import call_site
from arm_client.memory import fault_sentence
from hbrt.findings.record import Finding, Place
from hbrt.findings.text import stderr_line_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link

NULL_BYTES = 1 << 16  # no mapping begins below (vm.mmap_min_addr): such an address is NULL and an offset


class _Refusal(NamedTuple):
    call: str
    at: str
    reason: str
    link: weakref.ref[Link] | None  # a board that was left is not kept


_last: list[_Refusal] = []


def note_refusal(call: str, sentence: str, link: Link | None) -> None:
    """Remember a call that was to fill an hbSysMem, and did not; ``link``: the board's, None without one."""
    reason = sentence.rpartition("\n")[2]  # of a traceback the error
    _last[:] = [_Refusal(call, call_site(), reason, None if link is None else weakref.ref(link))]
    fault_sentence.install(_null_use)


def _null_use(address: int) -> str:
    """Sentence for a fault at NULL; empty for another one."""
    if address >= NULL_BYTES or not _last:
        return ""
    refusal, site = _last[0], call_site()
    text = (
        f"{site}: a use of address {address:#x}, a NULL pointer. {refusal.call} at {refusal.at} was refused: "
        f"{refusal.reason} Check the status of a call before using its result."
    )
    places = Place("used", site), Place("refused", refusal.at)
    link = refusal.link() if refusal.link is not None else None
    if link is None:
        return stderr_line_of(Finding("null-pointer", text, places))
    return fault_sentence.note(link, "null-pointer", text, *places)
