"""A session with inputs and outputs bound to memory: cached bindings make a run as cheap as onnxruntime's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hbrt.borders.addresses import address_of
from hbrt.borders.interrupts import let_out
from hbrt.models.run import ort_nibbles
from hbrt.models.run.ort_session import check_shape, run_failed
from hbrt.models.run.stop import Stop

if TYPE_CHECKING:
    import onnxruntime as ort
    from numpy.typing import NDArray

Values = dict[str, Any]  # numpy arrays, or OrtValues of types only onnxruntime knows
Outputs = dict[str, "NDArray[Any] | None"]


class BoundSession:
    """Runs a session, one run at a time. A value at the same address as in the last run is not bound again."""

    def __init__(
        self,
        session: ort.InferenceSession,
        inputs: Sequence[str],
        outputs: Sequence[str],
        buffers: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Bind the values that already have an address.

        Args:
            session: May be shared.
            inputs: Names of its inputs.
            outputs: Names of the requested outputs.
            buffers: Arrays with fixed addresses, by name.
        """
        fixed = buffers or {}
        self._session = session
        self._binding = session.io_binding()
        self._bound: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._held: list[Any] = []  # a binding does not keep an OrtValue's memory alive
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
        """Do nothing: it only holds memory."""

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any = None) -> None:
        """Run the session.

        Args:
            values: Contains the inputs, and receives the outputs: the given array, or an OrtValue.
            outputs: Where to store results; None or no entry for a new OrtValue.
            stop: Ends it at the next node.
            ctrl: Unused here.

        Raises:
            GraphError: RUN_FAILED with onnxruntime's reason.
        """
        del ctrl
        if not self._places:  # a model that passes inputs through
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


def array_of(value: Any) -> NDArray[Any]:
    """Return a value as an array, copying only four-bit numbers, which onnxruntime packs."""
    return value if isinstance(value, np.ndarray) else ort_nibbles.array_of(value)


def deliver(name: str, target: NDArray[Any] | None, values: Values) -> NDArray[Any]:
    """Store a result in the given place, or return it as an array that later runs leave alone.

    Raises:
        GraphError: RUN_FAILED: its size differs from the model's.
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
