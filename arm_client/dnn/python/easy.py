"""The Pythonic model API, modeled on the board's own pyeasy_dnn.

    from arm_client import dnn

    (model,) = dnn.load("digits_int8.onnx")
    print(model.inputs[0].properties)
    (logits,) = model(picture)  # real numbers in, real numbers out
    outputs = model.forward(stored)  # stored values, as on the board
    print(outputs[0].buffer)

Failures raise ``arm_client.errors.HbrtError`` with the status that the C function would return.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.arrays import asked
from arm_client.cabi.arguments import short_repr
from arm_client.dnn.capi.arguments import path_behind
from arm_client.dnn.capi.runtime import Loaded, runtime
from arm_client.dnn.errors import ModelError, bad_argument, one_line
from arm_client.dnn.python.buffers import TensorBuffer
from arm_client.dnn.python.runner import Runner, control
from arm_client.dnn.spec.dtypes import LIMITS
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.errors import error_for
from arm_client.session.process import process
from hbrt.dnn_types import hbDNNHandle_t, hbDNNTensorShape
from hbrt.models.spec import quantization
from hbrt.models.spec.spec import Quantization, QuantizationKind
from hbrt.status import Status

_EMPTY: NDArray[Any] = np.empty(0)
_MAX_LATENCIES = 100
_left: deque[Callable[[], object]] = deque()  # left by finalizers that could not take the lock


@dataclass(frozen=True)
class TensorProperties:
    """A tensor's properties as in pyeasy_dnn, plus those that only the C structure has.

    Attributes:
        tensor_type: "NV12", "RGB" and so on for pictures, else the name of ``dtype``.
        dtype: Type of the stored values, by its numpy name.
        layout: "NHWC", "NCHW" or "NONE".
        shape: Sizes of the data, -1 where dynamic.
        aligned_shape: Sizes as laid out in memory.
        stride: Bytes between neighbors along each dimension.
        aligned_byte_size: Bytes of memory; -1 when dynamic.
        quanti_type: "NONE", "SHIFT" or "SCALE".
        scale_data: (n,) float32; empty except for SCALE.
        zero_point_data: (n,) int32; empty except for SCALE.
        shift_data: (n,) uint8; empty except for SHIFT.
        quantize_axis: The dimension that n counts; meaningless when n is 1.
    """

    tensor_type: str
    dtype: str
    layout: str
    shape: tuple[int, ...]
    aligned_shape: tuple[int, ...]
    stride: tuple[int, ...]
    aligned_byte_size: int
    quanti_type: str
    scale_data: NDArray[np.float32]
    zero_point_data: NDArray[np.int32]
    shift_data: NDArray[np.uint8]
    quantize_axis: int

    @cached_property
    def validShape(self) -> Any:
        """Pointer to an ``hbDNNTensorShape`` with ``shape``, for programs that fill C structures with ctypes."""
        return _shape_behind(self.shape)

    @cached_property
    def alignedShape(self) -> Any:
        """Like ``validShape``, with ``aligned_shape``."""
        return _shape_behind(self.aligned_shape)


class Tensor:
    """An input or output of a model.

    Attributes:
        name: As in the graph.
        properties: Type, layout, sizes and quantization.
        buffer: Stored values of an output returned by ``forward``; empty for a model's own tensors.
        takes_real: Whether calling the model converts real numbers for it.
    """

    def __init__(self, spec: TensorSpec) -> None:
        self.name = spec.name
        self.spec = spec
        self.properties = properties_of(spec)
        self.buffer = _EMPTY
        is_float = np.issubdtype(spec.graph_dtype, np.floating)
        self.takes_real = spec.image is None and (spec.quantization is not None or bool(is_float))

    def holding(self, values: NDArray[Any]) -> Tensor:
        """Return this tensor with stored values."""
        made = object.__new__(Tensor)  # copy() takes longer than the rest of a result
        made.__dict__.update(self.__dict__)
        made.buffer = values
        return made

    def quantize(self, values: ArrayLike) -> NDArray[Any]:
        """Convert real numbers to stored values; for an unquantized tensor, only the type changes."""
        if self.spec.quantization is None:
            return np.asarray(values).astype(self.spec.graph_dtype)
        limits = LIMITS.get(self.spec.tensor_type)
        return quantization.quantize(values, self.spec.quantization, self.spec.graph_dtype, limits=limits)

    def dequantize(self, stored: ArrayLike | None = None) -> NDArray[Any]:
        """Convert stored values (``buffer`` by default) to real numbers; unchanged if unquantized."""
        values = self.buffer if stored is None else np.asarray(stored)
        if self.spec.quantization is None:
            return values
        return quantization.dequantize(values, self.spec.quantization)

    def __repr__(self) -> str:
        """Name, type, layout and shape."""
        shown = self.properties
        return f"<Tensor {self.name!r} {shown.tensor_type} {shown.layout} {list(shown.shape)}>"


class Model:
    """One loaded model. Several threads may call it at once; their runs share the two BPU cores.

    Attributes:
        name: As in the model.
        handle: Handle for the C functions; valid as long as the model.
        inputs: Its inputs, in the graph's order.
        outputs: Its outputs, in the graph's order.
    """

    def __init__(self, packed: _Packed, loaded: Loaded) -> None:
        """Created by ``load``."""
        self._packed = packed
        self.handle = hbDNNHandle_t(loaded.handle)
        self.name = loaded.model.name
        self.inputs = tuple(Tensor(spec) for spec in loaded.model.inputs)
        self.outputs = tuple(Tensor(spec) for spec in loaded.model.outputs)
        self._lock = threading.Lock()
        self._idle: list[Runner] = []
        self._latencies: deque[float] = deque(maxlen=_MAX_LATENCIES)
        self._is_open = any(spec.is_dynamic for spec in loaded.model.inputs)

    @property
    def estimate_latency(self) -> float:
        """Milliseconds per run: median of the last 100 runs on this machine; nan before the first.

        On the board it is the compiler's estimate.
        """
        with self._lock:
            return float(np.median(self._latencies)) if self._latencies else float("nan")

    def forward(
        self,
        inputs: ArrayLike | Sequence[ArrayLike],
        core_id: int = 0,
        priority: int = 0,
        *,
        timeout_ms: int = 0,
        custom_id: int = 0,
    ) -> tuple[Tensor, ...]:
        """Run the model on stored values, as the board's forward does.

        Args:
            inputs: An array for a model with one input, else a list or tuple of arrays in the order of ``inputs``, with
                the tensor's dtype and shape (dimensions of 1 may be omitted, or all values be in one row); pictures as
                bytes (NV12: Y, then UV).
            core_id: 0 any core, 1 core 0, 2 core 1.
            priority: 0..255, larger first.
            timeout_ms: Time limit in milliseconds; 0 for none.
            custom_id: Smaller first among tasks of equal priority.

        Returns:
            The outputs, with the stored values in ``buffer`` as separate arrays.

        Raises:
            HbrtError: an input does not fit, or the task failed. TimeoutError: it took too long and was canceled.
        """
        return self._run(self._as_list(inputs), timeout_ms, core_id, priority, custom_id)

    def _run(self, arrays: list[NDArray[Any]], timeout_ms: int, *how: int) -> tuple[Tensor, ...]:
        """As ``forward``, of one array an input; ``how`` is for ``control``."""
        shapes = None
        if self._is_open:
            pairs = zip(self.inputs, arrays, strict=True)
            shapes = tuple(array.shape if tensor.spec.is_dynamic else None for tensor, array in pairs)
        try:
            runner = self._take(shapes)
            try:
                for buffer, array in zip(runner.inputs, arrays, strict=True):
                    buffer.put(array)
                latency = runner.run(control(*how), timeout_ms)
                pairs_out = zip(self.outputs, runner.outputs, strict=True)
                results = tuple(tensor.holding(buffer.get()) for tensor, buffer in pairs_out)
            finally:
                self._idle.append(runner)
        except ModelError as error:
            raise error_for(error.status, str(error)) from None
        with self._lock:
            self._latencies.append(latency)
        return results

    def __call__(
        self, *inputs: ArrayLike | Sequence[ArrayLike], core_id: int = 0, priority: int = 0, timeout_ms: int = 0
    ) -> list[NDArray[Any]]:
        """Run the model on real numbers: quantized inputs are quantized, quantized outputs dequantized.

        Args:
            inputs: One array per input, in order, or a list or tuple of them. Real numbers are converted to the input's
                type; integers for a quantized input are stored values, and pictures are bytes as for ``forward``.
            core_id: 0 any core, 1 core 0, 2 core 1.
            priority: 0..255, larger first.
            timeout_ms: Time limit in milliseconds; 0 for none.

        Returns:
            One array per output.

        Raises:
            HbrtError, TimeoutError: as for ``forward``.
        """
        given: Any = inputs
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            is_list_of_inputs = len(self.inputs) > 1 or all(isinstance(one, np.ndarray) for one in inputs[0])
            given = inputs[0] if is_list_of_inputs else inputs
        stored = []
        for tensor, value in zip(self.inputs, self._as_list(given), strict=True):
            is_stored = value.dtype.kind != "f" or not tensor.takes_real
            stored.append(value if is_stored else tensor.quantize(value))
        return [output.dequantize() for output in self._run(stored, timeout_ms, core_id, priority)]

    def __repr__(self) -> str:
        """Name and tensors."""
        return f"<Model {self.name!r}: {list(self.inputs)} -> {list(self.outputs)}>"

    def _as_list(self, inputs: Any) -> list[NDArray[Any]]:
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            error = bad_argument(f"The model {self.name} has {len(self.inputs)} inputs ({names}), not {len(given)}.")
            raise error_for(error.status, str(error))
        return [_array(tensor.name, value) for tensor, value in zip(self.inputs, given, strict=True)]

    def _take(self, shapes: tuple[tuple[int, ...] | None, ...] | None) -> Runner:
        """Tensors that nobody uses, for inputs of these shapes. They keep the room of the largest that they held."""
        _finish_what_was_left()
        try:
            runner = self._idle.pop()
        except IndexError:
            specs = [tensor.spec for tensor in self.inputs]
            runner = Runner(self.handle, specs, [tensor.spec for tensor in self.outputs], shapes=shapes)
            weakref.finalize(runner, _free, [*runner.inputs, *runner.outputs])
            return runner
        if shapes is not None:
            try:
                runner.reshape(shapes)
            except BaseException:
                self._idle.append(runner)
                raise
        return runner


class _Packed:
    """A packed handle, released with the last of its models."""

    def __init__(self, handle: int) -> None:
        weakref.finalize(self, _finish, partial(_release, handle))


def _release(handle: int) -> None:
    with suppress(ModelError):  # a program released the handle itself, or is running the model, which then stays loaded
        runtime.release(handle)


def _finish(action: Callable[[], object]) -> None:
    """Do a finalizer's work, or defer it to the next load or run when its lock is held.

    The garbage collector may run it in the middle of a request, in the thread that holds the lock.
    """
    session = process.default
    if (session is not None and session.is_busy) or runtime.tasks.is_locked:
        _left.append(action)
    else:
        action()


def _finish_what_was_left() -> None:
    while _left:
        try:
            action = _left.popleft()
        except IndexError:
            return  # another thread took the last one
        action()


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
        if array.dtype != object:
            return array
        why = f"{short_repr(value)} is not an array of numbers"
    except (ValueError, TypeError) as error:
        why = one_line(error)
    raise error_for(Status.HB_DNN_INVALID_ARGUMENT, f"{name!r}: {why}; pass one array per input, in the model's order.")


def _free(buffers: list[TensorBuffer]) -> None:
    for buffer in buffers:
        buffer.free_later()


def load(source: str | os.PathLike[str] | bytes | Sequence[str | os.PathLike[str]]) -> list[Model]:
    """Load models.

    Args:
        source: A model file, several of them, or the bytes of one model. A YAML file next to a model file adds what a
            compiled model would contain; see docs/dnn-tensors.md.

    Returns:
        The models, in the order of the files. Each stays loaded while it or another model from the same call is in use.

    Raises:
        HbrtError: a file cannot be read, or the runtime cannot run the model; the text says why.
    """
    _finish_what_was_left()
    packed = asked(lambda: runtime.initialize(_sources(source)))
    owner = _Packed(packed)
    return [Model(owner, loaded) for loaded in runtime.packed.get(packed).models]


def _sources(source: Any) -> list[Path | bytes | memoryview]:
    """Return what to load: bytes or paths.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return [bytes(source)]
    try:
        files = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    except TypeError:
        files = []
    if not files or not all(isinstance(file, (str, bytes, os.PathLike)) for file in files):
        raise bad_argument(
            f"The source is {short_repr(source)}; pass a model file, a list of files, or the bytes of one model."
        )
    return [path_behind(file) for file in files]


def _shape_behind(sizes: tuple[int, ...]) -> Any:
    shape = hbDNNTensorShape(numDimensions=len(sizes))
    shape.dimensionSize[: len(sizes)] = sizes
    return ctypes.pointer(shape)


def properties_of(spec: TensorSpec) -> TensorProperties:
    """Return a tensor's properties as in pyeasy_dnn."""
    rule = spec.quantization or Quantization(QuantizationKind.NONE)
    dtype = np.dtype(np.uint8) if spec.image else spec.graph_dtype
    return TensorProperties(
        tensor_type=spec.tensor_type.name.removeprefix("HB_DNN_IMG_TYPE_") if spec.image else dtype.name,
        dtype=dtype.name,
        layout=spec.layout.name.removeprefix("HB_DNN_LAYOUT_"),
        shape=spec.valid_shape,
        aligned_shape=spec.aligned_shape,
        stride=spec.stride,
        aligned_byte_size=spec.aligned_bytes,
        quanti_type=rule.kind.name,
        scale_data=rule.scale,
        zero_point_data=rule.zero_point,
        shift_data=rule.shift,
        quantize_axis=rule.axis,
    )
