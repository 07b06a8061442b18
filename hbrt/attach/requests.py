"""Control requests of an attached process: the grants of interrupted requests are given back.

An interrupt (Ctrl-C, a signal's handler that raises) may come at the entry of any function and after any call of one
in C, but in the main thread alone. So one call of C takes an item out of a socket or a list and stores it: two calls
could lose it. A handler may itself send a request inside another one, and may read the answer to the other one.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from hbrt.attach.question import UNDO, Question
from hbrt.board.descriptors import too_few
from hbrt.board.forked import notice
from hbrt.board.paths import socket_path
from hbrt.errors import RequestRefusedError
from hbrt.protocol import control as wire, zmtp
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.board.paths import BoardPaths

_READ_BYTES = 1 << 18
_NO_SIGNAL = (int(socket.MSG_NOSIGNAL),)  # a program may have SIGPIPE end it, when its daemon has gone
_LOOK_MS = 50  # a handler may have read the answer while its request slept
_SETTLE_SECONDS = 0.2  # how long an interrupted request waits for a grant to give back; later requests go on


class Attachment(Protocol):
    """The parts of a ``Link`` that requests use."""

    paths: BoardPaths
    lease: socket.socket
    client_id: int
    fault: int
    is_detaching: bool
    request_ms: int

    def lose(self) -> None:
        """Note that the daemon is gone."""

    def has_ended(self) -> bool:
        """Whether the lease has hung up."""

    def why_faulty(self) -> str:
        """Sentence for ``fault``."""


class Requests:
    """The requests of one attachment.

    Args:
        link: The attachment: its lease hangs up when the daemon has gone.
        token: Proves that a request comes from this lease.
    """

    def __init__(self, link: Attachment, token: bytes) -> None:
        self.spare_slots: list[int] = []  # granted to a request that was interrupted
        self._link: Attachment = weakref.proxy(link)  # no cycle: an unused link ends at once, with its memory
        self._token = token
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._open: dict[int, Question] = {}  # sent, and without an answer, or with one that was not taken
        self._socket: socket.socket | None = None
        self._out = bytearray()
        self._in: list[bytes] = []  # each removal makes a new list

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way: a finalizer that runs inside it must not send another."""
        return bool(self._open)

    def ask(self, question: Question, verb: str, args: dict[str, Any]) -> wire.ControlReply:
        """Send a request and wait for its answer.

        Raises:
            RequestRefusedError: the daemon does not answer, or is gone.
        """
        notice()
        number = next(self._numbers)
        question.verb = verb
        give_up_at = time.monotonic() + self._link.request_ms / 1000
        try:
            with self._lock:
                self._begin(number, question, args, give_up_at)
                is_answered = self._exchange(question, give_up_at)
            if not is_answered:
                self._refuse_unanswered(verb)
        except BaseException:
            question.is_left = True
            if question.is_begun and not self._link.fault:
                with self._lock, contextlib.suppress(RequestRefusedError):
                    self._exchange(question, time.monotonic() + _SETTLE_SECONDS)
            raise
        # Nothing is called from here on: no interrupt comes between the answer and the caller.
        del self._open[number]
        reply: wire.ControlReply = question.answer
        return reply

    def give_back(self, verb: str, phy_addr: int) -> None:
        """Undo a grant that reached no caller, without waiting for the answer: "free" or "unregister"."""
        notice()
        with self._lock:
            self._post(verb, {"phy": phy_addr})

    def tell(self, verb: str, args: dict[str, Any]) -> None:
        """Send a request without waiting for its answer, unless another thread's request is under way."""
        if self._lock.acquire(blocking=False):
            try:
                self._post(verb, args)
            finally:
                self._lock.release()

    def _post(self, verb: str, args: dict[str, Any]) -> None:
        """Send a request without waiting for its answer; under the lock."""
        with contextlib.suppress(RequestRefusedError):  # of a board that has gone
            frame = self._frame(next(self._numbers), verb, args)
            self._connect(time.monotonic() + _SETTLE_SECONDS)
            self._out.extend(frame)
            self._send()

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def abandon_in_child(self) -> None:
        """In a fork's child: close the copy of the parent's connection."""
        self._lock = threading.RLock()
        self.close()

    def _refuse_unanswered(self, verb: str) -> None:
        raise RequestRefusedError(
            Status.HB_DSP_TIMEOUT,
            f"The daemon did not answer {verb!r} within {self._link.request_ms // 1000} s; see 'hbrt log'.",
        )

    def _refuse_lost(self) -> NoReturn:
        self._link.lose()
        raise RequestRefusedError(self._link.fault, self._link.why_faulty())

    def _frame(self, number: int, verb: str, args: dict[str, Any]) -> bytes:
        request = wire.ControlRequest(number, verb, args, self._link.client_id, self._token)
        return zmtp.frame(wire.encode_request(request))

    def _begin(self, number: int, question: Question, args: dict[str, Any], give_up_at: float) -> None:
        if self._link.fault and not self._link.is_detaching:
            raise RequestRefusedError(self._link.fault, self._link.why_faulty())
        try:
            frame = self._frame(number, question.verb, args)
        except (ValueError, OverflowError) as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        self._connect(give_up_at)
        # No call between these lines: an interrupt comes after all of them.
        self._open[number] = question
        question.is_begun = True
        self._out.extend(frame)

    def _exchange(self, question: Question, give_up_at: float) -> bool:
        """Send and receive until the question is answered; False when the answer is late."""
        lease = self._link.lease
        while True:
            self._take_in()  # first: an interrupted request may have read all the bytes
            if len(self._open) > 1 or question.is_left:
                self._give_back_left()
            control = self._connect(give_up_at)
            self._send()
            if question.answer is not None:
                return True
            if time.monotonic() > give_up_at:
                return False
            poll = select.poll()
            poll.register(lease, select.POLLIN)
            if control is not None:
                poll.register(control, select.POLLIN | (select.POLLOUT if self._out else 0))
            ready = [fd for fd, _ in poll.poll(_LOOK_MS)]
            if control is not None and control.fileno() in ready:
                self._receive(control)
            elif lease.fileno() in ready:
                self._refuse_lost()

    # -- the stream; each step may be interrupted anywhere, and a handler's request may do the same step meanwhile

    def _connect(self, give_up_at: float) -> socket.socket | None:
        """The connection; None while the daemon hides its socket, as it does when it is short of descriptors.

        Raises:
            RequestRefusedError: the lease's daemon has gone, so that another one has answered, or will.
        """
        if self._socket is None:
            made = _dialled(socket_path(self._link.paths.control), give_up_at)
            if self._link.has_ended():
                if made is not None:
                    made.close()
                self._refuse_lost()
            if self._socket is None:
                self._socket = made
        return self._socket

    def _send(self) -> None:
        if self._out and self._socket is not None:
            taking_out = map(self._out.__delitem__, map(slice, map(self._socket.send, (self._out,), _NO_SIGNAL)))
            with contextlib.suppress(OSError):  # full, or gone, which the next poll shows
                deque(taking_out, 0)  # one call of C: sent bytes are no longer in the list

    def _receive(self, control: socket.socket) -> None:
        coming = map(control.recv, (_READ_BYTES,))
        try:
            self._in.extend(coming)  # one call of C: received bytes are in the list
        except BlockingIOError:
            return
        except OSError:
            self._hang_up(control)
            return
        if self._in and not self._in[-1]:
            self._hang_up(control)

    def _take_in(self) -> None:
        seen = self._in
        chunks = seen[:]
        if not chunks or zmtp.needed_bytes(chunks[0]) > sum(map(len, chunks)):
            return
        stream, used = b"".join(chunks), 0
        for message, end in zmtp.frames(stream):
            used = end
            if message is not None:
                self._note(wire.decode_reply(message))
        rest, count = stream[used:], len(chunks)
        if self._in is seen:  # else a handler's request has read the same bytes, and more
            self._in = [rest, *seen[count:]] if rest else seen[count:]

    def _hang_up(self, control: socket.socket) -> None:
        if self._socket is control:
            self._socket, self._in, self._out = None, [], bytearray()
        control.close()

    def _note(self, reply: wire.ControlReply) -> None:
        question = self._open.get(reply.id or min(self._open, default=0))
        if question is not None:
            question.answer = reply

    def _give_back_left(self) -> None:
        for number, question in list(self._open.items()):
            reply = question.answer
            if not question.is_left or reply is None:
                continue
            undo, slots = b"", []
            if not reply.status and question.verb in UNDO:
                undo = self._frame(next(self._numbers), UNDO[question.verb], {"phy": reply.data})
            elif not reply.status and question.verb == "slots":
                slots = reply.data
            if number in self._open:  # no call from here to those two lines
                del self._open[number]
                if slots:
                    self.spare_slots.extend(slots)
                elif undo:
                    self._out.extend(undo)


def _dialled(path: str, give_up_at: float) -> socket.socket | None:
    """A connection to a ZeroMQ socket, past the greetings; None when nothing accepts it now.

    Raises:
        RequestRefusedError: this process has no descriptor left.
    """
    try:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise too_few("the connection to the daemon", error) from None
    try:
        made.settimeout(max(give_up_at - time.monotonic(), 0.0))
        made.connect(path)
        made.sendall(zmtp.GREETING, *_NO_SIGNAL)
        left_bytes = len(zmtp.GREETING)
        while left_bytes and (got := made.recv(left_bytes)):  # a message before its end is refused
            left_bytes -= len(got)
        made.sendall(zmtp.READY, *_NO_SIGNAL)
        made.setblocking(False)
    except OSError:
        made.close()
        return None
    except BaseException:
        made.close()
        raise
    return made
