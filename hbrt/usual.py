"""How long the last call like this one took, so that who waits for it looks when it is about to end.

Looking from the start would burn a CPU for as long as the op runs, and a sleeper is woken 50 to 200 us late: its CPU
sleeps, too, and what it needs has left the caches. So a waiter sleeps until shortly before the end, as drivers of fast
disks do (hybrid polling), and looks around it.
"""

from __future__ import annotations

LEAST_NS = 200_000  # a shorter one ends while its waiter looks anyway
MOST_NS = 20_000_000  # beside a longer one, a late wake-up is nothing
LEAST_MARGIN_NS, MOST_MARGIN_NS = 150_000, 400_000
MOST_REMEMBERED = 256


def lookout(usual_ns: int) -> tuple[int, int]:
    """When to look for the end of what usually takes so long, in ns: how long after its start, and for how long."""
    margin_ns = min(max(usual_ns >> 3, LEAST_MARGIN_NS), MOST_MARGIN_NS)
    return max(usual_ns - margin_ns, 0), 2 * margin_ns


class Usual:
    """What calls took the last time, by what was asked: command, blocks and their sizes."""

    def __init__(self) -> None:
        self._took_ns: dict[bytes, int] = {}

    def of(self, call: bytes) -> int:
        """Nanoseconds that this call took the last time; 0 when that is not known, or not worth a lookout."""
        return self._took_ns.get(call, 0)

    def note(self, call: bytes, took_ns: int) -> None:
        """Remember what it took this time."""
        if not LEAST_NS <= took_ns <= MOST_NS:
            self._took_ns.pop(call, None)
            return
        if len(self._took_ns) >= MOST_REMEMBERED and call not in self._took_ns:
            self._took_ns.clear()
        self._took_ns[call] = took_ns
