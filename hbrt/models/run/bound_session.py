"""A session with its inputs and outputs bound to memory: kept bindings make a run as cheap as onnxruntime's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any

import numpy as np

from hbrt.borders.interrupts import let_out
from hbrt.models.run import ort_nibbles
from hbrt.models.run.ort_session import check_shape, run_failed
from hbrt.models.run.stop import Stop

if TYPE_CHECKING:
    import onnxruntime as ort
    from numpy.typing import NDArray

Values = dict[str, Any]  # numpy arrays, or OrtValues of what only onnxruntime knows
Outputs = dict[str, "NDArray[Any] | None"]


class BoundSession:
    """One run of a session at a time. What lies at the same place as in the last run is not bound again."""

    def __init__(
        self,
        session: ort.InferenceSession,
        inputs: Sequence[str],
        outputs: Sequence[str],
        buffers: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Bind what has a place already.

        Args:
            session: May be shared by several.
            inputs: Names of its inputs.
            outputs: Names of those of its outputs that are wanted.
            buffers: Arrays that stay in place, by name.
        """
        fixed = buffers or {}
        self._session = session
        self._binding = session.io_binding()
        self._bound: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._held: list[Any] = []  # a binding does not keep the memory of an OrtValue
        self._inputs = [name for name in inputs if name not in fixed]
        self._outputs = [name for name in outputs if name not in fixed]
        self._places = {name: at for at, name in enumerate(outputs)}
        for name in inputs:
            if name in fixed:
                self._bind(self._binding.bind_input, name, fixed[name])
        for name in outputs:
            if name in fixed:
                self._bind(self._binding.bind_output, name, fixed[name])
            else:
                self._binding.bind_output(name)

    is_usable = True

    def close(self) -> None:
        """Nothing is held but memory."""

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any = None) -> None:
        """Run the session.

        Args:
            values: Has the inputs, and gets the outputs: the array that was wanted, or an OrtValue.
            outputs: Where results are wanted; None, or no entry, for a new OrtValue.
            stop: Ends it at the next node.
            ctrl: Of no matter here.

        Raises:
            GraphError: RUN_FAILED with onnxruntime's reason.
        """
        del ctrl
        if not self._places:  # a model that hands its inputs on
            return
        binding = self._binding
        new = []
        try:
            for name in self._inputs:
                self._bind_input(name, values[name])
            for name in self._outputs:
                target = outputs.get(name)
                if target is None or target.dtype.kind == "V":
                    self._bound.pop(name, None)
                    binding.bind_output(name)
                    new.append(name)
                else:
                    self._bind(binding.bind_output, name, target)
                    values[name] = target
            self._session.run_with_iobinding(binding, stop.run_options)
            if new:
                made = binding.get_outputs()
                values.update((name, made[self._places[name]]) for name in new)
        except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions share no base
            let_out(error)
            raise run_failed(error) from None
        finally:
            self._held.clear()

    def _bind_input(self, name: str, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype.kind != "V":
            self._bind(self._binding.bind_input, name, value)
        else:
            self._bound.pop(name, None)
            given = ort_nibbles.value_of(value) if isinstance(value, np.ndarray) else value
            self._binding.bind_ortvalue_input(name, given)
            self._held.append(given)

    def _bind(self, bind: Callable[..., None], name: str, array: NDArray[Any]) -> None:
        place = (address_of(array), array.shape)
        if self._bound.get(name) != place:
            bind(name, "cpu", 0, array.dtype, array.shape, place[0])
            self._bound[name] = place


def address_of(array: NDArray[Any]) -> int:
    """Where an array lies in this process."""
    try:
        # A quarter of what the array interface takes.
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # it is a buffer
    except (TypeError, ValueError):  # read-only, of no bytes, not contiguous, of a type that buffers do not know
        address: int = array.__array_interface__["data"][0]
        return address


def array_of(value: Any) -> NDArray[Any]:
    """A value as an array, without a copy but for four-bit numbers, which onnxruntime packs."""
    return value if isinstance(value, np.ndarray) else ort_nibbles.array_of(value)


def deliver(name: str, target: NDArray[Any] | None, values: Values) -> NDArray[Any]:
    """A result where it is wanted, or as an array that no later run touches.

    Raises:
        GraphError: RUN_FAILED: it is not as large as the model said.
    """
    value = values[name]
    made = array_of(value)
    if made is target:
        return made
    if target is None:
        return made.copy() if value is made else made
    check_shape(name, made, target)
    target[...] = made
    return target
