"""The base class of stubs in Python: turns a method's arguments into buffers, and its outputs into results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from arm_client.arrays import is_on_board
from arm_client.cabi.arguments import short_repr
from fastrpc.runtime import Span, runtime
from fastrpc.wire import marshal, uri
from fastrpc.wire.aee import Aee, AeeError
from hbrt.borders.addresses import address_of
from hbrt.borders.interrupts import let_out
from hbrt.findings.text import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Interface:
    """An open interface; a context manager. ``hbrt idl`` generates its subclasses.

    Args:
        domain: Name of a domain, or the suffix to append to the URI.
        session: 0..3.

    Raises:
        AeeError: as remote_handle64_open.
    """

    INTERFACE: ClassVar[str]
    LIBRARY: ClassVar[str] = ""
    """The name of its IDL file; empty for the interface's own name."""
    VERSION: ClassVar[str] = ""
    """IDL_VERSION of its IDL file; empty without one."""

    def __init__(self, domain: str = "cdsp", session: int = 0) -> None:
        if domain not in uri.DOMAINS:
            raise AeeError(Aee.AEE_EBADPARM, f"Unknown domain {domain!r}; write one of {', '.join(uri.DOMAINS)}.")
        self._runtime = runtime()
        named = uri.of_interface(self.INTERFACE, self.LIBRARY, self.VERSION)
        self.uri = named + uri.suffix(uri.DOMAINS.index(domain), session)
        self.handle = self._runtime.open(self.uri)

    def close(self) -> None:
        """Close the handle; closing it again has no effect."""
        handle, self.handle = self.handle, 0
        if handle:
            self._runtime.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: marshal.Method, *given: Any) -> Any:
        """Run a method.

        Args:
            method: A method of the interface.
            given: Its parameters but ``rout`` values: values, texts, arrays. For a ``rout`` sequence, an array to fill
                or the number of elements of a new one; for a ``rout`` string, its maximum number of bytes. For
                sequences of sequences or texts, a list of those; for a structure with such fields, an object that has
                the fields.

        Returns:
            ``rout`` and ``inrout`` values, ``rout`` strings and new arrays, lists and structures, in the declaration's
            order: None, one, or a tuple.

        Raises:
            AeeError: the call failed.
        """
        sent = _Sent(method, given)
        out = bytearray(method.output.size_bytes)
        if method.input.size_bytes:
            sent.inputs.insert(0, method.input.pack(sent.values))
        if out:
            sent.outputs.insert(0, out)
        word = method.word_of(len(sent.inputs), len(sent.outputs)) if method.has_parts else method.word
        self._runtime.invoke(self.handle, word, sent.inputs + sent.outputs + sent.handles)
        answered = iter(method.output.unpack(out) if out else ())
        told = [_result(one, answered) for one in sent.results]
        return None if not told else told[0] if len(told) == 1 else tuple(told)


class _Sent:
    """A call's marshaled arguments: values of the block, buffers, and the sources of its results."""

    def __init__(self, method: marshal.Method, given: tuple[Any, ...]) -> None:
        self.values: list[Any] = [method.number] if method.is_long else []
        self.inputs: list[Span] = []
        self.outputs: list[Span] = []
        self.handles: list[Span] = []
        self.results: list[Any] = []
        self._kept: list[Any] = []
        if len(given) != len(method.given):
            names = ", ".join(one.name for one in method.given)
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"{method.name} takes {counted(len(method.given), 'argument')} ({names}), not {len(given)}.",
            )
        arguments = iter(given)
        for one, form, is_in, is_out in method.steps:
            if form == marshal.SEQUENCE:
                self._sequence(one, next(arguments), is_in=is_in, is_out=is_out)
            elif form == marshal.VALUE:
                if is_in:
                    self.values.append(next(arguments))
                if is_out:
                    self.results.append(_VALUE)
            elif form == marshal.HANDLE:
                self.handles.append(_handle(one, next(arguments)))
            else:
                self._text_or_parts(one, next(arguments))

    def _sequence(self, param: marshal.Param, given: Any, *, is_in: bool, is_out: bool) -> None:
        array = _array(param, given, is_out=is_out)
        span = _span(array)
        self.values += [array.size] * (is_in + is_out)
        if is_in:
            self.inputs.append(span)
        if is_out:
            self.outputs.append(span)
        if array is not given:
            self._kept.append(array)
            if is_out:
                self.results.append(array)

    def _text_or_parts(self, param: marshal.Param, given: Any) -> None:
        if param.form == marshal.PARTS:
            value, read = self._part(param, given)
            self.values.append(value)
            if param.is_out:
                self.results.append(_Parts(bool(marshal.shares(param)[1]), read))
            return
        length, text = _string(param, given)
        self.values.append(length)
        (self.inputs if param.is_in else self.outputs).append(text)
        if param.is_out:
            self.results.append(text)

    def _part(self, param: marshal.Param, given: Any) -> tuple[Any, Read]:
        """Marshal a parameter of PARTS or a part of one: returns its share of the block, and a reader of its result.

        Raises:
            AeeError: AEE_EBADPARM: its type is wrong.
        """
        kind = param.kind
        if isinstance(kind, marshal.SequenceOf):
            return self._whole(param, kind, given) if kind.is_whole else self._elements(param, kind, given)
        if issubclass(kind, marshal.Record):
            return self._record(param, kind, given)
        return given, lambda back: back

    def _whole(self, param: marshal.Param, kind: marshal.SequenceOf, given: Any) -> tuple[Any, Read]:
        leaf = param._replace(kind=kind.element)
        span: Span
        if kind.element is ctypes.c_char:
            length, span = _string(leaf, given)
            made: Any = span
        else:
            made = _array(leaf, given, is_out=leaf.is_out)
            self._kept.append(made)
            length, span = made.size, _span(made)
        (self.inputs if param.is_in else self.outputs).append(span)
        return length, lambda _: _result(made, iter(()))

    def _elements(self, param: marshal.Param, kind: marshal.SequenceOf, given: Any) -> tuple[Any, Read]:
        if not isinstance(given, list | tuple):
            raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {short_repr(given)}; pass a list of its elements.")
        came_kind, back_kind = marshal.parts(kind.element, param.mode)
        came = bytearray(len(given) * ctypes.sizeof(cast("type[Any]", came_kind)))
        back = bytearray(0 if back_kind is None else len(given) * ctypes.sizeof(back_kind))
        self.inputs.append(came)
        if back_kind is not None:
            self.outputs.append(back)
        both = [
            self._part(param._replace(name=f"{param.name}[{at}]", kind=kind.element), one)
            for at, one in enumerate(given)
        ]
        block = marshal.Block([cast("type[Any]", came_kind)])
        came[:] = b"".join(block.pack([value]) for value, _ in both)

        def read(_: Any) -> list[Any]:
            shares = [None] * len(both) if back_kind is None else (back_kind * len(both)).from_buffer_copy(back)
            return [read_one(share) for (_, read_one), share in zip(both, shares, strict=True)]

        return len(given), read

    def _record(self, param: marshal.Param, kind: type[marshal.Record], given: Any) -> tuple[Any, Read]:
        came_kind = cast("type[Any]", marshal.parts(kind, param.mode)[0])
        both = {}
        for name, each in kind.FIELDS:
            if not hasattr(given, name) and marshal.parts(each, param.mode)[0] is not None:
                raise AeeError(
                    Aee.AEE_EBADPARM,
                    f"{param.name} is {short_repr(given)}, without {name}; pass {kind.__name__} with "
                    f"{', '.join(one for one, _ in kind.FIELDS)}.",
                )
            inner = param._replace(name=f"{param.name}.{name}", kind=each)
            both[name] = self._part(inner, getattr(given, name, None))
        share = marshal.structure(came_kind, {name: value for name, (value, _) in both.items()})
        return share, lambda back: kind(**{name: read(getattr(back, name, None)) for name, (_, read) in both.items()})


Read = Callable[[Any], Any]


class _Parts(NamedTuple):
    """A result of PARTS: whether it has a share of the returned block, and the function that makes it."""

    has_share: bool
    read: Read


_VALUE = object()


def _handle(param: marshal.Param, given: Any) -> int:
    """A handle's value: for a dmahandle, the descriptor, which is below 2^31, with the offset in bits 32 to 63."""
    if not isinstance(given, int | np.integer) or not 0 <= given < 1 << 64:
        raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {given!r}; pass the number of a handle.")
    return int(given)


def _string(param: marshal.Param, given: Any) -> tuple[int, Span]:
    """Length and bytes of a string; for a ``rout`` string, a buffer of the given number of bytes."""
    if param.is_out:
        if not isinstance(given, int) or given < 1:
            raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {given!r}; pass its maximum number of bytes.")
        return given, bytearray(given)
    try:
        raw = given.encode() + b"\0"
    except (AttributeError, UnicodeEncodeError):
        raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {given!r}; pass a string.") from None
    if raw.count(0) > 1:
        raise AeeError(Aee.AEE_EBADPARM, f"{param.name} contains a NUL: {given!r}.")
    return len(raw), raw


def _array(param: marshal.Param, given: Any, *, is_out: bool) -> NDArray[Any]:
    """The elements of a sequence in C order; a new array for a ``rout`` sequence given as a number of elements."""
    kind = marshal.dtype_of(param.kind)
    if isinstance(given, np.ndarray) and given.dtype == kind:
        flags = given.flags
        if flags.c_contiguous and (not is_out or flags.writeable):
            return given
    if not is_out:
        array = given if isinstance(given, np.ndarray) else _made(param, given, kind)
        if array.dtype != kind:
            raise AeeError(Aee.AEE_EBADPARM, f"{param.name} has elements of {array.dtype}; it takes {_said(param)}.")
        return np.ascontiguousarray(array) if not array.flags.c_contiguous else array
    if isinstance(given, int | np.integer):
        if given < 0 or param.is_in:
            raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {given}; pass an array, or a number of elements.")
        try:
            return np.zeros(given, kind)
        except (MemoryError, ValueError, OverflowError) as error:
            let_out(error)
            raise AeeError(Aee.AEE_ENOMEMORY, f"{param.name} of {given} elements: {error}.") from None
    if (
        not isinstance(given, np.ndarray)
        or given.dtype != kind
        or not given.flags.c_contiguous
        or not given.flags.writeable
    ):
        what = f"a {type(given).__name__}"
        if isinstance(given, np.ndarray):
            what = f"an array of {given.dtype}" if given.dtype != kind else "read-only, or not in one piece"
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{param.name} is {what}; pass a writable array of {_said(param)} in C order, to be filled.",
        )
    return given


def _made(param: marshal.Param, given: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    """Convert bytes, numbers or a ctypes array to a numpy array."""
    if isinstance(given, bytes):
        return np.frombuffer(given, kind if kind.itemsize == 1 else np.uint8)
    try:
        array = np.ascontiguousarray(given, kind)
        if kind.kind not in "iu" or np.array_equal(array, given):
            return array
    except (TypeError, ValueError, OverflowError):
        pass  # numbers that it would have changed
    raise AeeError(Aee.AEE_EBADPARM, f"{param.name} is {short_repr(given)}; pass an array of {_said(param)}.")


def _said(param: marshal.Param) -> str:
    """The type of a sequence's elements in a message."""
    return param.kind.__name__ if issubclass(param.kind, ctypes.Structure) else str(marshal.dtype_of(param.kind))


def _span(array: NDArray[Any]) -> Span:
    if is_on_board(array):
        return 0, array.nbytes, array.phy_addr
    return address_of(array), array.nbytes, 0


def _result(told: Any, answered: Iterator[Any]) -> Any:
    if told is _VALUE:
        return next(answered)
    if isinstance(told, _Parts):
        return told.read(next(answered) if told.has_share else None)
    if isinstance(told, bytearray):
        return told.partition(b"\0")[0].decode(errors="replace")
    return told
