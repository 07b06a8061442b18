"""Which program has which board of a farm, and which one gets the next. Pure: no clock, no socket, no process.

Rules
    Requests of a pool are served in order of arrival. A request whose user already holds the maximum number of boards
    is skipped until that user returns one; it keeps its place. A returned board is not leased again until it is fresh.
"""

from __future__ import annotations

from typing import NamedTuple


class Request(NamedTuple):
    """A program that has a board, or waits for one.

    Attributes:
        program: Its name, with its process id.
        user: Its user.
        pool: The pool from which it requested a board.
        since: When the request arrived, by CLOCK_MONOTONIC in seconds.
    """

    program: str
    user: str
    pool: str
    since: float


class Grant(NamedTuple):
    """A board for a request."""

    who: bytes
    seat: int


class LeaseBook:
    """The seats, which may or may not have a board at the moment, and the requests.

    Args:
        pools: Seats of each pool.
        per_user: Maximum number of boards per user over all pools; 0 for no limit.
    """

    def __init__(self, pools: dict[str, list[int]], per_user: int = 0) -> None:
        self.pools = pools
        self._per_user = per_user
        self._free: set[int] = set()
        self.lessees: dict[int, bytes] = {}
        self.requests: dict[bytes, Request] = {}  # in order of arrival

    def ask(self, who: bytes, request: Request) -> None:
        """Queue a request."""
        self.requests[who] = request

    def count_of(self, user: str) -> int:
        """How many boards a user holds or is waiting for."""
        return sum(request.user == user for request in self.requests.values())

    def ready(self, seat: int) -> None:
        """A seat has a fresh board."""
        self._free.add(seat)

    def lost(self, seat: int) -> bytes | None:
        """Record that a seat's board is gone or was taken back; returns who held it."""
        self._free.discard(seat)
        who = self.lessees.pop(seat, None)
        if who is not None:
            del self.requests[who]
        return who

    def gone(self, who: bytes) -> int | None:
        """Record that a program is gone; returns the seat whose board it held."""
        if self.requests.pop(who, None) is None:
            return None
        seat = self.seat_of(who)
        if seat is not None:
            del self.lessees[seat]
        return seat

    def seat_of(self, who: bytes) -> int | None:
        """The seat whose board a program holds."""
        return next((seat for seat, lessee in self.lessees.items() if lessee == who), None)

    def grants(self) -> list[Grant]:
        """Give free boards to waiting programs; returns who got which."""
        granted = []
        for who, request in self._waiting():
            free = [seat for seat in self.pools[request.pool] if seat in self._free]
            if free and not self.is_at_limit(request.user):
                self._free.remove(free[0])
                self.lessees[free[0]] = who
                granted.append(Grant(who, free[0]))
        return granted

    def places(self) -> dict[bytes, int]:
        """The position of each waiting request in its pool's queue, from 1."""
        places: dict[bytes, int] = {}
        lengths = dict.fromkeys(self.pools, 0)
        for who, request in self._waiting():
            lengths[request.pool] += 1
            places[who] = lengths[request.pool]
        return places

    def is_at_limit(self, user: str) -> bool:
        """Whether a user holds the maximum number of boards."""
        held = sum(self.requests[who].user == user for who in self.lessees.values())
        return 0 < self._per_user <= held

    def why_waiting(self, who: bytes) -> str:
        """The reason a request is waiting, as part of a sentence."""
        request = self.requests[who]
        if self.is_at_limit(request.user):
            return f"{request.user} has {self._per_user} of its boards, the maximum per user"
        count = len(self.pools[request.pool])
        return f"{'its only board is' if count == 1 else f'all {count} boards are'} taken or being replaced"

    def _waiting(self) -> list[tuple[bytes, Request]]:
        having = set(self.lessees.values())
        return [(who, request) for who, request in self.requests.items() if who not in having]
