"""CauchyKesai: a model with slots for tasks.

Source: https://github.com/WuChao-2024/pyCauchyKesai
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hbm_runtime import HB_HBMRuntime
from pyCauchyKesai.arrays import IONArray, IONArrayDesc

_ANY = -1


class CauchyKesai:
    """A model, with ``n_task`` tasks that may run concurrently.

    Args:
        model_path: The model's file; an NV12 input of a ``.hbm`` counts as two, Y and UV.
        n_task: Number of tasks.
        model_cnt_select: Index of the model in the file.

    Raises:
        HbrtError: the file cannot be read, or is not a model that the runtime supports. ValueError: unknown model.
    """

    def __init__(self, model_path: str, n_task: int = 1, model_cnt_select: int = 0) -> None:
        self._runtime = HB_HBMRuntime(model_path)
        names = self._runtime.model_names
        if not 0 <= model_cnt_select < len(names):
            raise ValueError(f"Model {model_cnt_select} is out of range in {model_path}; it has {len(names)}.")
        self._path, self._name = model_path, names[model_cnt_select]
        self.n_task = n_task
        self.input_names = self._runtime.input_names[self._name]
        self.output_names = self._runtime.output_names[self._name]
        self.input_descs = self._descs(self._runtime, "input")
        self.output_descs = self._descs(self._runtime, "output")
        self.inputs = [[IONArray(one, defer=True) for one in self.input_descs] for _ in range(n_task)]
        self.outputs = [[IONArray(one, defer=True) for one in self.output_descs] for _ in range(n_task)]
        self._cores: list[list[int]] = [[_ANY] for _ in range(n_task)]
        self._priorities = [0] * n_task
        self._pool = ThreadPoolExecutor(n_task)
        self._running: dict[int, Future[None]] = {}

    @property
    def input_count(self) -> int:
        """Number of inputs."""
        return len(self.input_descs)

    @property
    def output_count(self) -> int:
        """Number of outputs."""
        return len(self.output_descs)

    @property
    def bpu_core_num(self) -> int:
        """The number of cores that the model was compiled for: 1."""
        return 1

    def __call__(self, inputs: Sequence[NDArray[Any]] | None = None, task_id: int = 0) -> list[NDArray[Any]]:
        """Run the model on arrays, or on the contents of ``inputs[task_id]``, and return the outputs."""
        self._started(inputs, task_id)
        return self.wait(task_id)

    def inference(self, inputs: Sequence[NDArray[Any]] | None = None, task_id: int = 0) -> list[NDArray[Any]]:
        """Like a call."""
        return self(inputs, task_id)

    def start(self, *given: Any, task_id: int = 0) -> None:
        """Begin a task: ``start(inputs, task_id)``, or ``start(task_id)`` on the contents of ``inputs[task_id]``.

        Empty ``inputs`` also stand for those contents.

        Raises:
            ValueError: an array does not fit. RuntimeError: the task is already running.
        """
        if given and isinstance(given[0], (int, np.integer)):
            self._started(None, int(given[0]))
        else:
            self._started(given[0] if given else None, int(given[1]) if len(given) > 1 else task_id)

    def safe_start(self, *given: Any, task_id: int = 0) -> None:
        """As ``start``, which always checks the arrays: the name of earlier versions."""
        self.start(*given, task_id=task_id)

    def set_inputs(self, arrays: Sequence[IONArray], n_task: int = 0) -> None:
        """Put arrays in a slot, whose tasks then read them: as setting ``inputs[n_task]``, of earlier versions.

        Raises:
            ValueError: an array does not fit.
        """
        self.inputs[self._slot(n_task)] = _fitting(arrays, self.input_descs)

    def set_outputs(self, arrays: Sequence[IONArray], n_task: int = 0) -> None:
        """As ``set_inputs``, for what tasks write."""
        self.outputs[self._slot(n_task)] = _fitting(arrays, self.output_descs)

    def wait_done(self, task_id: int = 0, timeout_ms: int = 0) -> None:
        """Wait for a task: outputs are in ``outputs[task_id]``.

        Raises:
            TimeoutError: it did not end in time. HbrtError: it failed. RuntimeError: it was not started.
        """
        if task_id not in self._running:
            raise RuntimeError(f"The task {task_id} was not started.")
        self._running[task_id].result(timeout_ms / 1000 if timeout_ms > 0 else None)
        del self._running[task_id]

    def wait(self, task_id: int = 0, timeout_ms: int = 0) -> list[NDArray[Any]]:
        """Like ``wait_done``, but returns copies of the outputs."""
        self.wait_done(task_id, timeout_ms)
        return [one.numpy().copy() for one in self.outputs[task_id]]

    def is_busy(self, task_id: int = 0) -> bool:
        """Whether a task was started and has not finished."""
        running = self._running.get(self._slot(task_id))
        return running is not None and not running.done()

    def set_scheduling_params(self, bpu_cores: Sequence[int], priority: int = 0, task_id: int = 0) -> None:
        """Set where a slot's tasks run, [-1] or [] for any core, and their priority (0 to 255)."""
        self._cores[self._slot(task_id)] = list(bpu_cores) or [_ANY]
        self._priorities[task_id] = priority

    def scheduled_cores(self, task_id: int = 0) -> list[int]:
        """Where a slot's tasks run."""
        return list(self._cores[self._slot(task_id)])

    def scheduled_priority(self, task_id: int = 0) -> int:
        """The priority of a slot's tasks."""
        return self._priorities[self._slot(task_id)]

    def check_input(self, ion: IONArray, idx: int) -> bool:
        """Whether an array fits an input."""
        return _fits(ion, self.input_descs, idx)

    def check_output(self, ion: IONArray, idx: int) -> bool:
        """Whether an array fits an output."""
        return _fits(ion, self.output_descs, idx)

    def summary(self) -> dict[str, Any]:
        """A description of the model, for ``json.dumps``."""
        models = [
            {"index": at, "name": name, "selected": name == self._name}
            for at, name in enumerate(self._runtime.model_names)
        ]
        size = sum(one.nbytes() for one in (*self.input_descs, *self.output_descs))
        return {
            "model_path": self._path,
            "model_names": models,
            "n_task": self.n_task,
            "memory_mb": self.n_task * size / (1 << 20),
            "bpu_core_num": self.bpu_core_num,
            "scheduled_cores": self.scheduled_cores(),
            "scheduled_priority": self.scheduled_priority(),
            "inputs": [_shown(at, one) for at, one in enumerate(self.input_descs)],
            "outputs": [_shown(at, one) for at, one in enumerate(self.output_descs)],
            "compile_config": None,
        }

    def benchmark(self, timeout_ms: int = 0) -> dict[str, float]:
        """Duration of a run on zeros."""
        begun = time.perf_counter()
        self._started([np.zeros(one.shape, one.dtype) for one in self.input_descs], 0)
        self.wait_done(0, timeout_ms)
        took = time.perf_counter() - begun
        return {"time_us": took * 1e6, "time_ms": took * 1e3, "time_s": took, "time_min": took / 60}

    def s(self) -> None:
        """Print a description of the model."""
        told = self.summary()
        print(f"{told['model_path']}: {self._name}, {self.n_task} tasks")  # noqa: T201 - its purpose
        for kind in ("inputs", "outputs"):
            for one in told[kind]:
                print(f"  {kind[:-1]} {one['index']}: {one['name']} {one['dtype']} {one['shape']}")  # noqa: T201

    def t(self, timeout_ms: int = 0) -> None:
        """Print the duration of a run."""
        print(f"{self._name}: {self.benchmark(timeout_ms)['time_ms']:.3f} ms")  # noqa: T201 - its purpose

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def __repr__(self) -> str:
        sizes = f"inputs={self.input_count}, outputs={self.output_count}, n_task={self.n_task}"
        return f"CauchyKesai(model={self._name!r}, {sizes})"

    def _descs(self, runtime: HB_HBMRuntime, kind: str) -> list[IONArrayDesc]:
        shapes, types = getattr(runtime, f"{kind}_shapes")[self._name], getattr(runtime, f"{kind}_dtypes")[self._name]
        quants = getattr(runtime, f"{kind}_quants")[self._name]
        return [
            IONArrayDesc(
                types[name].numpy, shape, name, quants[name].scale.tolist(), quants[name].zero_point.tolist(),
                quants[name].axis,
            )
            for name, shape in shapes.items()
        ]  # fmt: skip

    def _slot(self, task_id: int) -> int:
        if not 0 <= task_id < self.n_task:
            raise ValueError(f"Invalid task_id {task_id}: must be 0 to {self.n_task - 1}.")
        return task_id

    def _started(self, inputs: Sequence[NDArray[Any]] | None, task_id: int) -> None:
        if self.is_busy(task_id):
            raise RuntimeError(f"The task {task_id} is still running: wait for it.")
        slot = self.inputs[task_id]
        if inputs is not None and len(inputs):
            if len(inputs) != len(slot):
                raise ValueError(f"{self._name} has {len(slot)} inputs, not {len(inputs)}.")
            for one, values in zip(slot, inputs, strict=True):
                one.from_numpy(values)
        self._running[task_id] = self._pool.submit(self._run, task_id)

    def _run(self, task_id: int) -> None:
        feeds = {name: one.numpy() for name, one in zip(self.input_names, self.inputs[task_id], strict=True)}
        results = self._runtime.run(
            feeds,
            self._name,
            priority={self._name: self._priorities[task_id]},
            bpu_cores={self._name: self._cores[task_id]},
        )[self._name]
        for name, one in zip(self.output_names, self.outputs[task_id], strict=True):
            one.numpy()[...] = results[name].reshape(one.shape)


def _fits(ion: IONArray, descs: list[IONArrayDesc], idx: int) -> bool:
    return 0 <= idx < len(descs) and ion.dtype == descs[idx].dtype and list(ion.shape) == list(descs[idx].shape)


def _fitting(arrays: Sequence[IONArray], descs: list[IONArrayDesc]) -> list[IONArray]:
    wrong = [desc.name for at, desc in enumerate(descs) if not (at < len(arrays) and _fits(arrays[at], descs, at))]
    if wrong or len(arrays) != len(descs):
        raise ValueError(f"The arrays must have the types and shapes of {', '.join(one.name for one in descs)}.")
    return list(arrays)


def _shown(index: int, desc: IONArrayDesc) -> dict[str, Any]:
    return {
        "index": index,
        "name": desc.name,
        "dtype": desc.dtype.name,
        "shape": list(desc.shape),
        "alignedByteSize": desc.nbytes(),
        "quantiType": int(desc.is_quantized()),
        "quantizeAxis": desc.quantize_axis,
        "desc": "",
        "scale": desc.scale,
        "zero_point": desc.zero_point,
    }
