"""Methods of an interface: the blocks of their scalars, and which arguments travel as buffers. Pure.

The first input buffer has the scalars of ``in`` and ``inrout`` and all lengths, in the order of the declaration, each
at its natural alignment; then come the buffers of ``in`` and ``inrout``. The first output buffer has the scalars of
``rout`` and ``inrout``; then come the buffers of ``rout`` and ``inrout``. A block without a scalar is left out.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.scalars import LONG_METHOD, make

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN: Final = "in"
ROUT: Final = "rout"
INROUT: Final = "inrout"
MODES: Final = (IN, ROUT, INROUT)
VALUE, SEQUENCE, STRING, HANDLE = "value", "sequence", "string", "handle"


class Param(NamedTuple):
    """A parameter of a method.

    Attributes:
        name: Its name.
        mode: IN, ROUT or INROUT.
        form: VALUE, SEQUENCE, STRING or HANDLE.
        kind: The type of a value, or of a sequence's elements: a type of ctypes, or a structure or an array of such.
            c_char for a string, c_uint64 for a handle.
    """

    name: str
    mode: str
    form: str
    kind: type[Any] = ctypes.c_char

    @property
    def is_in(self) -> bool:
        """Whether it has bytes on the way to the DSP, beside a length."""
        return self.mode != ROUT

    @property
    def is_out(self) -> bool:
        """Whether it has bytes on the way back."""
        return self.mode != IN


class Block:
    """The layout of a block of values: each at its natural alignment, with nothing behind the last.

    Args:
        kinds: Types of ctypes.
    """

    def __init__(self, kinds: Iterable[type[Any]]) -> None:
        self.kinds = list(kinds)
        self.offsets: list[int] = []
        form, at = "<", 0
        for kind in self.kinds:
            gap = -at % ctypes.alignment(kind)
            form += "x" * gap + _code(kind)
            self.offsets.append(at + gap)
            at += gap + ctypes.sizeof(kind)
        self._struct = struct.Struct(form)
        self.size_bytes = at
        self._structures = [(at, kind) for at, kind in enumerate(self.kinds) if kind not in _CODES]

    def pack(self, values: list[Any]) -> bytes:
        """The bytes of values.

        Raises:
            AeeError: AEE_EBADPARM: one does not fit its type.
        """
        for at, kind in self._structures:
            if issubclass(kind, ctypes.Array) and not isinstance(values[at], kind):
                values[at] = _array_of(kind, values[at])
            if not isinstance(values[at], kind):
                raise AeeError(Aee.AEE_EBADPARM, f"{values[at]!r} is no {kind.__name__}.")
            values[at] = bytes(values[at])
        try:
            return self._struct.pack(*values)
        except (struct.error, OverflowError, TypeError) as error:
            raise AeeError(Aee.AEE_EBADPARM, f"The values {values} do not fit their types: {error}.") from None

    def unpack(self, raw: bytes | bytearray | memoryview) -> list[Any]:
        """The values in bytes, which are at least as many as the block has."""
        values: list[Any] = list(self._struct.unpack_from(raw))
        for at, kind in self._structures:
            values[at] = kind.from_buffer_copy(values[at])
        return values


def _array_of(kind: type[Any], given: Any) -> Any:
    """An array of a fixed size from what has as many elements; what has others is returned as it is."""
    try:
        made = np.ascontiguousarray(given, dtype_of(kind).base)
        return kind.from_buffer_copy(made.tobytes()) if made.nbytes == ctypes.sizeof(kind) else given
    except (TypeError, ValueError, OverflowError):
        return given


class Method:
    """A method of an interface.

    Args:
        name: Its name.
        number: 0 for the first of a plain interface, 2 for the first of one with handles.
        params: Its parameters.

    Raises:
        AeeError: AEE_EMAXBUFS: it has more buffers than a scalar word can say.
    """

    def __init__(self, name: str, number: int, *params: Param) -> None:
        self.name = name
        self.number = number
        self.params = params
        self.given = tuple(one for one in params if one.form != VALUE or one.is_in)  # what a caller passes
        self.is_long = number >= LONG_METHOD
        kinds: list[type[Any]] = [ctypes.c_uint32] if self.is_long else []
        for one in params:
            if one.form in {SEQUENCE, STRING}:
                kinds.append(ctypes.c_uint32)
            elif one.form == VALUE and one.is_in:
                kinds.append(one.kind)
        self.input = Block(kinds)
        self.output = Block(one.kind for one in params if one.form == VALUE and one.is_out)
        inputs = bool(self.input.size_bytes) + sum(one.form in {SEQUENCE, STRING} and one.is_in for one in params)
        outputs = bool(self.output.size_bytes) + sum(one.form in {SEQUENCE, STRING} and one.is_out for one in params)
        self.inputs = inputs
        self.buffers = inputs + outputs
        handles = [one for one in params if one.form == HANDLE]
        self.word = make(number, inputs, outputs, sum(one.is_in for one in handles), sum(one.is_out for one in handles))


def in_parts(name: str, *_: Any) -> NoReturn:
    """Refuse a method whose parameters travel in parts: sequences of sequences or texts, structures with such.

    Raises:
        AeeError: AEE_EUNSUPPORTED.
    """
    raise AeeError(
        Aee.AEE_EUNSUPPORTED,
        f"{name} has sequences of sequences or of texts, or structures with such: call it from C.",
    )


def dtype_of(kind: type[Any]) -> np.dtype[Any]:
    """The type of numpy's for a type of ctypes; making one takes microseconds."""
    found = _dtypes.get(kind)
    if found is None:
        found = _dtypes[kind] = np.dtype(kind)
    return found


_dtypes: dict[type[Any], np.dtype[Any]] = {}


def elements(param: Param, raw: memoryview, count: int) -> NDArray[Any]:
    """The elements of a sequence in the bytes of its buffer; writable where these are.

    Raises:
        AeeError: AEE_EBADPARM: the buffer has fewer.
    """
    kind = dtype_of(param.kind)
    if count * kind.itemsize > len(raw):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{param.name} has {count} elements of {kind.itemsize} bytes, and its buffer has {len(raw)} bytes.",
        )
    return np.frombuffer(raw, kind, count)


def text(param: Param, raw: memoryview, length: int) -> str:
    """The string in the bytes of its buffer.

    Raises:
        AeeError: AEE_EBADPARM: no NUL ends it there, or it is no UTF-8.
    """
    if not 0 < length <= len(raw) or raw[length - 1]:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"The string {param.name} of {length} bytes does not end with a NUL in its buffer of {len(raw)} bytes.",
        )
    try:
        return bytes(raw[: length - 1]).decode()
    except UnicodeDecodeError as error:
        raise AeeError(Aee.AEE_EBADPARM, f"The string {param.name} is not UTF-8: {error}.") from None


_CODES: Final[dict[type[Any], str]] = {
    ctypes.c_bool: "?",
    ctypes.c_char: "c",
    ctypes.c_int8: "b",
    ctypes.c_uint8: "B",
    ctypes.c_int16: "h",
    ctypes.c_uint16: "H",
    ctypes.c_int32: "i",
    ctypes.c_uint32: "I",
    ctypes.c_int64: "q",
    ctypes.c_uint64: "Q",
    ctypes.c_float: "f",
    ctypes.c_double: "d",
}


def _code(kind: type[Any]) -> str:
    return _CODES.get(kind) or f"{ctypes.sizeof(kind)}s"
