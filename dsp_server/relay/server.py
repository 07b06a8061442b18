"""A relay: takes task descriptors from many ARM processes, puts them into slots of its own, answers when they end.

One thread. It sleeps on one epoll: on the ZeroMQ socket, on its own doorbell, which the cores ring, on the lease, and
on each process that it serves. Bytes stay in shared memory: a slot says whose memory its task uses (``client``) and who
is rung (``owner``, the relay).

The board gives one client at most 1024 slots. What finds none waits here, in the order in which cores would take it.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import zmq

from dsp_server.relay.peers import MOST_TASKS, Carried, Peer
from hbrt.layout import SLOT_COUNT, SLOT_RECORD_BYTES
from hbrt.link import Link
from hbrt.mailbox import ANSWER, ANSWER_OFFSET, FIRST_END, State, shorten
from hbrt.refusal import RequestRefusedError
from hbrt.relay_wire import CLIENT_SAYS, MAX_FRAME_BYTES, TASK_REQUEST, Kind, Message, decode, encode, encode_end
from hbrt.status import Status
from hbrt.tasks import Tasks
from hbrt.wire import MalformedMessageError

BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0  # a process that said nothing for so long may have let its lease go without a word
MOST_QUESTIONS = 16  # a beat, to the daemon, which answer before anything else goes on
MOST_UNREAD = 4096  # frames that wait for one process; it is let go when there are more
_DONE = int(FIRST_END)
# Plain integers: pyzmq's are members of enums, and this is the hot path.
_EVENTS, _RCVMORE, _POLLIN = int(zmq.EVENTS), int(zmq.RCVMORE), int(zmq.POLLIN)
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
        self._tasks = Tasks(link, spins=False)
        self._map, self._states, self._records = link.ddr.map, link.ddr.layout.states, link.ddr.layout.records
        self._peers: dict[bytes, Peer] = {}
        self._carried: dict[int, Carried] = {}  # by the offset of their slot's state
        self._waiting: list[tuple[tuple[int, int, int], Carried]] = []
        self._arrivals = 0
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.linger = 500
        self._socket.maxmsgsize = MAX_FRAME_BYTES
        self._socket.sndhwm = self._socket.rcvhwm = MOST_UNREAD
        self._socket.router_mandatory = 1
        self._socket.bind(link.paths.relay_endpoint)
        self._get, self._recv = self._socket.getsockopt, self._socket.recv
        self._socket_fd = int(self._socket.getsockopt(zmq.FD))
        self._tasks.look_with(self._socket_fd, self._take_one)
        self._on: dict[int, Callable[[Peer, list[Any]], None]] = {
            Kind.SUBMIT: self._on_submit,
            Kind.CANCEL: self._on_cancel,
            Kind.ASK: self._on_ask,
            Kind.DROP: self._on_drop,
            Kind.PING: lambda peer, fields: self._send(peer, encode(Kind.PONG, fields[0])),
            Kind.BYE: lambda peer, _: self._forget(peer),
        }

    @property
    def peer_count(self) -> int:
        """Processes that are served now."""
        return len(self._peers)

    def run(self) -> None:
        """Serve until told to stop, the board has gone, or nobody came for long."""
        while True:
            is_woken = self._tasks.sleep_until(self._has_ended, BEAT_SECONDS * 1000)
            if self.is_stopping or (self._link.fault and not is_woken):
                return
            self._collect()
            if time.monotonic() >= self._next_beat:
                self._on_beat()

    def stop(self) -> None:
        """Have ``run`` return soon; a signal handler may call it."""
        self.is_stopping = True

    def watch(self, fd: int, on_event: Callable[[], None]) -> None:
        """Have ``on_event()`` called while ``fd`` is readable."""
        self._tasks.watch(fd, on_event)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        self._tasks.unwatch(fd)

    def close(self) -> None:
        """Cancel what is queued, tell everybody, and go."""
        status = self._link.fault or Status.HB_DSP_RELAY_LOST
        why = self._link.why_faulty() if self._link.fault else "The relay was stopped; the next call starts a new one."
        if self._link.fault:
            self._collect()  # what the daemon settled before it went
        for peer in list(self._peers.values()):
            self._send(peer, encode(Kind.GONE, int(status), why))
        for peer in list(self._peers.values()):
            self._forget(peer)
        self._tasks.unwatch(self._socket_fd)
        self._socket.close()
        self._context.term()
        self._tasks.close()

    # -- the loop

    def _has_ended(self) -> bool:
        mm = self._map
        for at in self._carried:
            if mm[at] >= _DONE:
                return True
        return self.is_stopping

    def _take_one(self) -> bool:
        """Take in one message; False when none has come."""
        if not self._get(_EVENTS) & _POLLIN:  # type: ignore[operator]
            return False
        identity = self._recv(_NOBLOCK)
        raw = self._recv(_NOBLOCK)
        if self._get(_RCVMORE):
            while self._get(_RCVMORE):
                self._recv(_NOBLOCK)
            self._refuse_malformed(identity, "A message is one frame; more came.")
        else:
            self._on_frame(identity, raw)
        return True

    def _collect(self) -> None:
        """Answer what has ended."""
        mm = self._map
        ended = [at for at in self._carried if mm[at] >= _DONE]
        for at in ended:
            carried = self._carried.pop(at, None)
            if carried is None:
                continue  # its process went while another answer was sent
            record = self._records + carried.slot * SLOT_RECORD_BYTES + ANSWER_OFFSET
            answer, state = mm[record : record + ANSWER.size], mm[at]
            text = b"" if state == _DONE else shorten(self._tasks.text(carried.handle))
            peer, number = carried.peer, carried.number
            self._tasks.release(carried.handle)
            peer.tasks.pop(number, None)
            self._send(peer, encode_end(number, state, answer, text))
        if ended and self._waiting:
            self._fill()

    def _fill(self) -> None:
        """Put what waits into slots, the best first, while there are some."""
        while self._waiting and self._place(self._waiting[0][1]):
            heappop(self._waiting)

    def _on_beat(self) -> None:
        """Once a second: ask the daemon about processes that say nothing, and end when there is nobody."""
        now = time.monotonic()
        self._next_beat = now + BEAT_SECONDS
        for peer in self._peers.values():
            if peer.is_heard:
                peer.is_heard, peer.heard_at = False, now
        silent = (peer for peer in self._peers.values() if now - peer.heard_at > SILENT_SECONDS)
        for peer in list(itertools.islice(silent, MOST_QUESTIONS)):
            peer.heard_at = now
            try:
                self._vouch(peer.client, *peer.proof)
            except RequestRefusedError as error:
                if error.status == Status.HB_DSP_PERMISSION:
                    self._forget(peer)
        if self._peers or not self._idle_seconds:
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
        try:
            self._socket.send_multipart((identity, encode(Kind.REFUSED, status, why)), zmq.NOBLOCK)
        except zmq.ZMQError:
            return  # it did not wait for its refusal

    def _refuse_malformed(self, identity: bytes, why: str) -> None:
        peer = self._peers.get(identity)
        who = f"process {peer.pid}" if peer else "a process that has not said hello"
        self._say(f"The relay refused a malformed message of {who}: {why}")
        self._refuse(identity, Status.HB_DSP_INVALID_ARGUMENT, why)

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

    def _vouch(self, client: int, nonce: str, proof: str) -> int:
        """Process of the client that holds the lease which ``proof`` shows."""
        pid: int = self._link.request("vouch", peer=client, nonce=nonce, proof=proof)["pid"]
        return pid

    def _on_hello(self, identity: bytes, message: Message) -> None:
        client, nonce, proof = message.fields
        try:
            peer = Peer(identity, client, self._vouch(client, nonce, proof), (nonce, proof))
        except RequestRefusedError as error:
            self._refuse(identity, error.status or Status.HB_DSP_RELAY_LOST, str(error))
            return
        for other in [other for other in self._peers.values() if other.client == client or other.identity == identity]:
            self._forget(other)  # it has connected anew
        self._peers[identity] = peer
        self._tasks.watch(peer.pidfd, lambda: self._forget(peer))
        self._send(peer, encode(Kind.WELCOME, os.getpid()))

    # -- tasks

    def _on_submit(self, peer: Peer, fields: list[Any]) -> None:
        request = TASK_REQUEST.unpack(fields[0])
        number = request[0]
        carried = Carried(peer, number, request)
        if number in peer.tasks:
            self._refuse(peer.identity, Status.HB_DSP_INVALID_ARGUMENT, f"The task {number:#x} has been submitted.")
        elif len(peer.tasks) >= MOST_TASKS:
            self._fail(
                carried,
                Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
                f"The relay carries {MOST_TASKS} tasks of this process that have not ended, which is the most.",
            )
        else:
            peer.tasks[number] = carried
            if self._waiting or not self._place(carried):
                self._queue(carried)
                self._fill()

    def _queue(self, carried: Carried) -> None:
        custom_id, priority = carried.request[2], carried.request[4]
        self._arrivals += 1
        heappush(self._waiting, ((-priority, custom_id, self._arrivals), carried))

    def _place(self, carried: Carried) -> bool:
        """Put a task into a slot, or end it when it cannot be one; False when there is no slot."""
        if carried.peer.tasks.get(carried.number) is not carried:
            return True  # let go while it waited
        _, _, custom_id, cmd, priority, core_mask, _, _, in_phy, in_bytes, out_phy, out_bytes = carried.request
        handle = self._tasks.submit(
            cmd, priority, core_mask, custom_id, in_phy, in_bytes, out_phy, out_bytes, carried.peer.client
        )
        if handle > 0:
            carried.handle, carried.slot = handle, handle & SLOT_COUNT - 1
            self._carried[self._states + carried.slot] = carried
            return True
        if handle == Status.HB_DSP_TASK_NUM_EXCEED_LIMIT and self._carried:
            return False
        self._fail(carried, handle, self._tasks.why())
        return True

    def _fail(self, carried: Carried, status: int, why: str) -> None:
        now = time.monotonic_ns()
        state = State.CANCELLED if status == Status.HB_DSP_TASK_CANCELLED else State.FAILED
        text = shorten(why)
        answer = ANSWER.pack(-1, status, len(text), 0, 0, 0, now, 0)
        carried.peer.tasks.pop(carried.number, None)
        self._send(carried.peer, encode_end(carried.number, state, answer, text))

    def _on_cancel(self, peer: Peer, fields: list[Any]) -> None:
        number, task = fields
        carried = peer.tasks.get(task)
        if carried is not None:
            if carried.handle:
                self._tasks.cancel(carried.handle)
                self._collect()
            else:
                self._fail(carried, Status.HB_DSP_TASK_CANCELLED, "The task was cancelled before a core claimed it.")
        self._on_ask(peer, [number, task])

    def _on_ask(self, peer: Peer, fields: list[Any]) -> None:
        number, task = fields
        carried = peer.tasks.get(task)
        state = State.EMPTY if carried is None else State.READY
        if carried is not None and carried.handle:
            self._collect()
            carried = peer.tasks.get(task)
            state = (self._tasks.state(carried.handle) or State.EMPTY) if carried is not None else State.EMPTY
        self._send(peer, encode(Kind.STATE, number, task, int(state)))

    def _on_drop(self, peer: Peer, fields: list[Any]) -> None:
        number, task = fields
        carried = peer.tasks.pop(task, None)
        if carried is not None:
            self._drop(carried)
        self._send(peer, encode(Kind.STATE, number, task, int(State.EMPTY)))

    def _drop(self, carried: Carried) -> None:
        """Cancel a queued task; let a running one finish and drop its result."""
        if carried.handle:
            del self._carried[self._states + carried.slot]
            self._tasks.release(carried.handle)

    def _forget(self, peer: Peer) -> None:
        """A process has gone, or is let go: its tasks with it."""
        if self._peers.get(peer.identity) is not peer:
            return
        del self._peers[peer.identity]
        self._tasks.unwatch(peer.pidfd)
        peer.close()
        tasks, peer.tasks = peer.tasks, {}
        for carried in tasks.values():
            self._drop(carried)
