"""Control requests of an attached process, over its lease's connection: native/mailbox/exchange.c sends and receives.

An interrupt (Ctrl-C, or a signal handler that raises) may come at the entry of any function and after any C call, but
only in the main thread. An interrupted request is sent completely or not at all, and its answer stays in C until taken;
whatever it was granted is returned.
"""

from __future__ import annotations

import functools
import itertools
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from hbrt.attach.question import UNDO, Question
from hbrt.board.forked import notice
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.native import GONE, INTERRUPTED, TIMEOUT, native
from hbrt.protocol import control as wire
from hbrt.status import Status

if TYPE_CHECKING:
    import socket

_SETTLE_SECONDS = 0.2  # how long an interrupted request waits for a grant to undo; later requests continue
_NOBODY = 0  # maximum number of requests without a waiting caller


class Attachment(Protocol):
    """The parts of a ``Link`` that requests use."""

    lease: socket.socket
    fault: int
    is_detaching: bool
    request_ms: int

    def lose(self) -> None:
        """Record that the daemon is gone."""

    def why_faulty(self) -> str:
        """Message for ``fault``."""

    def note_request(self, start_ns: int, verb: str) -> None:
        """See ``Link.note_request``."""


class Requests:
    """The requests of one attachment.

    Args:
        link: The attachment, with a connected lease.
    """

    def __init__(self, link: Attachment) -> None:
        self._link: Attachment = weakref.proxy(link)  # no cycle, so an unused link is freed at once, with its memory
        self._numbers = itertools.count(1)
        self._open: dict[int, Question] = {}  # unanswered, or with an answer not taken
        module = native()
        self._ffi, self._lib = module.ffi, module.lib
        lease = module.lib.hbrt_lease_new(link.lease.fileno())
        if not lease:
            raise MemoryError("Cannot allocate memory for the requests of an attachment.")
        self._lease = module.ffi.gc(lease, module.lib.hbrt_lease_free)

    @property
    def is_asking(self) -> bool:
        """Whether a request is in progress: a finalizer that runs inside it must not send another."""
        return bool(self._open)

    @property
    def is_open(self) -> bool:
        """Whether the connection's descriptor is still this attachment's own."""
        return bool(self._lib.hbrt_lease_is_open(self._lease))

    def ask(self, question: Question, verb: str, args: dict[str, Any]) -> wire.ControlReply:
        """Send a request and wait for its answer.

        Raises:
            RequestRefusedError: the daemon does not answer, or is gone.
        """
        start_ns = time.monotonic_ns()
        notice()
        self._refuse_if_faulty()
        number = next(self._numbers)
        try:
            request = _frame(number, verb, args)
        except (ValueError, OverflowError) as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        question.sent = self._ffi.new("int *")
        question.undo = question.undo or self._undo_of(verb)
        self._open[number] = question
        try:
            if len(self._open) > 1:
                self._undo_left()
            self._exchange(number, question, request, self._link.request_ms / 1000)
            self._link.note_request(start_ns, verb)
            self._refuse_unanswered(question, verb)
        except BaseException:
            question.is_left = True
            if question.sent[0] and not self._link.fault:
                self._exchange(number, question, request, _SETTLE_SECONDS)
                self._undo_left()
            elif not question.sent[0]:
                self._open.pop(number, None)
            raise
        # Call nothing from here on, so that no interrupt comes between the answer and the caller.
        del self._open[number]
        reply: wire.ControlReply = question.answer
        return reply

    def tell(self, verb: str, args: dict[str, Any], seconds: float = 0.0) -> None:
        """Send a request without waiting for its answer, within a time limit; does nothing if the board is lost."""
        notice()
        if not self._link.fault or self._link.is_detaching:
            question = Question()
            question.sent = self._ffi.new("int *")
            self._exchange(_NOBODY, question, _frame(_NOBODY, verb, args), seconds)

    def undo(self, verb: str, phy_addr: int) -> None:
        """Undo a grant that reached no caller, without waiting for the answer: "free" or "unregister"."""
        self.tell(verb, {"phy": phy_addr}, _SETTLE_SECONDS)

    def close(self) -> None:
        """Close the connection; its memory is freed when the last thread that uses it has left this object."""
        lease, self._lease = self._lease, self._ffi.NULL
        if lease:
            self._lib.hbrt_lease_close(lease)

    def _refuse_if_faulty(self) -> None:
        if self._link.fault and not self._link.is_detaching:
            raise RequestRefusedError(self._link.fault, self._link.why_faulty())

    def _refuse_unanswered(self, question: Question, verb: str) -> None:
        if question.answer is not None:
            return
        self._refuse_if_faulty()
        raise RequestRefusedError(
            Status.HB_DSP_TIMEOUT,
            f"The daemon did not answer {verb!r} within {self._link.request_ms // 1000} s; see 'hbrt log'.",
        )

    def _exchange(self, number: int, question: Question, request: bytes, seconds: float) -> None:
        """Send a request unless already sent, and store its answer in ``question``, unless it is late."""
        lease = self._lease  # another thread may close this object
        end, found = time.monotonic() + seconds, INTERRUPTED
        while found == INTERRUPTED:
            left_ns = max(int((end - time.monotonic()) * 1e9), 0)
            found = self._lib.hbrt_exchange(lease, number, request, len(request), question.sent, left_ns)
        if found == GONE:
            self._link.lose()
        elif found != TIMEOUT and number != _NOBODY:
            self._take(number, question)

    def _take(self, number: int, question: Question) -> None:
        lease = self._lease
        if not lease:
            return
        size = self._ffi.new("uint64_t *")
        message = self._lib.hbrt_answer(lease, number, size)
        if message:
            question.answer = wire.decode_reply(bytes(self._ffi.buffer(message, size[0])))
            self._lib.hbrt_answer_end(lease, message)

    def _undo_of(self, verb: str) -> Callable[[Any], Callable[[], object]] | None:
        """Return a function from the data of an untaken answer to the C call that undoes it; None for nothing."""
        undo = UNDO.get(verb)
        if undo is None:
            return None

        def of(data: Any) -> Callable[[], object]:
            frame = _frame(_NOBODY, undo, {"phy": data})
            limit_ns, sent = int(_SETTLE_SECONDS * 1e9), self._ffi.new("int *")
            return functools.partial(self._lib.hbrt_exchange, self._lease, _NOBODY, frame, len(frame), sent, limit_ns)

        return of

    def _undo_left(self) -> None:
        """Undo grants to interrupted requests whose answers have arrived since."""
        # An atomic copy: building a list of items creates objects and so may trigger garbage collection.
        for number, question in self._open.copy().items():
            if not question.is_left:
                continue
            if question.answer is None:
                self._take(number, question)
            reply = question.answer
            if reply is None:
                continue
            undo = None if reply.status or question.undo is None else question.undo(reply.data)
            if number in self._open:
                del self._open[number]  # no interrupt can come from here to the end of the single call that undoes it
                if undo is not None:
                    undo()


def _frame(number: int, verb: str, args: dict[str, Any]) -> bytes:
    return wire.encode_request(wire.ControlRequest(number, verb, args))
