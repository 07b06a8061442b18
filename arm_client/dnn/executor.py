"""Runs a model's graph: a Plan is made once, and run with arrays over device memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import onnxruntime as ort

from arm_client.dnn.errors import ModelError, incompatible, invalid, one_line
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto

    from hbrt.dnn_types import hbDNNInferCtrlParam

# Up to here a copy of the outputs costs less than binding them, which is some 30 us of Python in onnxruntime 1.31.
_MOST_COPIED_BYTES = 64 << 10
_QUIET = 4  # onnxruntime's own log: fatal alone; what it says comes back as a sentence


class Stop:
    """Stops one task: onnxruntime looks at ``run_options.terminate`` between nodes, a plan between segments."""

    __slots__ = ("run_options",)

    def __init__(self) -> None:
        self.run_options = ort.RunOptions()
        self.run_options.log_severity_level = _QUIET

    def set(self) -> None:
        """Ask for the end."""
        self.run_options.terminate = True

    @property
    def is_set(self) -> bool:
        """Whether the end was asked for."""
        return bool(self.run_options.terminate)


def thread_count() -> int:
    """Threads of one session: HB_MAX_THREAD_NUM, else half of the CPUs, as two BPU cores share them."""
    text = os.environ.get("HB_MAX_THREAD_NUM", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    return max(1, len(os.sched_getaffinity(0)) // 2)


def session_options() -> ort.SessionOptions:
    """Options of every session that a plan makes; benchmarks give them to bare onnxruntime as well."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = thread_count()
    options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    return options


def make_session(model_bytes: bytes, label: str) -> ort.InferenceSession:
    """An onnxruntime session on the CPU.

    Raises:
        ModelError: INVALID_MODEL or INCOMPATIBLE_MODEL, with onnxruntime's reason.
    """
    try:
        return ort.InferenceSession(model_bytes, session_options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its exceptions share no base; each is a model that it refused
        text = one_line(error)
        is_unknown = type(error).__name__ == "NotImplemented" or any(
            sign in text for sign in ("is not a registered function/op", "opset", "NOT_IMPLEMENTED", "kernel")
        )
        refuse = incompatible if is_unknown else invalid
        raise refuse(f"onnxruntime refuses {label}: {text}") from None


class Plan:
    """How one model is run. Threads may run it at once."""

    def __init__(self, proto: ModelProto, label: str) -> None:
        """Prepare a checked model.

        Raises:
            ModelError: INVALID_MODEL or INCOMPATIBLE_MODEL.
        """
        self._session = make_session(proto.SerializeToString(), label)

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        outputs: dict[str, NDArray[Any] | None],
        stop: Stop,
        ctrl: hbDNNInferCtrlParam | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Run once.

        Args:
            feeds: Inputs by name: C-contiguous, of the graph's type and shape. They are not copied.
            outputs: C-contiguous arrays that results are written to, by name; None where a new array is wanted.
            stop: Ends the run at the next node.
            ctrl: How the task is scheduled; for layers.

        Returns:
            Result by name: the array that was given, or a new one.

        Raises:
            ModelError: RUN_TASK_FAILED with the reason.
        """
        del ctrl
        names = list(outputs)
        try:
            if sum(array.nbytes for array in outputs.values() if array is not None) <= _MOST_COPIED_BYTES:
                return self._run_copying(feeds, outputs, names, stop)
            return self._run_bound(feeds, outputs, names, stop)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - its exceptions share no base
            raise ModelError(Status.HB_DNN_RUN_TASK_FAILED, f"onnxruntime: {one_line(error)}") from None

    def _run_copying(
        self, feeds: dict[str, NDArray[Any]], outputs: dict[str, NDArray[Any] | None], names: list[str], stop: Stop
    ) -> dict[str, NDArray[Any]]:
        results = dict(zip(names, self._session.run(names, feeds, stop.run_options), strict=True))
        for name, target in outputs.items():
            if target is not None:
                _check_shape(name, results[name], target)
                target[...] = results[name]
                results[name] = target
        return results

    def _run_bound(
        self, feeds: dict[str, NDArray[Any]], outputs: dict[str, NDArray[Any] | None], names: list[str], stop: Stop
    ) -> dict[str, NDArray[Any]]:
        binding = self._session.io_binding()
        for name, array in feeds.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
        for name, target in outputs.items():
            if target is None:
                binding.bind_output(name)
            else:
                binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(target))
        self._session.run_with_iobinding(binding, stop.run_options)
        made = dict(zip(names, binding.get_outputs(), strict=True))
        return {name: made[name].numpy() if target is None else target for name, target in outputs.items()}


def _check_shape(name: str, result: NDArray[Any], target: NDArray[Any]) -> None:
    if result.shape != target.shape:
        raise ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The output {name!r} has the shape {list(result.shape)}, not {list(target.shape)} as the model says.",
        )
