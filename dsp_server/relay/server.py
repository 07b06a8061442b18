"""A relay: takes the tasks that many ARM processes send, and makes them READY in the slots that these lease.

One thread. It sleeps in the ZeroMQ socket for tasks and nowhere else, so that a task costs it one receive, a check
under the claim lock and perhaps a doorbell; see placing.py. A second thread sleeps on everything else (the socket for
talk, the lease, each process that is served, whatever is ``watch``ed) and sends the first one a message; see bell.py.

The relay has no part in how a task ends: the core rings the process, which reads its slot as in direct mode.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import zmq

from dsp_server.process.intake import Intake
from dsp_server.process.journal import Repeats
from dsp_server.relay.dispatch import Placed, Placer
from dsp_server.relay.lease_check import Vouched, Voucher
from dsp_server.relay.peers import Peer
from dsp_server.relay.waker import Bell
from hbrt.attach.link import Link
from hbrt.board.private_files import FILE_MODE
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.layout import CLIENT_PID, SLOT_COUNT
from hbrt.errors import RequestRefusedError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.frames import Message
from hbrt.protocol.relay import CLIENT_SAYS, MAX_FRAME_BYTES, SUBMIT, SUBMIT_HEAD, Kind, decode, encode
from hbrt.status import Status

BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0  # a process that said nothing for so long may have let its lease go without a word
MOST_UNREAD = 4096  # frames that wait for one process; it is let go when there are more
MOST_TALK = 4096  # messages of a process that wait, while it gets no answer
_QUEUED = Placed.QUEUED
# Plain integers: pyzmq's are members of enums, and this is the hot path.
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE = _NOBLOCK | int(zmq.SNDMORE)


class Relay:
    """A relay on a board.

    Args:
        link: Its attachment to the board.
        idle_seconds: It ends after so long without anybody to serve; 0 for never.
        say: Gets a sentence for the log.
    """

    def __init__(self, link: Link, idle_seconds: float, say: Callable[[str], None]) -> None:
        self.is_stopping = False
        self._link = link
        self._say = say
        self._idle_seconds = idle_seconds
        self._idle_since = time.monotonic()
        self._next_beat = 0.0
        self._malformed = Repeats()
        self._peers: dict[bytes, Peer] = {}
        self._by_ticket: dict[int, Peer] = {}
        self._placer = Placer(link, self._by_ticket, self._has_ended)
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = 500
        self._socket.maxmsgsize = MAX_FRAME_BYTES
        self._socket.sndhwm = MOST_UNREAD
        self._talk = Intake(self._socket, link.paths.relay_endpoint, MOST_TALK, say)
        self._socket.router_mandatory = 1
        self._socket.bind(link.paths.relay_endpoint)
        link.paths.relay.chmod(FILE_MODE)
        self._tasks = self._context.socket(zmq.PULL)
        self._tasks.maxmsgsize = MAX_FRAME_BYTES
        self._sent = Intake(self._tasks, link.paths.relay_tasks_endpoint, 2 * SLOT_COUNT, say)
        self._tasks.bind("inproc://bell")
        self._tasks.bind(link.paths.relay_tasks_endpoint)
        link.paths.relay_tasks.chmod(FILE_MODE)
        self._bell = Bell(self._context, "inproc://bell", BEAT_SECONDS)
        self._bell.watch(int(self._socket.getsockopt(zmq.FD)), self._listen)
        self._bell.watch(link.lease.fileno(), link.lose)
        self._voucher = Voucher(link)
        self._bell.watch(self._voucher.fd, self._on_vouched)
        self._on: dict[int, Callable[[Peer, list[Any]], None]] = {
            Kind.SUBMIT: lambda _, fields: self._take(SUBMIT_HEAD + fields[0]),
            Kind.PING: lambda peer, fields: self._send(peer, encode(Kind.PONG, fields[0])),
            Kind.BYE: lambda peer, _: self._forget(peer),
        }

    @property
    def peer_count(self) -> int:
        """Processes that are served now."""
        return len(self._peers)

    def run(self) -> None:
        """Serve until told to stop, the board has gone, or nobody came for long."""
        try:
            self._serve()
        except ClaimLockError as error:  # it was to end while it waited for the lock, or will never have it
            self._say(f"The relay ends. {error}")

    def _serve(self) -> None:
        recv, place, link = self._tasks.recv, self._placer.place, self._link
        while not self.is_stopping and not link.fault:
            raw = recv()
            if (placed := place(raw)) is not _QUEUED:
                self._on_not_queued(placed, raw)
                if raw != self._bell.message:  # maybe a flood
                    for raw in chain.from_iterable(self._sent.take_all()):
                        self._take(raw)
                # Whatever was sent to somebody may have taken the sign that something has come.
                self._listen()

    def stop(self) -> None:
        """Have ``run`` return soon; a signal handler may call it, when its wake-up descriptor is watched."""
        self.is_stopping = True

    def watch(self, fd: int, on_event: Callable[[], None]) -> None:
        """Have ``on_event()`` called while ``fd`` is readable, by the thread of ``run``."""
        self._bell.watch(fd, on_event)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        self._bell.unwatch(fd)

    def close(self) -> None:
        """Tell everybody, and go."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped; the next call starts a new one."
        for peer in list(self._peers.values()):
            self._send(peer, encode(Kind.GONE, int(status), why))
        for peer in list(self._peers.values()):
            self._forget(peer)
        self._bell.close()
        self._voucher.close()
        self._tasks.close(0)
        self._socket.close()
        self._context.term()

    def _has_ended(self) -> bool:
        """Whether it was told to stop, or the board has gone: asked where the second thread's word is not heard."""
        return self.is_stopping or self._link.is_lost()

    def _on_beat(self) -> None:
        """Once a second: look whether processes that say nothing are still clients; end when there is nobody."""
        now = time.monotonic()
        self._next_beat = now + BEAT_SECONDS
        for peer in self._peers.values():
            if peer.is_heard:
                peer.is_heard, peer.heard_at = False, now
        for peer in [peer for peer in self._peers.values() if now - peer.heard_at > SILENT_SECONDS]:
            peer.heard_at = now
            if self._lease_holder(peer.client) != peer.pid:
                self._forget(peer)
        if self._peers or self._voucher.is_busy or not self._idle_seconds:
            self._idle_since = now
        elif now - self._idle_since > self._idle_seconds:
            self._say(f"The relay ends: it has served nobody for {self._idle_seconds:g} s.")
            self.is_stopping = True

    # -- talking

    def _send(self, peer: Peer, raw: bytes) -> None:
        """Send, or let a process go that does not read what it is sent, or has gone."""
        try:
            self._socket.send(peer.identity, _SNDMORE)
            self._socket.send(raw, _NOBLOCK)
        except zmq.Again:
            self._say(f"Process {peer.pid} has not read {MOST_UNREAD} answers; the relay lets it go.")
            self._forget(peer)
        except zmq.ZMQError:
            self._forget(peer)  # it has closed its connection

    def _refuse(self, identity: bytes, status: int, why: str) -> None:
        peer, raw = self._peers.get(identity), encode(Kind.REFUSED, status, why)
        if peer is not None:
            self._send(peer, raw)
            return
        try:
            self._socket.send_multipart((identity, raw), zmq.NOBLOCK)
        except zmq.ZMQError:
            return  # it did not wait for its refusal

    def _refuse_malformed(self, identity: bytes, why: str) -> None:
        peer = self._peers.get(identity)
        who = f"process {peer.pid}" if peer else "a process that has not said hello"
        if (suffix := self._malformed.suffix(identity, time.monotonic())) is not None:
            self._say(f"The relay refused a malformed message of {who}: {why}{suffix}")
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)

    def _listen(self) -> None:
        """Take in all talk that has come."""
        while messages := self._talk.take_all():
            for identity, *frames in messages:
                if len(frames) == 1:
                    self._on_frame(identity, frames[0])
                else:
                    self._refuse_malformed(identity, "A message is one frame; more came.")

    def _on_frame(self, identity: bytes, raw: bytes) -> None:
        peer = self._peers.get(identity)
        try:
            message = decode(raw, CLIENT_SAYS)
        except MalformedMessageError as error:
            self._refuse_malformed(identity, str(error))
            return
        if message.kind == Kind.HELLO:
            self._on_hello(identity, message)
        elif peer is None:
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "The relay does not know this process; connect anew.")
        else:
            peer.is_heard = True
            self._on[message.kind](peer, message.fields)

    def _take(self, raw: bytes) -> None:
        if (placed := self._placer.place(raw)) is not _QUEUED:
            self._on_not_queued(placed, raw)

    def _lease_holder(self, client: int) -> int:
        """Process of a client, 0 for none: by the client table, since a daemon that hangs would not answer."""
        at = self._link.ddr.layout.client(client) + CLIENT_PID
        return int.from_bytes(self._link.ddr.map[at : at + 4], "little")

    def _on_hello(self, identity: bytes, message: Message) -> None:
        if not self._voucher.ask(identity, *message.fields):
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "Too many programs say hello to the relay; try again.")

    def _on_vouched(self) -> None:
        """The daemon has said who some are that said hello."""
        for vouched in self._voucher.answers():
            try:
                self._let_in(vouched)
            except RequestRefusedError as error:
                self._refuse(vouched.identity, error.status or Status.HB_DSP_RELAY_LOST, str(error))

    def _let_in(self, vouched: Vouched) -> None:
        if vouched.refusal is not None:
            raise vouched.refusal
        identity, client, pid, _ = vouched
        peer = Peer(identity, client, pid)
        for other in [other for other in self._peers.values() if other.client == client or other.identity == identity]:
            self._forget(other)  # it has connected anew
        self._peers[identity] = self._by_ticket[peer.ticket] = peer
        self._bell.watch(peer.pidfd, lambda: self._forget(peer))
        self._send(peer, encode(Kind.WELCOME, os.getpid(), peer.ticket))

    def _on_not_queued(self, placed: Placed, raw: bytes) -> None:
        """Say that a task was refused. What was taken back meanwhile needs no word; nonsense has nobody to hear it."""
        if raw == self._bell.message:
            self._bell.answer()
            if time.monotonic() >= self._next_beat:
                self._on_beat()
            return
        if placed is Placed.NONSENSE:
            self._on_nonsense(raw)
            return
        _, ticket, handle, *_ = SUBMIT.unpack(raw)
        peer = self._by_ticket.get(ticket)
        if peer is None:
            if (suffix := self._malformed.suffix(b"unknown", time.monotonic())) is not None:
                self._say(f"The relay was sent a task by a process that it does not know.{suffix}")
        elif placed is Placed.REFUSED:
            self._send(peer, encode(Kind.END, handle))
        elif placed is Placed.FOREIGN:
            why = f"Client {peer.client} sent a task in another client's name."
            self._refuse(peer.identity, Status.HB_DSP_PERMISSION, why)

    def _on_nonsense(self, raw: bytes) -> None:
        """What came where tasks come is not ``SUBMIT.pack``'s; another msgpack may write a task in other bytes."""
        try:
            kind, fields = decode(raw, CLIENT_SAYS)
        except MalformedMessageError as error:
            if (suffix := self._malformed.suffix(b"task", time.monotonic())) is not None:
                self._say(f"The relay refused a malformed task: {error}{suffix}")
            return
        if kind == Kind.SUBMIT:
            self._take(SUBMIT_HEAD + fields[0])
        else:
            self._say(f"The relay was sent {Kind(kind).name} where tasks come.")

    def _forget(self, peer: Peer) -> None:
        """A process has gone, or is let go; the daemon knows what becomes of its tasks."""
        if self._peers.get(peer.identity) is not peer:
            return
        del self._peers[peer.identity], self._by_ticket[peer.ticket]
        self._bell.unwatch(peer.pidfd)
        peer.close()
