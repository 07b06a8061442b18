"""FastRPC's DSP side: the interfaces that an image registers, and their objects, all in one core's process.

A skeleton takes a scalar word and the bytes of each argument. ``Skeleton`` is the base class of the Python skeletons
that ``hbrt idl`` writes. A call is one task of the board; see fastrpc/wire/message.py.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self

from dsp_server import runtime
from fastrpc.dsp.parts import Answer, Parts, elements, write_text
from fastrpc.wire import marshal, ring, scalars, uri
from fastrpc.wire.aee import Aee, AeeError, on_dsp
from fastrpc.wire.message import ARGUMENT, CLOSE, END, FASTRPC_CMD, HANDLE, HEAD, INVOKE, OPEN, WAKE
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import TABLES_GENERATION

__all__ = ["Aee", "AeeError", "DspQueue", "Implementation", "Skeleton", "register_interface"]

_GENERATION: Final = slice(TABLES_GENERATION, TABLES_GENERATION + 8)
_MAX_REMEMBERED: Final = 1024
_SIGNED: Final = struct.Struct("<i")
_UNSIGNED: Final = struct.Struct("<I")

Arguments = list[memoryview]


class Implementation(Protocol):
    """An open object of an interface."""

    def invoke(self, word: int, arguments: Arguments) -> int:
        """Run a method; returns the code for the CPU side.

        Args:
            word: The scalar word.
            arguments: Bytes of each buffer; inputs are read-only.

        Raises:
            AeeError: the method failed.
        """

    def close(self) -> None:
        """The last call: the handle is closed, or its program has ended."""


class _Opened(NamedTuple):
    """An object and the client that owns it."""

    implementation: Implementation
    client: int
    pid: int
    limit_bytes: int


class _Same(NamedTuple):
    """What a message requests."""

    invoke: Callable[[int, Arguments], int]
    word: int
    arguments: Arguments
    client: int


class Domain:
    """The interfaces and objects of one core's process."""

    def __init__(self) -> None:
        self._factories: dict[str, Callable[[str], Implementation]] = {}
        self._opened: dict[int, _Opened] = {}
        self._last = time.monotonic_ns()  # so that handles of this core's previous process are invalid here
        self._same: dict[bytes, _Same] = {}
        self._used: dict[int, int] = {}  # bytes allocated by the objects of limited programs, by client
        self.queues: dict[int, DspQueue] = {}
        self._generation = b""

    def register(self, symbol: str, make: Callable[[str], Implementation]) -> None:
        """Serve an interface.

        Args:
            symbol: Its function as named in its URI, such as calc_skel_handle_invoke.
            make: Makes an object, given the URI.
        """
        self._factories[symbol] = make
        if runtime.context.registry.get(FASTRPC_CMD) is None:
            runtime.hb_dsp_register_fn(FASTRPC_CMD, self.fastrpc)

    def fastrpc(self, input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG002 - an op's signature
        """The op: open, invoke, close."""
        raw = bytes(input)
        same = self._same.get(raw)
        context = runtime.context
        try:
            if (
                same is not None
                and same.client == context.client_id
                and not context.watchers
                and context.ddr is not None
                and context.ddr.map[_GENERATION] == self._generation
            ):
                code = same.invoke(same.word, same.arguments)
                return _as_status(code) if code else 0
            return self._serve(raw, output)
        except AeeError as error:
            runtime.hb_dsp_log(runtime.HB_DSP_LOG_ERROR, "%s", error.sentence)
            return _as_status(error.code)

    def _serve(self, raw: bytes, output: memoryview) -> int:
        try:
            kind, word, handle, count, limit_kib = HEAD.unpack_from(raw)
        except struct.error:
            raise _refusal(
                Aee.AEE_ERPC, f"Command {FASTRPC_CMD:#x} expects a FastRPC message; use remote_handle64_*."
            ) from None
        if kind == INVOKE:
            return self._invoke(raw, word, handle, count)
        if kind == OPEN:
            HANDLE.pack_into(
                output, 0, self._open(raw[HEAD.size : HEAD.size + count].decode(errors="replace"), limit_kib << 10)
            )
        elif kind == CLOSE:
            opened = self._of(handle)
            del self._opened[handle]
            self._same.clear()
            opened.implementation.close()
        elif kind == WAKE:
            queue = self.queues.get(handle)
            if queue is None or queue.client != runtime.context.client_id:
                raise _refusal(Aee.AEE_ENOSUCHHANDLE, f"Unknown queue {handle:#x}: the image has not imported it.")
            queue.serve()
        elif kind == END:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            raise _refusal(Aee.AEE_ERPC, f"Unknown message kind {kind}.")
        return 0

    def _invoke(self, raw: bytes, word: int, handle: int, count: int) -> int:
        """Run a method; a repeated message reuses its arguments as long as the board's tables do not change."""
        opened = self._of(handle)
        implementation = opened.implementation
        given = scalars.split(word)
        end = HEAD.size + count * ARGUMENT.size
        if given.total != count or len(raw) < end:
            raise _refusal(
                Aee.AEE_EBADPARM, f"The scalar word {word:#x} specifies {given.total} arguments, got {count}."
            )
        context = runtime.context
        arguments = _mapped(given, raw)
        if opened.limit_bytes:
            with self._limited(opened.client, opened.limit_bytes):
                return _as_status(implementation.invoke(word, arguments))
        if context.ddr is not None and not context.watchers:
            generation = context.ddr.map[_GENERATION]
            if generation != self._generation or len(self._same) >= _MAX_REMEMBERED:
                self._generation = generation
                self._same.clear()
            self._same[raw] = _Same(implementation.invoke, word, arguments, context.client_id)
        return _as_status(implementation.invoke(word, arguments))

    @contextmanager
    def _limited(self, client: int, limit_bytes: int) -> Iterator[None]:
        """Limit the process's allocations to what the program's objects have left.

        Raises:
            AeeError: AEE_ENOMEMORY: it needed more.
        """
        before, (_, most) = _data_bytes(), resource.getrlimit(resource.RLIMIT_DATA)
        left = max(limit_bytes - self._used.get(client, 0), 0)
        resource.setrlimit(resource.RLIMIT_DATA, (before + left, most))
        try:
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
                self._used[client] = self._used.get(client, 0) + _data_bytes() - before
        except MemoryError as error:
            why = str(error) or "an allocation failed"
            raise _refusal(Aee.AEE_ENOMEMORY, f"The process domain of the program has no memory left: {why}.") from None

    def _open(self, written: str, limit_bytes: int) -> int:
        symbol = uri.parse(written, uri.DEFAULT_DOMAIN).symbol
        make = self._factories.get(symbol)
        if make is None:
            raise _refusal(
                Aee.AEE_EUNABLETOLOAD,
                f"The image has no interface {symbol}; it has {', '.join(sorted(self._factories)) or 'none'}.",
            )
        self._discard_ended()
        client = runtime.context.client_id
        if limit_bytes:
            with self._limited(client, limit_bytes):
                made = make(written)
        else:
            made = make(written)
        self._last += 1
        self._opened[self._last] = _Opened(made, client, runtime.process_of(client), limit_bytes)
        return self._last

    def _of(self, handle: int) -> _Opened:
        opened = self._opened.get(handle)
        if opened is None or opened.client != runtime.context.client_id:
            raise _refusal(Aee.AEE_ENOSUCHHANDLE, f"Unknown handle {handle:#x} of this program on this core.")
        return opened

    def _discard_ended(self) -> None:
        """Close the objects left open by programs that have ended."""
        for handle, opened in list(self._opened.items()):
            if runtime.process_of(opened.client) != opened.pid:
                del self._opened[handle]
                self._used.pop(opened.client, None)
                with suppress(Exception):
                    opened.implementation.close()
        for number, queue in list(self.queues.items()):
            if runtime.process_of(queue.client) != queue.pid:
                del self.queues[number]


def _mapped(given: scalars.Scalars, raw: bytes) -> Arguments:
    views: Arguments = []
    for at in range(given.buffers):
        phy_addr, size_bytes = ARGUMENT.unpack_from(raw, HEAD.size + at * ARGUMENT.size)
        view = runtime.map_range(phy_addr, size_bytes) if size_bytes else memoryview(bytearray())
        if view is runtime.MAP_FAILED:
            raise _refusal(
                Aee.AEE_EBADPARM, f"Argument {at} is not memory of the caller: {runtime.context.map_failure}"
            )
        views.append(view.toreadonly() if at < given.inputs else view)
    for at in range(given.buffers, given.total):
        views.append(memoryview(raw)[HEAD.size + at * ARGUMENT.size :][: HANDLE.size])
    return views


def _data_bytes() -> int:
    """Bytes of this process that count toward RLIMIT_DATA."""
    return int(Path("/proc/self/statm").read_bytes().split()[5]) * resource.getpagesize()


def _as_status(code: int) -> int:
    """A code as a task's status, a signed 32-bit integer."""
    return int(_SIGNED.unpack(_UNSIGNED.pack(code & 0xFFFF_FFFF))[0])


def _refusal(code: Aee, sentence: str) -> AeeError:
    return AeeError(on_dsp(code), sentence)


domain = Domain()


def register_interface(symbol: str, make: Callable[[str], Implementation]) -> int:
    """Serve an interface; in an image's ``main()``, after hb_dsp_env_init(). An image may have several.

    Args:
        symbol: Its function as named in its URI, such as calc_skel_handle_invoke.
        make: Makes the object of an open, given the URI. It may raise AeeError.

    Returns:
        0.

    Raises:
        NoBoardError: called before hb_dsp_env_init().
    """
    domain.register(symbol, make)
    return 0


class DspQueue:
    """Import a program's queue during one of its calls, by the ``id`` of the program's ``DspQueue``.

    Args:
        number: The id.
        on_packet: Called as ``on_packet(queue, message, buffers)`` for each request: its bytes, and a memoryview of
            each buffer.

    Raises:
        AeeError: AEE_ENOSUCHMAP: the program has no such queue.
    """

    def __init__(self, number: int, on_packet: Callable[[DspQueue, bytes, list[memoryview]], object]) -> None:
        self._number = number
        head = runtime.map_range(number, ring.QUEUE_HEAD_BYTES)
        sizes = (0, 0) if head is runtime.MAP_FAILED else ring.SIZES.unpack_from(head)
        if not all(map(ring.is_ring, sizes)):
            raise _refusal(Aee.AEE_ENOSUCHMAP, f"The program has no queue {number:#x}.")
        self._size_bytes = ring.QUEUE_HEAD_BYTES + sum(sizes)
        self._queue = ring.queue_of(self._mapped())
        if self._queue.importer >= 0 and number in domain.queues:
            raise _refusal(Aee.AEE_EITEMBUSY, f"The queue {number:#x} is already imported.")
        self._queue.set_importer(runtime.context.index)
        self._on_packet = on_packet
        self._fence = Fence()
        self.client = runtime.context.client_id
        self.pid = runtime.process_of(self.client)
        domain.queues[number] = self

    def _mapped(self) -> memoryview:
        """The queue's bytes.

        Raises:
            AeeError: AEE_ENOSUCHMAP: they are not memory of the calling program.
        """
        mapped = runtime.map_range(self._number, self._size_bytes)
        if mapped is runtime.MAP_FAILED:
            raise _refusal(Aee.AEE_ENOSUCHMAP, f"The program has no queue {self._number:#x}.")
        return mapped

    def write(self, message: bytes = b"") -> None:
        """Send a response.

        Raises:
            AeeError: AEE_EWOULDBLOCK: the program has not read the earlier ones; AEE_EBADPARM: it is too large;
                AEE_ENOSUCHMAP: the current call is not from the queue's program; AEE_EBADSTATE: the queue is damaged.
        """
        self._mapped()
        if not self._queue.responses.write((), message):
            raise AeeError(Aee.AEE_EWOULDBLOCK, "The queue has no room for the response.")

    def close(self) -> None:
        """Forget the queue: its program may then close it."""
        with suppress(AeeError):  # the memory does not belong to the queue anymore
            self._mapped()
            self._queue.set_importer(-1)

    def serve(self) -> None:
        """Process the requests."""
        self._mapped()
        while True:
            while (packet := self._queue.requests.read()) is not None:
                views = [_bytes_of(one.phy_addr, one.size) for one in packet.buffers]
                self._on_packet(self, packet.message, views)
            self._queue.set_served(is_served=False)
            self._fence.full()  # before the last check
            if self._queue.requests.peek() is None:
                return
            self._queue.set_served(is_served=True)


def _bytes_of(phy_addr: int, size_bytes: int) -> memoryview:
    view = runtime.map_range(phy_addr, size_bytes)
    if view is runtime.MAP_FAILED:
        raise _refusal(Aee.AEE_ENOSUCHMAP, f"A buffer of a packet is not memory: {runtime.context.map_failure}")
    return view


class Skeleton:
    """The base class of skeletons in Python: checks an invocation, and calls the method with Python values.

    A method gets its ``in`` and ``inrout`` parameters and the arrays of its ``rout`` sequences. It returns its ``rout``
    and ``inrout`` values and its ``rout`` strings: None, one value, or a tuple of several. It is passed each ``rout``
    that has sequences of sequences or texts, or a structure with such fields, and fills it: it writes arrays, and sets
    values and texts. It raises AeeError to fail.
    """

    INTERFACE: ClassVar[str]
    METHODS: ClassVar[dict[int, marshal.Method]]
    VERSION: ClassVar[str] = ""
    """IDL_VERSION of its IDL file: a newer stub cannot open it. Empty without one."""

    @classmethod
    def register(cls) -> int:
        """Serve the interface with this class: each open creates an object of it. Like ``register_interface``."""
        return register_interface(uri.symbol_of(cls.INTERFACE), cls._opened)

    @classmethod
    def _opened(cls, written: str) -> Self:
        if cls.VERSION:
            uri.check_version(written, cls.VERSION)
        return cls()

    def close(self) -> None:
        """The handle is closed, or its program has ended."""

    def invoke(self, word: int, arguments: Arguments) -> int:
        """Like ``Implementation.invoke``."""
        number = word >> 24 & 0x1F
        if number == scalars.LONG_METHOD:
            first = arguments[0] if word >> 16 & 0xFF and arguments else memoryview(b"")
            number = _UNSIGNED.unpack_from(first)[0] if len(first) >= _UNSIGNED.size else number
        method = self.METHODS.get(number)
        if method is None:
            raise _refusal(Aee.AEE_EUNSUPPORTED, f"{self.INTERFACE} has no method {number}.")
        is_so = (word & 0xFF) == (method.word & 0xFF) if method.has_parts else word == method.word
        if not is_so:
            raise _refusal(
                Aee.AEE_EBADPARM,
                f"{self.INTERFACE}.{method.name} has the scalar word {method.word:#010x}, got {word:#010x}: "
                "stub and skeleton belong to different interfaces.",
            )
        try:
            given, out, filled = _unpack(method, word, arguments)
        except AeeError as error:
            raise AeeError(on_dsp(error.code), f"{self.INTERFACE}.{method.name}: {error.sentence}") from None
        except StopIteration:
            raise _refusal(Aee.AEE_EBADPARM, f"{self.INTERFACE}.{method.name}: the call has too few buffers.") from None
        returned = getattr(self, method.name)(*given)
        _answer(method, out, filled, returned)
        return 0


class _Filled(NamedTuple):
    """What a call fills, by name: buffers of ``rout`` strings, and objects of PARTS with their writers."""

    texts: dict[str, memoryview]
    parts: dict[str, tuple[Any, Answer]]


def _unpack(method: marshal.Method, word: int, arguments: Arguments) -> tuple[list[Any], memoryview | None, _Filled]:
    """A method's arguments, its output block, and the objects that it fills."""
    count_in = word >> 16 & 0xFF
    buffers = count_in + (word >> 8 & 0xFF)
    inputs, outputs = iter(arguments[:count_in]), iter(arguments[count_in:buffers])
    handles = iter(arguments[buffers:])
    values = iter(_values(method.input, next(inputs) if method.input.size_bytes else memoryview(b"")))
    out = next(outputs) if method.output.size_bytes else None
    if out is not None and len(out) < method.output.size_bytes:
        raise AeeError(Aee.AEE_EBADPARM, f"The output block has {len(out)} of {method.output.size_bytes} bytes.")
    parts = Parts(inputs, outputs)
    if method.is_long:
        next(values)
    made: list[Any] = []
    filled = _Filled({}, {})
    for one, form, is_in, is_out in method.steps:
        if form == marshal.VALUE:
            made += [next(values)] if is_in else []
        elif form == marshal.HANDLE:
            made.append(HANDLE.unpack(next(handles))[0])
        elif form == marshal.PARTS:
            filled.parts[one.name] = value, _ = parts.value(one, next(values))
            made.append(value)
        else:
            length, came, back = next(values), next(inputs) if is_in else None, next(outputs) if is_out else None
            if form == marshal.SEQUENCE:
                if is_in and is_out:
                    next(values)  # the same length, for the output
                made.append(elements(one, length, came, back))
            else:
                made += _text(one, length, came, back, filled.texts)
    if method.has_parts and (left := len(list(inputs)) + len(list(outputs))):
        raise AeeError(Aee.AEE_EBADPARM, f"The call has {left} more buffers than its sequences and texts.")
    return made, out, filled


def _text(
    one: marshal.Param,
    length: int,
    came: memoryview | None,
    back: memoryview | None,
    texts: dict[str, memoryview],
) -> list[str]:
    """What a method gets for a string; nothing for a ``rout`` string, whose buffer is kept for later."""
    if came is not None:
        return [marshal.text(one, came, length)]
    if back is not None:
        texts[one.name] = back[:length]
    return []


def _values(block: marshal.Block, raw: memoryview) -> list[Any]:
    if len(raw) < block.size_bytes:
        raise AeeError(Aee.AEE_EBADPARM, f"The input block has {len(raw)} of {block.size_bytes} bytes.")
    return block.unpack(raw)


def _answer(method: marshal.Method, out: memoryview | None, filled: _Filled, returned: Any) -> None:
    """Write a method's return values and the objects that it filled."""
    outs = method.answered
    if not outs and returned is None:
        return
    names = [one.name for one in outs if one.form != marshal.PARTS]
    results = () if not names else (returned,) if len(names) == 1 else returned
    if not isinstance(results, tuple) or len(results) != len(names) or (not names and returned is not None):
        raise TypeError(f"{method.name} returned {returned!r}; it must return {', '.join(names) or 'None'}.")
    values = []
    rest = iter(results)
    for one in outs:
        if one.form == marshal.PARTS:
            value, write = filled.parts[one.name]
            share = write(value)
            if share is not None:
                values.append(share)
        elif one.form == marshal.STRING:
            write_text(one.name, filled.texts[one.name], next(rest))
        else:
            values.append(next(rest))
    if out is not None:
        raw = method.output.pack(values)
        out[: len(raw)] = raw
