"""A relay: takes the tasks that many ARM processes send, and makes them READY in those processes' slots.

A single thread serves, and reads the programs' connections itself: a task costs one receive, a check under the claim
lock and perhaps a doorbell; see task_intake.py and dispatch.py. All other messages use a ZeroMQ socket.

The relay is not involved when a task ends: the core rings the process, which reads its slot as in direct mode.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import zmq

from dsp_server.process.event_loop import Loop
from dsp_server.process.intake import Intake
from dsp_server.process.journal import Repeats
from dsp_server.relay.dispatch import RelayDispatcher, Result
from dsp_server.relay.lease_check import LeaseVerifier, VerifiedLease
from dsp_server.relay.peers import Peer
from dsp_server.relay.task_intake import TaskIntake
from hbrt.attach.link import LocalLink
from hbrt.board.private_files import FILE_MODE
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.layout import CLIENT_PID
from hbrt.errors import RequestRefusedError
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.frames import Message
from hbrt.protocol.relay import CLIENT_SAYS, MAX_FRAME_BYTES, SUBMIT, SUBMIT_HEAD, RelayFrame, decode, encode
from hbrt.status import Status
from hbrt.trace.switch import Recorder

BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0  # a process that is silent for this long may have lost its lease
MAX_UNREAD = 4096  # frames queued for one process; beyond this it is disconnected
MAX_CONTROL = 4096  # messages of a process that wait while it gets no answer
_QUEUED = Result.QUEUED
# Plain ints: pyzmq's are enum members, and this is the hot path.
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE = _NOBLOCK | int(zmq.SNDMORE)


class Relay:
    """A relay on a board.

    Args:
        link: Its attachment to the board.
        idle_seconds: The relay ends after this time without clients; 0 for never.
        log: Writes a sentence to the log.
    """

    def __init__(self, link: LocalLink, idle_seconds: float, log: Callable[[str], None]) -> None:
        self.is_stopping = False
        self._link = link
        self._log = log
        self._idle_seconds = idle_seconds
        self._idle_since = time.monotonic()
        self._malformed = Repeats()
        self._peers: dict[bytes, Peer] = {}
        self._by_ticket: dict[int, Peer] = {}
        self._dispatcher = RelayDispatcher(link, self._by_ticket, self._has_ended)
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = 500
        self._socket.maxmsgsize = MAX_FRAME_BYTES
        self._socket.sndhwm = MAX_UNREAD
        self._control = Intake(self._socket, link.paths.relay_endpoint, MAX_CONTROL, log)
        self._socket.router_mandatory = 1
        self._socket.bind(link.paths.relay_endpoint)
        link.paths.relay.chmod(FILE_MODE)
        self._loop = Loop()
        self._tasks = TaskIntake(self._loop, link.paths.relay_tasks, self._on_task, self._is_stream, log)
        self._loop.watch(int(self._socket.getsockopt(zmq.FD)), self._receive_control)
        self._loop.watch(link.lease.fileno(), link.lose, is_read=False)  # answers are read elsewhere
        self._verifier = LeaseVerifier(link)
        self._loop.watch(self._verifier.fd, self._on_verified)
        self._recorder = Recorder(link.trace, "relay", "")
        self._on: dict[int, Callable[[Peer, list[Any]], object]] = {
            RelayFrame.SUBMIT: lambda _, fields: self._on_task(SUBMIT_HEAD + fields[0]),
            RelayFrame.PING: lambda peer, fields: self._send(peer, encode(RelayFrame.PONG, fields[0])),
            RelayFrame.BYE: lambda peer, _: self._discard(peer),
        }

    def run(self) -> None:
        """Serve until ``stop``, the end of the board, or the idle limit."""
        try:
            self._serve()
        except ClaimLockError as error:  # stopped while waiting for the lock, or the lock cannot be had
            self._log(f"The relay ends. {error}")

    def _serve(self) -> None:
        loop, link = self._loop, self._link
        self._on_beat()
        while not self.is_stopping and not link.fault:
            loop.step()
            self._tasks.work_off()
            if self._is_stream():
                os.sched_yield()  # on one CPU the program sends more meanwhile, and no message has to wake the relay

    def _is_stream(self) -> bool:
        return self._dispatcher.is_stream

    def stop(self) -> None:
        """Make ``run`` return soon; a signal handler may call it if its wake-up descriptor is watched."""
        self.is_stopping = True

    def watch(self, fd: int, on_event: Callable[[], None]) -> None:
        """Call ``on_event()`` in the thread of ``run`` whenever ``fd`` is readable."""
        self._loop.watch(fd, on_event)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        self._loop.unwatch(fd)

    def close(self) -> None:
        """Tell every process why, and close."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped; the next call starts a new one."
        for peer in list(self._peers.values()):
            self._send(peer, encode(RelayFrame.GONE, int(status), why))
        for peer in list(self._peers.values()):
            self._discard(peer)
        self._loop.close()
        self._tasks.close()
        self._verifier.close()
        self._socket.close()
        self._context.term()

    def _has_ended(self) -> bool:
        """Whether the relay is stopping or the board has ended; for waits outside the loop."""
        self._tasks.read_ahead()
        return self.is_stopping or self._link.is_lost()

    def _on_beat(self) -> None:
        """Once a second, check that silent processes are still clients; end at the idle limit."""
        now = time.monotonic()
        self._loop.later(BEAT_SECONDS, self._on_beat)
        self._follow_trace()
        for peer in self._peers.values():
            if peer.was_active:
                peer.was_active, peer.active_at = False, now
        for peer in [peer for peer in self._peers.values() if now - peer.active_at > SILENT_SECONDS]:
            peer.active_at = now
            if self._lease_holder(peer.client) != peer.pid:
                self._discard(peer)
        if self._peers or self._verifier.is_busy or not self._idle_seconds:
            self._idle_since = now
        elif now - self._idle_since > self._idle_seconds:
            self._log(f"The relay ends: it has had no clients for {self._idle_seconds:g} s.")
            self.is_stopping = True
        self._receive_control()  # a send may have consumed the socket's event for a message

    def _follow_trace(self) -> None:
        if self._recorder.look():
            self._dispatcher.trace = self._recorder.ring

    # -- sending and receiving

    def _send(self, peer: Peer, raw: bytes) -> None:
        """Send a frame; disconnect the process if it does not read or is gone."""
        try:
            self._socket.send(peer.identity, _SNDMORE)
            self._socket.send(raw, _NOBLOCK)
        except zmq.Again:
            self._log(f"Process {peer.pid} has not read {MAX_UNREAD} answers; the relay disconnects it.")
            self._discard(peer)
        except zmq.ZMQError:
            self._discard(peer)  # the process has closed its connection

    def _refuse(self, identity: bytes, status: int, why: str) -> None:
        peer, raw = self._peers.get(identity), encode(RelayFrame.REFUSED, status, why)
        if peer is not None:
            self._send(peer, raw)
            return
        try:
            self._socket.send_multipart((identity, raw), zmq.NOBLOCK)
        except zmq.ZMQError:
            return  # the process did not wait to be refused

    def _refuse_malformed(self, identity: bytes, why: str) -> None:
        peer = self._peers.get(identity)
        who = f"process {peer.pid}" if peer else "a process that has not sent a hello"
        if (suffix := self._malformed.suffix(identity, time.monotonic())) is not None:
            self._log(f"The relay refused a malformed message from {who}: {why}{suffix}")
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)

    def _receive_control(self) -> None:
        """Receive all control messages."""
        while messages := self._control.take_all():
            for identity, *frames in messages:
                if len(frames) == 1:
                    self._on_frame(identity, frames[0])
                else:
                    self._refuse_malformed(identity, "A message must be one frame; got more.")

    def _on_frame(self, identity: bytes, raw: bytes) -> None:
        peer = self._peers.get(identity)
        try:
            message = decode(raw, CLIENT_SAYS)
        except MalformedMessageError as error:
            self._refuse_malformed(identity, str(error))
            return
        if message.kind == RelayFrame.HELLO:
            self._on_hello(identity, message)
        elif peer is None:
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "The relay does not know this process; connect again.")
        else:
            peer.was_active = True
            self._on[message.kind](peer, message.fields)

    def _lease_holder(self, client: int) -> int:
        """Process of a client, 0 for none; read from the client table, since a hung daemon would not answer."""
        at = self._link.ddr.layout.client(client) + CLIENT_PID
        return int.from_bytes(self._link.ddr.map[at : at + 4], "little")

    def _on_hello(self, identity: bytes, message: Message) -> None:
        if not self._verifier.verify_lease(identity, *message.fields):
            self._refuse(identity, Status.HB_DSP_RELAY_LOST, "Too many programs are connecting; try again.")

    def _on_verified(self) -> None:
        """Admit or refuse the processes whose leases have been verified."""
        for verified in self._verifier.results():
            try:
                self._admit(verified)
            except RequestRefusedError as error:
                self._refuse(verified.identity, error.status or Status.HB_DSP_RELAY_LOST, str(error))
        self._receive_control()  # as after a beat

    def _admit(self, verified: VerifiedLease) -> None:
        if verified.refusal is not None:
            raise verified.refusal
        identity, client, pid, _ = verified
        peer = Peer(identity, client, pid)
        for other in [other for other in self._peers.values() if other.client == client or other.identity == identity]:
            self._discard(other)  # the process has reconnected
        self._peers[identity] = self._by_ticket[peer.ticket] = peer
        self._loop.watch(peer.pidfd, lambda: self._discard(peer))
        self._send(peer, encode(RelayFrame.WELCOME, os.getpid(), peer.ticket))

    def _on_task(self, raw: bytes) -> bool:
        """Queue a task; False if the sender is not a program of this relay."""
        result = self._dispatcher.dispatch(raw)
        return result is _QUEUED or self._on_not_queued(result, raw)

    def _on_not_queued(self, result: Result, raw: bytes) -> bool:
        """Report a refused task. Stale ones need no report; malformed ones are logged."""
        if result is Result.MALFORMED:
            return self._on_malformed_task(raw)
        _, ticket, handle, *_ = SUBMIT.unpack(raw)
        peer = self._by_ticket.get(ticket)
        if peer is None:
            if (suffix := self._malformed.suffix(b"unknown", time.monotonic())) is not None:
                self._log(f"The relay received a task from an unknown process.{suffix}")
            return False
        if result is Result.REFUSED:
            self._send(peer, encode(RelayFrame.END, handle))
        elif result is Result.FOREIGN:
            why = f"Client {peer.client} sent a task in another client's name."
            self._refuse(peer.identity, Status.HB_DSP_PERMISSION, why)
        self._receive_control()  # as after a beat
        return True

    def _on_malformed_task(self, raw: bytes) -> bool:
        """Decode a frame that ``SUBMIT.pack`` did not make: another msgpack may encode a task differently."""
        try:
            kind, fields = decode(raw, CLIENT_SAYS)
        except MalformedMessageError as error:
            if (suffix := self._malformed.suffix(b"task", time.monotonic())) is not None:
                self._log(f"The relay refused a malformed task: {error}{suffix}")
            return False
        if kind == RelayFrame.SUBMIT:
            return self._on_task(SUBMIT_HEAD + fields[0])
        if (suffix := self._malformed.suffix(b"kind", time.monotonic())) is not None:
            self._log(f"The relay received {RelayFrame(kind).name} on the socket for tasks.{suffix}")
        return False

    def _discard(self, peer: Peer) -> None:
        """Stop serving a process; the daemon handles its tasks when its lease ends."""
        if self._peers.get(peer.identity) is not peer:
            return
        del self._peers[peer.identity], self._by_ticket[peer.ticket]
        self._loop.unwatch(peer.pidfd)
        peer.close()
