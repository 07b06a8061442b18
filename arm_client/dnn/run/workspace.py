"""What one run of a model with layers works in: its buffers, bindings and layers. One task at a time uses it.

Values beside a layer lie in device memory; values between segments stay where onnxruntime can use them as they are.
Buffers of known size are made and bound once. The caller's tensors are used where they lie.
"""

from __future__ import annotations

import traceback
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.cabi.last_error import last_error, note
from arm_client.dnn.cores.stop import Stop
from arm_client.dnn.errors import ModelError
from arm_client.dnn.layers.layer import Layer, TensorType, tear_down
from arm_client.dnn.layers.ndarray import NDArray
from arm_client.dnn.run.bound_session import BoundSession, Outputs, Values, array_of, deliver
from arm_client.dnn.run.device import Device
from arm_client.dnn.run.steps import BuiltLayer, BuiltSegment, LayeredPlan, StepTime, infer_shape
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray as Array

    from hbrt.dnn_types import hbDNNInferCtrlParam


class Workspace:
    """The buffers and layers of one run at a time."""

    def __init__(self, plan: LayeredPlan) -> None:
        """Allocate what is of known size.

        Raises:
            ModelError: OUT_OF_MEMORY; RUN_TASK_FAILED: a layer cannot be made.
        """
        self.device = Device()
        self._layers: list[Layer] = []
        try:
            self._layers += plan.layers()
            self._buffers = self._allocate(plan)
            layers = iter(self._layers)
            self._steps: list[_SegmentRun | _LayerRun] = [
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
        ctrl: hbDNNInferCtrlParam,
        observer: Callable[[StepTime], None] | None,
    ) -> dict[str, Array[Any]]:
        """Run once; see ``Plan.run``."""
        values: Values = self._buffers | feeds
        start = perf_counter_ns() if observer is not None else 0
        for step in self._steps:
            if stop.is_set:
                raise ModelError(
                    Status.HB_DNN_RUN_TASK_FAILED,
                    f"The task was ended before {step.info.name} ({step.info.processor}).",
                )
            step.run(values, outputs, stop, ctrl)
            if observer is not None:
                end = perf_counter_ns()
                observer(StepTime(step.info.name, step.info.processor, start, end))
                start = end
        return {name: deliver(name, target, values) for name, target in outputs.items()}

    def close(self) -> None:
        """Let the layers free what they keep, then free the buffers."""
        for layer in self._layers:
            tear_down(layer)
        self._layers.clear()
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
    """A segment bound to the buffers of a workspace."""

    def __init__(self, segment: BuiltSegment, buffers: dict[str, Array[Any]]) -> None:
        self.info = segment.info
        self._bound = BoundSession(segment.session, segment.inputs, segment.outputs, buffers)

    def run(self, values: Values, outputs: Outputs, stop: Stop, _ctrl: hbDNNInferCtrlParam) -> None:
        """Run the session; see ``BoundSession.run``."""
        self._bound.run(values, outputs, stop)


class _LayerRun:
    """A layer with the views that it is given."""

    def __init__(self, step: BuiltLayer, layer: Layer, device: Device, buffers: dict[str, Array[Any]]) -> None:
        self.info = step.info
        self._node = step.node
        self._layer = layer
        self._device = device
        self._bottom: list[Any] = [device.ndarray(buffers[name]) if name in buffers else None for name in step.inputs]
        self._top: list[Any] = [device.ndarray(buffers[name]) if name in buffers else None for name in step.outputs]
        self._open_bottom = [(at, name) for at, name in enumerate(step.inputs) if name and name not in buffers]
        self._open_top = [(at, name) for at, name in enumerate(step.outputs) if name and name not in buffers]
        self._scratch: dict[str, Array[np.uint8]] = {}
        self._seen: dict[str, tuple[tuple[Any, ...], NDArray]] = {}
        self._copies: list[tuple[str, Array[Any]]] = []  # results that go to a tensor which no layer may see

    def run(self, values: Values, outputs: Outputs, _stop: Stop, ctrl: hbDNNInferCtrlParam) -> None:
        """Run Forward.

        Raises:
            ModelError: RUN_TASK_FAILED: it returns something else than 0, or raises.
        """
        for at, name in self._open_bottom:
            self._bottom[at] = self._given(name, values[name])
        if self._open_top:
            self._place_tops(values, outputs)
        note(0, "")
        try:
            status: object = self._layer.Forward([*self._bottom], [*self._top], ctrl)  # it may edit its lists
        except (Exception, SystemExit) as error:  # a program's own code raises anything
            raise self._failure(f"raised {type(error).__name__}: {error}\n{traceback.format_exc()}") from error
        if status != 0 or status is False:
            why = " (return 0 for success)" if not isinstance(status, int) or status is False else ""
            said = last_error()
            raise self._failure(f"returned {status!r}{why}.{f' {said}' if said else ''}")
        for name, target in self._copies:
            target[...] = values[name]
            values[name] = target

    def _place_tops(self, values: Values, outputs: Outputs) -> None:
        bottom = [None if view is None else TensorType(tuple(view.Shape()), view.dtype) for view in self._bottom]
        types = infer_shape(self._layer, bottom, self._node)
        self._copies.clear()
        for at, name in self._open_top:
            shape, dtype = types[at]
            if shape is None or min(shape, default=0) < 0:
                raise self._failure(f"has an InferShape that gives {name!r} the shape {shape} for inputs {bottom}.")
            target = outputs.get(name)
            if target is not None and (target.shape != tuple(shape) or target.dtype != dtype):
                raise self._failure(
                    f"makes {name!r} with type {dtype} and shape {list(shape)}, where {target.dtype} and "
                    f"{list(target.shape)} are wanted."
                )
            view = self._view(name, target) if target is not None else None
            if view is None:
                view = self._device.ndarray(self._room(name, tuple(shape), np.dtype(dtype)))
                if target is not None:
                    self._copies.append((name, target))
                    target = None
            self._top[at], values[name] = view, view.numpy() if target is None else target

    def _given(self, name: str, value: Any) -> NDArray:
        """A layer's view of an input that changes its place."""
        array = array_of(value)
        view = self._view(name, array)
        if view is None:
            copy = self._room(name, array.shape, array.dtype)
            copy[...] = array
            view = self._device.ndarray(copy)
        return view

    def _view(self, name: str, array: Array[Any]) -> NDArray | None:
        """A view of an array that lies in device memory; None for another. The last one of a value is kept."""
        key = (array.__array_interface__["data"][0], array.shape, array.dtype)
        seen = self._seen.get(name)
        if seen is not None and seen[0] == key:
            return seen[1]
        at = self._device.address_of(array)
        if at is None:
            return None
        view = NDArray(array, at)
        self._seen[name] = (key, view)
        return view

    def _room(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array[Any]:
        """An array in device memory of this value's own, which grows when it has to."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        have = self._scratch.get(name)
        if have is None or len(have) < size:
            have = self._scratch[name] = self._device.array((max(size, 64),), np.dtype(np.uint8))
        return have[:size].view(dtype).reshape(shape)

    def _failure(self, what: str) -> ModelError:
        return ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The layer {self._node.op_type} (node {self._node.name!r}, {type(self._layer).__name__}) {what}",
        )
