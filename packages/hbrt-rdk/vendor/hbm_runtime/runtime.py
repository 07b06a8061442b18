"""HB_HBMRuntime: models by name, and their arrays by name.

Source: RDK S documentation, 4.1 Python interface, https://github.com/D-Robotics/rdk_s_doc
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import index
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from arm_client.dnn import Model, load
from arm_client.dnn.cores.bpu import CORE_COUNT
from hbm_runtime.inputs import Shown, fed, shown_inputs, shown_outputs
from hbm_runtime.types import QuantParams, SchedParam, hbDNNDataType

_T = TypeVar("_T")
Outputs = dict[str, dict[str, NDArray[Any]]]
_ANY = -1
_MAX_CORES = 4  # of S600


class HB_HBMRuntime:
    """One or more models. Several threads may run them at once.

    A file's suffix determines its NV12 inputs: one array of Y followed by UV for a ``.bin`` (X5), two inputs NAME_y and
    NAME_uv for a ``.hbm`` (S series).

    Args:
        model_file: A model's file, or several.

    Raises:
        HbrtError: a file cannot be read, or is not a model that the runtime supports; the message says why.
    """

    version = "1.0.0"

    def __init__(self, model_file: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
        files = [model_file] if isinstance(model_file, (str, os.PathLike)) else list(model_file)
        self.hbm_descs = {str(file): "" for file in files}
        self._models: dict[str, Model] = {}
        self._planes: dict[str, bool] = {}
        for file, model in zip(files, load(files), strict=True):
            self._models[model.name] = model
            self._planes[model.name] = str(file).endswith(".hbm")
        self._inputs = {
            name: shown_inputs(model, has_planes=self._planes[name]) for name, model in self._models.items()
        }
        self._outputs = {name: shown_outputs(model) for name, model in self._models.items()}
        self._schedules = {name: SchedParam() for name in self._models}

    @property
    def model_names(self) -> list[str]:
        """Names of the models."""
        return list(self._models)

    @property
    def model_count(self) -> int:
        """Number of models."""
        return len(self._models)

    @property
    def model_descs(self) -> dict[str, str]:
        """Descriptions of the models: empty ones."""
        return dict.fromkeys(self._models, "")

    @property
    def compile_bpu_core_num(self) -> dict[str, int]:
        """The number of BPU cores that each model was compiled for: 1."""
        return dict.fromkeys(self._models, 1)

    @property
    def input_counts(self) -> dict[str, int]:
        """Number of inputs of each model."""
        return {name: len(rows) for name, rows in self._inputs.items()}

    @property
    def output_counts(self) -> dict[str, int]:
        """Number of outputs of each model."""
        return {name: len(rows) for name, rows in self._outputs.items()}

    @property
    def input_names(self) -> dict[str, list[str]]:
        """Names of the inputs of each model, in order."""
        return {name: [row.name for row in rows] for name, rows in self._inputs.items()}

    @property
    def output_names(self) -> dict[str, list[str]]:
        """Names of the outputs of each model, in order."""
        return {name: [row.name for row in rows] for name, rows in self._outputs.items()}

    @property
    def input_descs(self) -> dict[str, dict[str, str]]:
        """Descriptions of the inputs: empty ones."""
        return _by_name(self._inputs, lambda _: "")

    @property
    def output_descs(self) -> dict[str, dict[str, str]]:
        """Descriptions of the outputs: empty ones."""
        return _by_name(self._outputs, lambda _: "")

    @property
    def input_shapes(self) -> dict[str, dict[str, list[int]]]:
        """Shapes of the inputs, -1 if the data decides."""
        return _by_name(self._inputs, lambda row: list(row.shape))

    @property
    def output_shapes(self) -> dict[str, dict[str, list[int]]]:
        """Shapes of the outputs, -1 if the data decides."""
        return _by_name(self._outputs, lambda row: list(row.shape))

    @property
    def input_dtypes(self) -> dict[str, dict[str, hbDNNDataType]]:
        """Types of the inputs."""
        return _by_name(self._inputs, lambda row: row.data_type)

    @property
    def output_dtypes(self) -> dict[str, dict[str, hbDNNDataType]]:
        """Types of the outputs."""
        return _by_name(self._outputs, lambda row: row.data_type)

    @property
    def input_quants(self) -> dict[str, dict[str, QuantParams]]:
        """How the inputs are quantized."""
        return _by_name(self._inputs, lambda row: row.quant)

    @property
    def output_quants(self) -> dict[str, dict[str, QuantParams]]:
        """How the outputs are quantized."""
        return _by_name(self._outputs, lambda row: row.quant)

    @property
    def input_strides(self) -> dict[str, dict[str, list[int]]]:
        """Bytes between neighbors along each dimension of the inputs, -1 if the caller decides."""
        return _by_name(self._inputs, lambda row: list(row.stride))

    @property
    def output_strides(self) -> dict[str, dict[str, list[int]]]:
        """Bytes between neighbors along each dimension of the outputs."""
        return _by_name(self._outputs, lambda row: list(row.stride))

    @property
    def sched_params(self) -> dict[str, SchedParam]:
        """How the runs of each model are scheduled."""
        return {name: replace(one) for name, one in self._schedules.items()}

    def set_scheduling_params(
        self,
        priority: Mapping[str, int] | None = None,
        bpu_cores: Mapping[str, Sequence[int]] | None = None,
        custom_id: Mapping[str, int] | None = None,
        device_id: Mapping[str, int] | None = None,
    ) -> None:
        """Set the scheduling of models; omitted values stay unchanged.

        Args:
            priority: Model -> 0..255, larger first.
            bpu_cores: Model -> numbers of cores from 0, or [-1] for any.
            custom_id: Model -> number, smaller first.
            device_id: Model -> number; there is only one device.

        Raises:
            ValueError: unknown model, or a value is out of range.
        """
        self._schedules.update(self._scheduled(priority, bpu_cores, custom_id, device_id))

    def run(
        self,
        input_tensor: Any,
        model_name: str | None = None,
        priority: Mapping[str, int] | None = None,
        bpu_cores: Mapping[str, Sequence[int]] | None = None,
        custom_id: Mapping[str, int] | None = None,
        device_id: Mapping[str, int] | None = None,
    ) -> Outputs:
        """Run models, several at once.

        Args:
            input_tensor: An array, for a model with one input; input -> array; or model -> input -> array.
            model_name: Which model; optional if there is only one, and for the last form.
            priority: As for ``set_scheduling_params``, for this run.
            bpu_cores: Like ``priority``.
            custom_id: Like ``priority``.
            device_id: Like ``priority``.

        Returns:
            Model -> output -> array.

        Raises:
            ValueError: a model or input is missing or unknown, or an array does not fit. HbrtError: the task failed.
        """
        feeds = self._feeds(input_tensor, model_name)
        schedules = self._scheduled(priority, bpu_cores, custom_id, device_id)
        if len(feeds) == 1:
            return {name: self._one(name, arrays, schedules[name]) for name, arrays in feeds.items()}
        with ThreadPoolExecutor(len(feeds)) as pool:
            jobs = {name: pool.submit(self._one, name, arrays, schedules[name]) for name, arrays in feeds.items()}
            return {name: job.result() for name, job in jobs.items()}

    def _one(self, name: str, arrays: list[NDArray[Any]], how: SchedParam) -> dict[str, NDArray[Any]]:
        model = self._models[name]
        mask = 0 if _ANY in how.bpu_cores else sum({1 << core % CORE_COUNT for core in how.bpu_cores})
        feeds = fed(model, arrays, has_planes=self._planes[name])
        outputs = model.forward(feeds, core_id=mask, priority=how.priority, custom_id=how.customId)
        return {output.name: output.buffer for output in outputs}

    def _feeds(self, given: Any, model_name: str | None) -> dict[str, list[NDArray[Any]]]:
        if isinstance(given, Mapping) and given and all(isinstance(one, Mapping) for one in given.values()):
            chosen = {name: given[name] for name in given if model_name in {None, name}}
            if not chosen:
                raise ValueError(f"No input for the model {model_name!r}.")
            return {self._known(name): self._arrays(name, inputs) for name, inputs in chosen.items()}
        if model_name is None and len(self._models) != 1:
            raise ValueError(f"Name the model: {', '.join(self._models)} are loaded.")
        name = self._known(next(iter(self._models)) if model_name is None else model_name)
        if not isinstance(given, Mapping):
            rows = self._inputs[name]
            if len(rows) != 1:
                names = ", ".join(row.name for row in rows)
                raise ValueError(f"The model {name!r} has {len(rows)} inputs ({names}): pass a dict of arrays.")
            given = {rows[0].name: given}
        return {name: self._arrays(name, given)}

    def _arrays(self, name: str, given: Mapping[str, Any]) -> list[NDArray[Any]]:
        rows = self._inputs[name]
        wrong = {row.name for row in rows} ^ set(given)
        if wrong:
            names = ", ".join(row.name for row in rows)
            raise ValueError(
                f"The model {name!r} has the inputs {names}; unknown or missing: {', '.join(sorted(wrong))}."
            )
        return [row.checked(given[row.name]) for row in rows]

    def _known(self, name: str) -> str:
        if name not in self._models:
            raise ValueError(f"Unknown model {name!r}; known are {', '.join(self._models)}.")
        return name

    def _scheduled(
        self,
        priority: Mapping[str, int] | None,
        bpu_cores: Mapping[str, Sequence[int]] | None,
        custom_id: Mapping[str, int] | None,
        device_id: Mapping[str, int] | None,
    ) -> dict[str, SchedParam]:
        """The schedules, with these values replacing those set before."""
        schedules = self.sched_params
        for name, value in _given("priority", priority):
            if not 0 <= index(value) <= np.iinfo(np.uint8).max:
                raise ValueError(f"Invalid priority {value} of {name!r}: must be 0 to 255.")
            schedules[self._known(name)].priority = index(value)
        for name, cores in _given("bpu_cores", bpu_cores):
            numbers = [index(core) for core in cores]
            if not numbers or min(numbers) < _ANY or max(numbers) >= _MAX_CORES:
                raise ValueError(
                    f"Invalid bpu_cores {numbers} of {name!r}: must be numbers from 0 to {_MAX_CORES - 1}, or [-1] for "
                    "any."
                )
            schedules[self._known(name)].bpu_cores = numbers
        for name, value in _given("custom_id", custom_id):
            schedules[self._known(name)].customId = index(value)
        for name, value in _given("device_id", device_id):
            schedules[self._known(name)].deviceId = index(value)
        return schedules


def _given(what: str, values: Mapping[str, _T] | None) -> list[tuple[str, _T]]:
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"{what} must be a dict of model names and values, not {values!r}.")
    return list((values or {}).items())


def _by_name(rows: Mapping[str, list[Shown]], value: Callable[[Shown], _T]) -> dict[str, dict[str, _T]]:
    return {model: {row.name: value(row) for row in shown} for model, shown in rows.items()}
