"""How long similar calls took, so that a waiter polls when its call is about to end (hybrid polling).

Polling from the start would burn a CPU for as long as the op runs. A sleeper wakes 50 to 200 us late: its CPU sleeps
too, and its data has left the caches. So a waiter sleeps until shortly before the end and polls around it, as
drivers of fast disks do.

The time of a call varies. A poll window that opens after the end is of no use, and one that opens early costs a little
of a CPU. So the expected time follows shorter calls at once and longer ones slowly.
"""

from __future__ import annotations

MIN_NS = 200_000  # a shorter call ends while its waiter polls anyway
MAX_NS = 20_000_000  # for a longer call, a late wake-up does not matter
MIN_MARGIN_NS, MAX_MARGIN_NS = 150_000, 400_000
FOLLOW_SHIFT = 2  # of how much longer a call took, a quarter counts
MAX_REMEMBERED = 256


def poll_window(expected_ns: int) -> tuple[int, int]:
    """The poll window of a call of an expected duration, in ns: its start after that of the call, and its length."""
    margin_ns = min(max(expected_ns >> 3, MIN_MARGIN_NS), MAX_MARGIN_NS)
    return max(expected_ns - margin_ns, 0), 3 * margin_ns


class CompletionTimes:
    """The durations of calls, by command, blocks and their sizes."""

    def __init__(self) -> None:
        self._took_ns: dict[bytes, int] = {}

    def of(self, call: bytes) -> int:
        """Nanoseconds that this call takes; 0 when that is not known, or not worth a poll window."""
        return self._took_ns.get(call, 0)

    def note(self, call: bytes, took_ns: int) -> None:
        """Note the duration of this call."""
        if not MIN_NS <= took_ns <= MAX_NS:
            self._took_ns.pop(call, None)
            return
        if len(self._took_ns) >= MAX_REMEMBERED and call not in self._took_ns:
            self._took_ns.clear()
        expected_ns = self._took_ns.get(call, took_ns)
        self._took_ns[call] = min(took_ns, expected_ns + (took_ns - expected_ns >> FOLLOW_SHIFT))
