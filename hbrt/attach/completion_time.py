"""How long calls like this one took, so that who waits for it looks when it is about to end.

Looking from the start would burn a CPU for as long as the op runs, and a sleeper is woken 50 to 200 us late: its CPU
sleeps, too, and what it needs has left the caches. So a waiter sleeps until shortly before the end, as drivers of fast
disks do (hybrid polling), and looks around it.

What a call takes varies. A lookout that begins after the end is of no use, and one that begins early costs a little of
a CPU: so what counts as usual follows shorter calls at once and longer ones slowly.
"""

from __future__ import annotations

LEAST_NS = 200_000  # a shorter one ends while its waiter looks anyway
MOST_NS = 20_000_000  # beside a longer one, a late wake-up is nothing
LEAST_MARGIN_NS, MOST_MARGIN_NS = 150_000, 400_000
FOLLOW_SHIFT = 2  # of how much longer a call took, a quarter counts
MOST_REMEMBERED = 256


def lookout(usual_ns: int) -> tuple[int, int]:
    """When to look for the end of what usually takes so long, in ns: how long after its start, and for how long."""
    margin_ns = min(max(usual_ns >> 3, LEAST_MARGIN_NS), MOST_MARGIN_NS)
    return max(usual_ns - margin_ns, 0), 3 * margin_ns


class Usual:
    """What calls take when they are quick, by what is asked: command, blocks and their sizes."""

    def __init__(self) -> None:
        self._took_ns: dict[bytes, int] = {}

    def of(self, call: bytes) -> int:
        """Nanoseconds that this call takes; 0 when that is not known, or not worth a lookout."""
        return self._took_ns.get(call, 0)

    def note(self, call: bytes, took_ns: int) -> None:
        """Remember what it took this time."""
        if not LEAST_NS <= took_ns <= MOST_NS:
            self._took_ns.pop(call, None)
            return
        if len(self._took_ns) >= MOST_REMEMBERED and call not in self._took_ns:
            self._took_ns.clear()
        usual_ns = self._took_ns.get(call, took_ns)
        self._took_ns[call] = min(took_ns, usual_ns + (took_ns - usual_ns >> FOLLOW_SHIFT))
