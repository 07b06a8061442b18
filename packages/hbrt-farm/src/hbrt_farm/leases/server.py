"""The server of a farm's leases: one thread that serves requests over TCP, and leases each program a board.

A connection is a lease: when it ends or its heartbeat stops, a fresh board replaces the old one. The program talks to
its board through the board's own relay, which admits only that program's key.
"""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import zmq

from dsp_server.gateway.connections import MAX_UNKNOWN_BYTES, Connection, is_given
from dsp_server.gateway.handler import bounded_reply
from dsp_server.gateway.server import ListenOptions, Server
from dsp_server.process.intake import source_fd
from hbrt.borders.printable import printable
from hbrt.errors import BoardError
from hbrt.protocol.control import ControlReply, MalformedMessageError
from hbrt.protocol.remote import BEAT_SECONDS, PLACE_SECONDS, PROGRAM_SAYS, RemoteFrame, decode, encode
from hbrt.remote.keys import CLIENTS, SERVER
from hbrt.status import Status
from hbrt_farm.leases.book import LeaseBook, Request
from hbrt_farm.leases.hosted_board import HostedBoard, RelayKeys
from hbrt_farm.leases.pools import Pool
from hbrt_farm.leases.seat import Event, Seat, State

MAX_REQUESTS = 256
MAX_USER_REQUESTS = 64
POLL_SECONDS = 0.2
END_SECONDS = 15.0
LAST_WORD_SECONDS = 0.5
REFUSED_SECONDS = 60.0  # a connection that is not admitted has ended by then (connections.py)
_NOBLOCK = int(zmq.NOBLOCK)


class Limits(NamedTuple):
    """The limits of a lease; 0 for none.

    Attributes:
        per_user: Boards per user at a time.
        idle_seconds: Time without a task on the board.
        lease_seconds: Total time of a lease.
    """

    per_user: int = 0
    idle_seconds: float = 0.0
    lease_seconds: float = 0.0


class LeaseServer(Server):
    """Serves the boards of a farm.

    Args:
        options: Address and keys to listen with; the boards' relays listen on the same host.
        pools: The first is for programs that name no pool.
        limits: Of leases.
        log: Writes a sentence.

    Raises:
        BoardError: it cannot listen there, or its keys cannot be read.
    """

    def __init__(self, options: ListenOptions, pools: list[Pool], limits: Limits, log: Callable[[str], None]) -> None:
        keys = _relay_keys(options)
        super().__init__(options, log)
        self._options, self._pools, self._limits = options, pools, limits
        self.address = f"farm://{self.endpoint.removeprefix('tcp://')}"
        self._known: dict[bytes, Connection] = {}
        self._keys: dict[bytes, bytes] = {}  # public key of each program that has one
        self._told: dict[
            bytes, tuple[tuple[int, str], float]
        ] = {}  # what a program was last told of its position, and when
        self._refused: dict[bytes, float] = {}  # refused: until when they may end their connections themselves
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.watch(self._bell, self._on_events)
        self._seats: list[Seat] = []
        rows: dict[str, list[int]] = {}
        for pool in pools:
            for _ in range(pool.boards):
                rows.setdefault(pool.name, []).append(len(self._seats))
                start = partial(HostedBoard, pool, options.host, keys)
                self._seats.append(Seat(len(self._seats), pool.name, start, limits.idle_seconds, self._tell))
        self._book = LeaseBook(rows, limits.per_user)

    def run(self) -> None:
        """Serve until ``stop`` is called."""
        next_beat = 0.0
        while not self.is_stopping:
            self._poll(POLL_SECONDS)
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_SECONDS
                self._beat()
            self._serve()

    def close(self) -> None:
        """Notify the programs and stop all boards."""
        for who in list(self._known):
            self._send(who, encode(RemoteFrame.GONE, int(Status.HB_DSP_RELAY_LOST), "The farm was stopped."))
        for seat in self._seats:
            seat.stop()
        deadline = time.monotonic() + END_SECONDS
        for seat in self._seats:
            seat.join(max(0.0, deadline - time.monotonic()))
        super().close()
        os.close(self._bell)

    # -- incoming messages

    def _on_message(self, identity: bytes, frame: zmq.Frame, *, is_more: bool) -> None:
        connection = self._known.get(identity)
        if connection is not None:
            connection.backlog.on_frame(len(frame))
        elif identity not in self._refused:
            self._on_first_frame(identity, frame, is_more=is_more)

    def _on_first_frame(self, who: bytes, frame: zmq.Frame, *, is_more: bool) -> None:
        """Take a request. A program sends nothing after this; its open connection is enough."""
        if is_more or not is_given(who):
            self._refuse(
                who,
                Status.HB_DSP_INVALID_ARGUMENT,
                "A message must be one frame; the farm identifies connections itself.",
            )
            return
        try:
            kind, fields = decode(frame.bytes, PROGRAM_SAYS)
            connection = self._connections.claim(who, source_fd(frame))
        except MalformedMessageError as error:
            self._refuse(who, Status.HB_DSP_INVALID_ARGUMENT, str(error))
            return
        except OSError as error:
            self._refuse(who, Status.HB_DSP_NOT_RUNNING, f"The farm cannot serve it now: {error.strerror}.")
            return
        if connection is None:
            return
        self._known[who] = connection
        if kind == RemoteFrame.QUEUE:
            self._send(who, encode(RemoteFrame.REPLY, 0, bounded_reply(ControlReply(0, 0, "", self.status()))))
        elif kind != RemoteFrame.LEASE:
            self._end(who, Status.HB_DSP_INVALID_ARGUMENT, f"A farm listens here: connect to it as {self.address}.")
        else:
            self._on_request(who, frame, connection, *fields)

    def _on_request(
        self, who: bytes, frame: zmq.Frame, connection: Connection, program: str, pid: int, user: str, pool: str
    ) -> None:
        pool = pool or self._pools[0].name
        if pool not in self._book.pools:
            names = ", ".join(self._book.pools)
            self._end(who, Status.HB_DSP_INVALID_ARGUMENT, printable(f"Unknown pool {pool!r}; the farm has {names}."))
            return
        if len(self._book.requests) >= MAX_REQUESTS:
            self._end(
                who, Status.HB_DSP_NOT_RUNNING, f"{MAX_REQUESTS} programs have or want its boards; try again later."
            )
            return
        if self._listener.has_keys:
            self._keys[who] = str(frame.get("User-Id")).encode()
            user = self._listener.name_of(self._keys[who]) or "?"
        name = printable(f"{program}:{pid}@{connection.peer.rpartition(':')[0]}")
        user = printable(user) or "?"
        if self._book.count_of(user) >= MAX_USER_REQUESTS:
            why = f"{user} has or wants {MAX_USER_REQUESTS} of its boards, the maximum per user; end some programs."
            self._end(who, Status.HB_DSP_NOT_RUNNING, why)
            return
        self._book.ask(who, Request(name, user, pool, time.monotonic()))

    def _tell(self, event: Event) -> None:
        """Handle an event from a seat's thread."""
        self._events.put(event)
        os.eventfd_write(self._bell, 1)

    def _on_events(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            seat = self._seats[event.seat]
            if event.life != seat.life:
                continue
            if event.state is State.FREE:
                self._book.ready(event.seat)
            else:
                if event.why:
                    self._log(f"Board {event.seat}: {event.why}")
                self._take_back(event.seat, event.why)
            seat.note(event)

    def _on_end(self, connection: Connection) -> None:
        """Handle a departed program: its board, if it held one, is replaced by a fresh one."""
        who = connection.identity
        del self._known[who]
        self._connections.release(connection)
        self._told.pop(who, None)
        self._keys.pop(who, None)
        seat = self._book.gone(who)
        if seat is not None:
            self._seats[seat].renew()

    # -- actions

    def _serve(self) -> None:
        """Assign the free boards, and send the waiting programs their positions."""
        for who, number in self._book.grants():
            seat, board = self._seats[number], self._seats[number].board
            try:
                if board is not None and who in self._keys:
                    board.admit(self._book.requests[who].user, self._public_key(who))
            except (BoardError, OSError) as error:
                self._log(f"Board {number} does not admit its program: {error}")
                board = None
            if board is None:  # it has ended this moment
                self._take_back(number, "It has ended.")
                seat.renew()
                continue
            seat.lease()
            self._told.pop(who, None)
            self._send(who, encode(RemoteFrame.GRANTED, board.port, board.name))
        now = time.monotonic()
        for who, place in self._book.places().items():
            known, at = self._told.get(who, ((0, ""), 0.0))
            told = (place, self._book.why_waiting(who))
            if told != known or now >= at + PLACE_SECONDS:
                self._told[who] = (told, now)
                self._send(who, encode(RemoteFrame.PLACE, *told))

    def _public_key(self, who: bytes) -> bytes:
        assert self._options.keys is not None  # noqa: S101 - only then does a program have a key
        return (self._options.keys / CLIENTS / f"{self._book.requests[who].user}.key").read_bytes()

    def _take_back(self, number: int, why: str) -> None:
        """Notify the program that holds a board, if any, that the board is taken back."""
        who = self._book.lost(number)
        if who is not None:
            self._end(who, Status.HB_DSP_BOARD_LOST, f"It took the board back. {why}")

    def _on_flood(self, connection: Connection) -> None:
        self._log(
            f"The farm closes a connection from {connection.peer}: more than {MAX_UNKNOWN_BYTES} bytes wait unread."
        )

    def _beat(self) -> None:
        self._pending.end_silent()
        self._end_floods(MAX_UNKNOWN_BYTES, BEAT_SECONDS)
        now = time.monotonic()
        for who, connection in list(self._known.items()):
            if not self._is_reachable(who):  # ZeroMQ has given it up, which the descriptor does not show
                self._on_end(connection)
            elif now >= self._refused.get(who, now + 1):
                self._connections.end(connection)
        self._refused = {who: until for who, until in self._refused.items() if who in self._known or now < until}
        most = self._limits.lease_seconds
        for seat in self._seats:
            if most and seat.state is State.LEASED and time.monotonic() - seat.since >= most:
                self._take_back(seat.number, f"It was leased for {most:g} s, the farm's --lease-timeout.")
                seat.renew()

    def status(self) -> dict[str, Any]:
        """The boards, who has them since when, and the queue; times in seconds since the epoch."""
        requests, lessees = self._book.requests, self._book.lessees
        to_unix_s = time.time() - time.monotonic()
        return {
            "address": self.address,
            "pools": [pool._asdict() for pool in self._pools],
            "limits": self._limits._asdict(),
            "boards": [
                {
                    "board": seat.number,
                    "pool": seat.pool,
                    "state": str(seat.state),
                    "since": seat.since + to_unix_s,
                    "user": requests[lessees[seat.number]].user if seat.number in lessees else None,
                    "program": requests[lessees[seat.number]].program if seat.number in lessees else None,
                    "name": seat.board.name if seat.board is not None else None,
                    "problem": seat.why or None,
                }
                for seat in self._seats
            ],
            "queue": [
                {
                    **requests[who]._asdict(),
                    "since": requests[who].since + to_unix_s,
                    "place": place,
                    "why": self._book.why_waiting(who),
                }
                for who, place in self._book.places().items()
            ],
        }

    # -- sending

    def _end(self, who: bytes, status: Status, why: str) -> None:
        """Refuse a program, or take its board back; it ends its connection, or this server does a little later."""
        self._send(who, encode(RemoteFrame.GONE, int(status), why))
        self._refused[who] = time.monotonic() + LAST_WORD_SECONDS

    def _refuse(self, who: bytes, status: Status, why: str) -> None:
        self._send(who, encode(RemoteFrame.REFUSED, int(status), why))
        self._refused[who] = time.monotonic() + REFUSED_SECONDS

    def _send(self, who: bytes, frame: bytes) -> None:
        with contextlib.suppress(
            zmq.ZMQError
        ):  # it is gone (the end of its connection will show that), or does not read
            self._socket.send_multipart((who, frame), _NOBLOCK)

    def _beat_frame(self) -> bytes:
        return encode(RemoteFrame.BEAT, b"")


def _relay_keys(options: ListenOptions) -> RelayKeys | None:
    """The keys of the boards' relays: the same as this server's.

    Raises:
        BoardError: they cannot be read.
    """
    if options.keys is None:
        return None
    try:
        return RelayKeys(*((options.keys / f"{SERVER}{end}").read_bytes() for end in (".key_secret", ".key")))
    except OSError as error:
        raise BoardError(f"The keys in {options.keys} cannot be read: {error.strerror}.") from None
