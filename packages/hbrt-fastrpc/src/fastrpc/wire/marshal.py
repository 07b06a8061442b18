"""Methods of an interface: the blocks of their scalars, and which arguments are passed as buffers. Pure.

The first input buffer has the scalars of ``in`` and ``inrout`` and all lengths, in the order of the declaration, each
at its natural alignment; then come the buffers of ``in`` and ``inrout``. An ``inrout`` sequence has its length twice:
for the input and for the output. The first output buffer has the scalars of
``rout`` and ``inrout``; then come the buffers of ``rout`` and ``inrout``. A block without a scalar is left out.

A parameter of the form PARTS is a sequence of sequences or texts, or a structure that contains one at any depth. Its
values and lengths are in the block, in the layout of ``parts``. The elements of a sequence of these form a separate
block, a buffer that precedes their own buffers; their data for the CPU side is an output buffer. An invocation has as
many buffers as its arguments need, at most MAX_BUFFERS of a kind.

Source: qualcomm/fastrpc, src/adsp_listener_stub.c, src/apps_std_skel.c, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.scalars import LONG_METHOD, make

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN: Final = "in"
ROUT: Final = "rout"
INROUT: Final = "inrout"
MODES: Final = (IN, ROUT, INROUT)
VALUE, SEQUENCE, STRING, HANDLE, PARTS = "value", "sequence", "string", "handle", "parts"
MAX_BUFFERS: Final = 254
"""Maximum number of input buffers, and of output buffers, of a method with a parameter of PARTS."""


class SequenceOf(NamedTuple):
    """A sequence inside a parameter of PARTS; a sequence of c_char is a NUL-terminated string."""

    element: Kind

    @property
    def is_whole(self) -> bool:
        """Whether it is one buffer: of numbers, of structures in one piece, or a text."""
        return not is_in_parts(self.element)


class Record(SimpleNamespace):
    """A structure with sequences or strings; ``hbrt idl`` generates its subclasses. Fields are passed by name."""

    FIELDS: ClassVar[tuple[tuple[str, Kind], ...]]


Kind = type[Any] | SequenceOf


def is_in_parts(kind: Kind) -> bool:
    """Whether a value has its own buffers; otherwise it is in a block in one piece."""
    return isinstance(kind, SequenceOf) or issubclass(kind, Record)


def parts(kind: Kind, mode: str) -> tuple[type[Any] | None, type[Any] | None]:
    """A value's types (ctypes, or None) in the incoming block and in the returned one."""
    if isinstance(kind, SequenceOf):
        return ctypes.c_uint32, None
    if not issubclass(kind, Record):
        return (None if mode == ROUT else kind), (None if mode == IN else kind)
    if (kind, mode) not in _records:
        rows = [(name, parts(each, mode)) for name, each in kind.FIELDS]
        _records[kind, mode] = (
            _structure([(name, came) for name, (came, _) in rows if came is not None]),
            _structure([(name, back) for name, (_, back) in rows if back is not None]),
        )
    return _records[kind, mode]


_records: dict[tuple[type[Any], str], tuple[type[Any] | None, type[Any] | None]] = {}


def _structure(fields: list[tuple[str, type[Any]]]) -> type[Any] | None:
    return type("Share", (ctypes.Structure,), {"_fields_": fields}) if fields else None


class Param(NamedTuple):
    """A parameter of a method.

    Attributes:
        name: Its name.
        mode: IN, ROUT or INROUT.
        form: VALUE, SEQUENCE, STRING, HANDLE or PARTS.
        kind: The type of a value, or of a sequence's elements: a type of ctypes, or a structure or an array of such.
            c_char for a string, c_uint64 for a handle, the whole type for PARTS.
    """

    name: str
    mode: str
    form: str
    kind: Any = ctypes.c_char

    @property
    def is_in(self) -> bool:
        """Whether it has bytes on the way to the DSP, besides a length."""
        return self.mode != ROUT

    @property
    def is_out(self) -> bool:
        """Whether it has bytes on the way back."""
        return self.mode != IN


class Block:
    """The layout of a block of values, like that of a structure: padded to a multiple of the largest alignment.

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
        padding = -at % max(map(ctypes.alignment, self.kinds), default=1)
        self._struct = struct.Struct(form + "x" * padding)
        self.size_bytes = at + padding
        self._structures = [(at, kind) for at, kind in enumerate(self.kinds) if kind not in _CODES]

    def pack(self, values: list[Any]) -> bytes:
        """The bytes of values.

        Raises:
            AeeError: AEE_EBADPARM: a value does not fit its type.
        """
        for at, kind in self._structures:
            if issubclass(kind, ctypes.Array) and not isinstance(values[at], kind):
                values[at] = _array_of(kind, values[at])
            if not isinstance(values[at], kind):
                raise AeeError(Aee.AEE_EBADPARM, f"{values[at]!r} is not a {kind.__name__}.")
            values[at] = bytes(values[at])
        try:
            return self._struct.pack(*values)
        except (struct.error, OverflowError, TypeError) as error:
            raise AeeError(Aee.AEE_EBADPARM, f"The values {values} do not fit their types: {error}.") from None

    def unpack(self, raw: bytes | bytearray | memoryview) -> list[Any]:
        """The values in bytes that are at least as long as the block."""
        values: list[Any] = list(self._struct.unpack_from(raw))
        for at, kind in self._structures:
            values[at] = kind.from_buffer_copy(values[at])
        return values


@cache
def _fields_block(kind: Any) -> Block:
    return Block(each for _, each in kind._fields_)


def structure(kind: Any, values: dict[str, Any]) -> Any:
    """A ctypes structure from values by field name; other names are ignored.

    Raises:
        AeeError: AEE_EBADPARM: a value does not fit its type.
    """
    raw = _fields_block(kind).pack([values[name] for name, _ in kind._fields_])
    return kind.from_buffer_copy(raw.ljust(ctypes.sizeof(kind), b"\0"))


def _array_of(kind: type[Any], given: Any) -> Any:
    """A fixed-size array from a sequence of that length; any other value is returned unchanged."""
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
        AeeError: AEE_EMAXBUFS: more buffers than a scalar word can encode.
    """

    def __init__(self, name: str, number: int, *params: Param) -> None:
        self.name = name
        self.number = number
        self.params = params
        self.steps = tuple((one, one.form, one.is_in, one.is_out) for one in params)  # for the loop of each call
        self.given = tuple(one for one in params if one.form != VALUE or one.is_in)  # what a caller passes
        self.answered = tuple(one for one in params if one.is_out and one.form != SEQUENCE)
        self.is_long = number >= LONG_METHOD
        self.has_parts = any(one.form == PARTS for one in params)
        both = [shares(one) for one in params]
        kinds: list[type[Any]] = [ctypes.c_uint32] if self.is_long else []
        self.input = Block(kinds + [each for came, _ in both for each in came])
        self.output = Block(each for _, back in both for each in back)
        inputs = bool(self.input.size_bytes) + sum(one.form in {SEQUENCE, STRING} and one.is_in for one in params)
        outputs = bool(self.output.size_bytes) + sum(one.form in {SEQUENCE, STRING} and one.is_out for one in params)
        self.inputs = inputs
        self.buffers = inputs + outputs
        handles = [one for one in params if one.form == HANDLE]
        self.handles = sum(one.is_in for one in handles), sum(one.is_out for one in handles)
        buffers = (0, 0) if self.has_parts else (inputs, outputs)
        self.word = make(number, *buffers, *self.handles)

    def word_of(self, inputs: int, outputs: int) -> int:
        """The scalar word of a call of a method with PARTS and this many buffers.

        Raises:
            AeeError: AEE_EUNSUPPORTED: more than MAX_BUFFERS.
        """
        if max(inputs, outputs) > MAX_BUFFERS:
            raise AeeError(
                Aee.AEE_EUNSUPPORTED,
                f"{self.name} has {inputs} input and {outputs} output buffers; the maximum is {MAX_BUFFERS} of each. "
                "Pass fewer sequences and strings in one call.",
            )
        return make(self.number, inputs, outputs, *self.handles)


def shares(one: Param) -> tuple[list[type[Any]], list[type[Any]]]:
    """The types of a parameter's values and lengths in the two blocks."""
    if one.form == HANDLE:
        return [], []
    if one.form in {SEQUENCE, STRING}:
        return [ctypes.c_uint32] * (one.is_in + one.is_out), []
    came, back = parts(one.kind, one.mode)
    return [] if came is None else [came], [] if back is None else [back]


def dtype_of(kind: type[Any]) -> np.dtype[Any]:
    """The numpy type for a ctypes type; creating one takes microseconds."""
    found = _dtypes.get(kind)
    if found is None:
        found = _dtypes[kind] = np.dtype(kind)
    return found


_dtypes: dict[type[Any], np.dtype[Any]] = {}


def elements(param: Param, raw: memoryview, count: int) -> NDArray[Any]:
    """The elements of a sequence in the bytes of its buffer; writable if these are.

    Raises:
        AeeError: AEE_EBADPARM: the buffer has fewer elements.
    """
    kind = dtype_of(param.kind)
    if count * kind.itemsize > len(raw):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{param.name} has {count} elements of {kind.itemsize} bytes, but its buffer has {len(raw)} bytes.",
        )
    return np.frombuffer(raw, kind, count)


def text(param: Param, raw: memoryview, length: int) -> str:
    """The string in the bytes of its buffer.

    Raises:
        AeeError: AEE_EBADPARM: it has no terminating NUL there, or is not valid UTF-8.
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
