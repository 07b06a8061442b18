"""One record for every finding: the problem, its severity, and its places. Pure.

A place is one side of a mistake: the allocation and the free, the op and the caller. Its unknown parts are None.
Findings with equal fingerprints are the same mistake: the same kind at the same lines or, if no line is known, with the
same message.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple


class Severity(StrEnum):
    """Severity of a finding: an error makes results wrong, a warning costs resources or hides an error.

    Advice names a cost that a real board may have; it does not make a program fail.
    """

    ADVICE = "advice"
    WARNING = "warning"
    ERROR = "error"


class FindingKind(NamedTuple):
    """The properties that all findings of a kind share.

    Attributes:
        severity: Its severity.
        is_programs: Whether a program makes the mistake; otherwise it concerns the board or its image.
        is_reported_at_once: Whether the program that makes the mistake reports it itself, at once.
    """

    severity: Severity
    is_programs: bool = True
    is_reported_at_once: bool = False


KINDS: Final = {
    "bank-conflict": FindingKind(Severity.ADVICE),
    "claim-lock": FindingKind(Severity.ERROR, is_programs=False),
    "defect": FindingKind(Severity.ERROR, is_programs=False),
    "dma-busy": FindingKind(Severity.ERROR),
    "dma-early": FindingKind(Severity.ERROR),
    "dma-handle": FindingKind(Severity.ERROR),
    "dma-left": FindingKind(Severity.ERROR),
    "double-free": FindingKind(Severity.ERROR),
    "dsp-layout": FindingKind(Severity.ERROR),
    "endless-wait": FindingKind(Severity.ADVICE, is_reported_at_once=True),
    "hole": FindingKind(Severity.WARNING),
    "image": FindingKind(Severity.WARNING, is_programs=False),
    "injected": FindingKind(Severity.WARNING),
    "input-written": FindingKind(Severity.ERROR),
    "leak": FindingKind(Severity.WARNING),
    "left-mapped": FindingKind(Severity.WARNING),
    "missing-clean": FindingKind(Severity.ERROR, is_reported_at_once=True),
    "needless-flush": FindingKind(Severity.ADVICE, is_reported_at_once=True),
    "not-mapped": FindingKind(Severity.ERROR),
    "null-pointer": FindingKind(Severity.ERROR),
    "out-of-block": FindingKind(Severity.ERROR),
    "overrun": FindingKind(Severity.ERROR),
    "ping-blocks": FindingKind(Severity.WARNING),
    "priority-inversion": FindingKind(Severity.ADVICE),
    "recording-stopped": FindingKind(Severity.WARNING),
    "relay-died": FindingKind(Severity.WARNING, is_programs=False),
    "route-difference": FindingKind(Severity.ERROR, is_reported_at_once=True),
    "shared-block": FindingKind(Severity.ERROR, is_reported_at_once=True),
    "stale-read": FindingKind(Severity.ERROR, is_reported_at_once=True),
    "stalled-core": FindingKind(Severity.ERROR, is_programs=False),
    "stray-access": FindingKind(Severity.ERROR),
    "tcm-left": FindingKind(Severity.WARNING),
    "tile-alignment": FindingKind(Severity.ADVICE),
    "unclean-use": FindingKind(Severity.ERROR),
    "unwritten-read": FindingKind(Severity.ERROR),
    "use-after-free": FindingKind(Severity.ERROR),
    "virtual-address": FindingKind(Severity.ERROR),
    "write-after-free": FindingKind(Severity.ERROR),
}


_ADDRESSES: Final = frozenset({"phy_addr", "block"})
CALLED_FROM: Final = " (called from "
"""In the site of a place: precedes the lines of its callers."""


def lines_of(site: str) -> list[str]:
    """Return the lines of a site, each ``file:line``: its own first, then its callers'."""
    main, _, callers = site.partition(CALLED_FROM)
    directory, slash, _ = main.rpartition("/")
    found = [one for one in callers.removesuffix(")").split(", ") if one]
    return [main, *(one if "/" in one or one.startswith("<") else f"{directory}{slash}{one}" for one in found)]


def site_bytes(site: str, most: int) -> bytes:
    """Encode a site as UTF-8 of at most this many bytes; drops its outermost callers first, then its start."""
    raw = site.encode("utf-8", "replace")
    while len(raw) > most and CALLED_FROM.encode() in raw:
        shorter, comma, _ = raw.rpartition(b", ")
        raw = shorter + b")" if comma and CALLED_FROM.encode() in shorter else raw.partition(CALLED_FROM.encode())[0]
    return raw[-most:]


class Place(NamedTuple):
    """One side of a finding.

    Attributes:
        what: Its role: "allocated", "op", "submitted".
        site: ``file:line`` of the code, and under checks the lines of its callers; see ``lines_of``.
        client: Id of the program's lease.
        core: Index of the core.
        cmd: Command number.
        op: Name of the op.
        task: Handle of the task.
        phy_addr: First byte concerned.
        size_bytes: Number of bytes from there.
        block: Physical address of the block that contains them.
        block_bytes: Its size.
    """

    what: str
    site: str | None = None
    client: int | None = None
    core: int | None = None
    cmd: int | None = None
    op: str | None = None
    task: int | None = None
    phy_addr: int | None = None
    size_bytes: int | None = None
    block: int | None = None
    block_bytes: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return its known parts by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Finding(NamedTuple):
    """A mistake that was found.

    Attributes:
        kind: Of KINDS.
        text: The message, with values and a remedy.
        places: Its sides, the main one first.
        client: Id of the program that made the mistake; 0 if none did.
        times: Number of times it was found.
        time: Time of the last occurrence, in seconds since the epoch.
    """

    kind: str
    text: str
    places: tuple[Place, ...] = ()
    client: int = 0
    times: int = 1
    time: float = 0.0

    @property
    def severity(self) -> Severity:
        """Its severity."""
        return KINDS[self.kind].severity

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, equal for findings of the same mistake."""
        import hashlib  # loaded only by programs with a mistake

        sites = [(place.what, place.site, place.cmd) for place in self.places if place.site]
        raw = repr((self.kind, sites or self.text)).encode("utf-8", "replace")
        return hashlib.sha256(raw).hexdigest()[:16]

    @property
    def is_mistake(self) -> bool:
        """Whether it fails a program under HBRT_CHECK=fail: neither advice nor a fault that the program requested."""
        return self.severity is not Severity.ADVICE and self.kind != "injected"

    def again(self, later: Finding) -> Finding:
        """Merge this finding with a later occurrence: the later message, and the total count."""
        return later._replace(times=self.times + later.times)

    def as_dict(self) -> dict[str, Any]:
        """Return all its parts as plain data, as printed by ``hbrt status --json``."""
        return {
            "kind": self.kind,
            "text": self.text,
            "severity": str(self.severity),
            "count": self.times,
            "time": self.time,
            "client": self.client,
            "fingerprint": self.fingerprint,
            "places": [place.as_dict() for place in self.places],
        }


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return each mistake once, over all programs: its last message and its count; the latest one last."""
    known: dict[str, Finding] = {}
    for found in findings:
        before = known.pop(found.fingerprint, None)
        known[found.fingerprint] = found if before is None else before.again(found)
    return list(known.values())


def finding_of(data: dict[str, Any]) -> Finding:
    """Create a finding from plain data, as returned by ``Finding.as_dict``.

    Raises:
        ValueError: it is not a finding.
    """
    try:
        places = tuple(Place(**place) for place in data.get("places", ()))
        one = Finding(
            str(data["kind"]),
            str(data["text"]),
            places,
            int(data.get("client", 0)),
            int(data.get("count", 1)),
            float(data.get("time", 0.0)),
        )
        KINDS[one.kind]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{data!r:.200} is not a finding: {error!r}.") from None
    return one


def place_in_hex(place: dict[str, Any]) -> dict[str, Any]:
    """Return a place like ``Place.as_dict``, with addresses formatted as in messages: "0x8221c000"."""
    return {name: f"{value:#x}" if name in _ADDRESSES else value for name, value in place.items()}
