"""A task's times on another machine's board, by the clock of this machine. Pure."""

from __future__ import annotations

from hbrt.mailbox.table import Answer


def by_local_clock(answer: Answer, ahead_ns: int, submitted_ns: int, now_ns: int) -> Answer:
    """A task's answer with its times by this machine's clock; a time of 0 stays 0.

    The difference of the clocks is known to half of a message's way there and back, which a busy machine makes long.
    The task ran between its submission and now, so all its times move together into that range.

    Args:
        answer: As the board wrote it, in nanoseconds of its monotonic clock.
        ahead_ns: By how much the board's clock is believed to be ahead of this machine's.
        submitted_ns: When this machine submitted the task.
        now_ns: When the end's message came.
    """
    times = [time_ns for time_ns in (answer.claim_ns, answer.start_ns, answer.done_ns) if time_ns]
    if times:
        ahead_ns = max(min(ahead_ns, min(times) - submitted_ns), max(times) - now_ns)

    def local(time_ns: int) -> int:
        return max(1, time_ns - ahead_ns) if time_ns else 0

    return answer._replace(
        claim_ns=local(answer.claim_ns), start_ns=local(answer.start_ns), done_ns=local(answer.done_ns)
    )
