"""The buffers, bindings and layers for one run of a model with layers. Used by one task at a time.

Values next to a layer are in device memory; values between segments stay where onnxruntime can use them directly.
Buffers of known size are created and bound once. The caller's tensors are used in place.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from hbrt.borders.addresses import address_of
from hbrt.models.errors import GraphError, Reason
from hbrt.models.run.bound_session import Outputs, Values, array_of, deliver
from hbrt.models.run.layer import Device, Layer, TensorType
from hbrt.models.run.steps import BuiltLayer, BuiltSegment, LayeredPlan, StepTime, said
from hbrt.models.run.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray as Array


class Workspace:
    """The buffers and layers of one run at a time."""

    def __init__(self, plan: LayeredPlan) -> None:
        """Allocate values of known size.

        Raises:
            GraphError: NO_MEMORY; RUN_FAILED: a layer cannot be created.
        """
        self.device = plan.new_device()
        self._layers: list[Layer] = []
        self._steps: list[_SegmentRun | _LayerRun] = []
        try:
            self._layers += plan.layers()
            self._buffers = self._allocate(plan)
            layers = iter(self._layers)
            self._steps += [
                _LayerRun(step, next(layers), self.device, self._buffers)
                if isinstance(step, BuiltLayer)
                else _SegmentRun(step, self._buffers)
                for step in plan.steps
            ]
        except BaseException:
            self.close()
            raise

    def run(
        self,
        feeds: dict[str, Array[Any]],
        outputs: Outputs,
        stop: Stop,
        ctrl: Any,
        observer: Callable[[StepTime], None] | None,
    ) -> dict[str, Array[Any]]:
        """Run once; see ``Plan.run``."""
        values: Values = self._buffers | feeds
        start = perf_counter_ns() if observer is not None else 0
        for step in self._steps:
            if stop.is_set:
                raise GraphError(
                    Reason.RUN_FAILED,
                    f"The task was canceled before {step.info.name} ({step.info.processor}).",
                )
            step.run(values, outputs, stop, ctrl)
            if observer is not None:
                end = perf_counter_ns()
                observer(StepTime(step.info.name, step.info.processor, start, end))
                start = end
        return {name: deliver(name, target, values) for name, target in outputs.items()}

    def close(self) -> None:
        """Let the layers free their resources, then free the buffers."""
        for layer in self._layers:
            layer.tear_down()
        self._layers.clear()
        for step in self._steps:
            if isinstance(step, _SegmentRun):
                step.close()
        self._steps.clear()
        self.device.close()

    def _allocate(self, plan: LayeredPlan) -> dict[str, Array[Any]]:
        buffers: dict[str, Array[Any]] = {}
        beside = {
            name
            for step in plan.steps
            if isinstance(step, BuiltLayer)
            for name in (*step.inputs, *step.outputs)
            if name
        }
        for name in (*beside, *plan.graph.outputs):
            constant = plan.graph.constant(name)
            if constant is not None:
                buffers[name] = self.device.array(constant.shape, constant.dtype)
                buffers[name][...] = constant
        for name, (shape, dtype) in plan.static.items():
            buffers[name] = self.device.array(shape, dtype) if name in beside else np.empty(shape, dtype)
        return buffers


class _SegmentRun:
    """A segment bound to a workspace's buffers."""

    def __init__(self, segment: BuiltSegment, buffers: dict[str, Array[Any]]) -> None:
        self.info = segment.info
        self._bound = segment.session.bind(segment.inputs, segment.outputs, buffers)

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> None:
        """Run the session; see ``BoundSession.run``."""
        self._bound.run(values, outputs, stop, ctrl)

    def close(self) -> None:
        """Free the binding."""
        self._bound.close()


class _LayerRun:
    """A layer with its views."""

    def __init__(self, step: BuiltLayer, layer: Layer, device: Device, buffers: dict[str, Array[Any]]) -> None:
        self.info = step.info
        self._node = step.node
        self._layer = layer
        self._device = device
        self._bottom: list[Any] = [device.view(buffers[name]) if name in buffers else None for name in step.inputs]
        self._top: list[Any] = [device.view(buffers[name]) if name in buffers else None for name in step.outputs]
        self._types = [_type_of(buffers[name]) if name in buffers else None for name in step.inputs]
        self._open_bottom = [(at, name) for at, name in enumerate(step.inputs) if name and name not in buffers]
        self._open_top = [(at, name) for at, name in enumerate(step.outputs) if name and name not in buffers]
        self._scratch: dict[str, Array[np.uint8]] = {}
        self._seen: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self._copies: list[tuple[str, Array[Any]]] = []  # results for a tensor that layers must not see

    def run(self, values: Values, outputs: Outputs, _stop: Stop, ctrl: Any) -> None:
        """Run the layer; its exceptions propagate."""
        for at, name in self._open_bottom:
            array = array_of(values[name])
            self._bottom[at], self._types[at] = self._given(name, array), _type_of(array)
        if self._open_top:
            self._place_tops(values, outputs)
        self._layer.forward([*self._bottom], [*self._top], ctrl)  # the layer may modify its lists
        for name, target in self._copies:
            target[...] = values[name]
            values[name] = target

    def _place_tops(self, values: Values, outputs: Outputs) -> None:
        types = self._layer.infer_shape([*self._types])
        self._copies.clear()
        for at, name in self._open_top:
            shape, dtype = types[at]
            if shape is None or min(shape, default=0) < 0:
                raise self._failure(f"returned the shape {shape} for {name!r} with inputs {self._types}.")
            target = outputs.get(name)
            if target is not None and (target.shape != tuple(shape) or target.dtype != dtype):
                raise self._failure(
                    f"produces {name!r} with type {dtype} and shape {list(shape)}, but {target.dtype} and "
                    f"{list(target.shape)} are expected."
                )
            view = self._view(name, target) if target is not None else None
            if view is None:
                if target is not None:
                    self._copies.append((name, target))
                target = self._room(name, tuple(shape), np.dtype(dtype))
                view = self._device.view(target)
            self._top[at], values[name] = view, target

    def _given(self, name: str, array: Array[Any]) -> Any:
        """Return a layer's view of an input whose address may change."""
        view = self._view(name, array)
        if view is None:
            copy = self._room(name, array.shape, array.dtype)
            copy[...] = array
            view = self._device.view(copy)
        return view

    def _view(self, name: str, array: Array[Any]) -> Any:
        """Return a view of an array that a layer may see, else None. A value's last view is cached."""
        key = (address_of(array), array.shape, array.dtype)
        seen = self._seen.get(name)
        if seen is not None and seen[0] == key:
            return seen[1]
        view = self._device.view(array)
        if view is not None:
            self._seen[name] = (key, view)
        return view

    def _room(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array[Any]:
        """Return this value's own array in device memory, which grows as needed."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        have = self._scratch.get(name)
        if have is None or len(have) < size:
            have = self._scratch[name] = self._device.array((max(size, 64),), np.dtype(np.uint8))
        return have[:size].view(dtype).reshape(shape)

    def _failure(self, what: str) -> GraphError:
        return GraphError(
            Reason.RUN_FAILED,
            f"The layer {said(self._node)} {what}",
        )


def _type_of(array: Array[Any]) -> TensorType:
    return TensorType(array.shape, array.dtype)
