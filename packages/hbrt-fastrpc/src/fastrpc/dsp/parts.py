"""Parameters of PARTS on the DSP side: the objects passed to a method, and their contents after it. Pure."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from fastrpc.wire import marshal
from fastrpc.wire.aee import Aee, AeeError, on_dsp

if TYPE_CHECKING:
    from numpy.typing import NDArray

Answer = Callable[[Any], Any]


class Parts:
    """The buffers of an invocation, in order.

    Args:
        inputs: Received buffers.
        outputs: Returned buffers.
    """

    def __init__(self, inputs: Iterator[memoryview], outputs: Iterator[memoryview]) -> None:
        self._inputs = inputs
        self._outputs = outputs

    def value(self, param: marshal.Param, came: Any) -> tuple[Any, Answer]:
        """The object of a parameter or of a part of one, and a function that makes its share of the returned block.

        Args:
            param: The parameter.
            came: Its share of the received block.

        Raises:
            AeeError: AEE_EBADPARM: a buffer is too short.
            StopIteration: There are too few.
        """
        kind = param.kind
        if isinstance(kind, marshal.SequenceOf):
            return self._whole(param, kind, came) if kind.is_whole else self._elements(param, kind, came)
        if issubclass(kind, marshal.Record):
            return self._record(param, kind, came)
        zero = came if param.is_in else (kind * 1)()[0]
        return zero, lambda value: value

    def _whole(self, param: marshal.Param, kind: marshal.SequenceOf, count: int) -> tuple[Any, Answer]:
        leaf = param._replace(kind=kind.element)
        raw = next(self._inputs if param.is_in else self._outputs)
        if kind.element is ctypes.c_char:
            given = marshal.text(leaf, raw, count) if param.is_in else ""
            return given, lambda value: write_text(param.name, raw[:count], value)
        array = marshal.elements(leaf, raw, count)

        def fill(value: Any) -> None:
            if value is not array:
                array[...] = value

        return array, fill

    def _elements(self, param: marshal.Param, kind: marshal.SequenceOf, count: int) -> tuple[Any, Answer]:
        came_kind, back_kind = marshal.parts(kind.element, param.mode)
        came = _shares(param, came_kind, next(self._inputs), count)
        block = memoryview(b"") if back_kind is None else next(self._outputs)
        if back_kind is not None:
            _shares(param, back_kind, block, count)
        both = [
            self.value(param._replace(name=f"{param.name}[{at}]", kind=kind.element), share)
            for at, share in enumerate(came)
        ]

        def answer(values: Any) -> None:
            if len(values) != count:
                raise TypeError(f"{param.name} has {len(values)} elements; fill all {count} that it came with.")
            made = [write(value) for (_, write), value in zip(both, values, strict=True)]
            if back_kind is not None:
                raw = bytes((back_kind * count)(*made))
                block[: len(raw)] = raw

        return [value for value, _ in both], answer

    def _record(self, param: marshal.Param, kind: type[marshal.Record], came: Any) -> tuple[Any, Answer]:
        both = {
            name: self.value(param._replace(name=f"{param.name}.{name}", kind=each), getattr(came, name, None))
            for name, each in kind.FIELDS
        }
        back_kind = marshal.parts(kind, param.mode)[1]

        def answer(value: Any) -> Any:
            made = {name: write(getattr(value, name)) for name, (_, write) in both.items()}
            return None if back_kind is None else marshal.structure(back_kind, made)

        return kind(**{name: value for name, (value, _) in both.items()}), answer


def _shares(param: marshal.Param, kind: Any, raw: memoryview, count: int) -> Any:
    """The values of a sequence's elements in their block."""
    if count * ctypes.sizeof(kind) > len(raw):
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{param.name} has {count} elements of {ctypes.sizeof(kind)} bytes, but its block has {len(raw)} bytes.",
        )
    return (kind * count).from_buffer_copy(raw)


def elements(param: marshal.Param, count: int, came: memoryview | None, back: memoryview | None) -> NDArray[Any]:
    """The array of a sequence: a view of its output buffer if it has one, with the input's contents."""
    given = None if came is None else marshal.elements(param, came, count)
    if back is None:
        return cast("NDArray[Any]", given)
    array = marshal.elements(param, back, count)
    if given is not None:
        array[:] = given
    return array


def write_text(name: str, room: memoryview, value: Any) -> None:
    """Write a ``rout`` string with its NUL.

    Raises:
        AeeError: AEE_EBUFFERTOOSMALL of the DSP side.
    """
    raw = str(value).encode() + b"\0"
    if len(raw) > len(room):
        raise AeeError(
            on_dsp(Aee.AEE_EBUFFERTOOSMALL), f"The string {name} takes {len(raw)} bytes; there is room for {len(room)}."
        )
    room[: len(raw)] = raw
