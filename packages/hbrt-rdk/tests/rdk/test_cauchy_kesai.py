"""pyCauchyKesai: a model with slots, arrays in device memory."""

from pathlib import Path

import numpy as np
import pytest

from pyCauchyKesai import CauchyKesai, IONArray, IONArrayDesc, from_numpy
from tools.stand_in import write_model


@pytest.fixture
def model(tmp_path: Path) -> CauchyKesai:
    """A model of an S board: Y and UV in, ten numbers out, the mean of the picture added to each."""
    write_model(tmp_path / "a.hbm", [{"shape": [1, 3, 16, 16], "type": "nv12", "name": "data"}], [{"shape": [1, 10]}])
    return CauchyKesai(str(tmp_path / "a.hbm"), n_task=2)


def test_tasks_run_on_arrays_and_on_what_is_bound(model: CauchyKesai) -> None:
    assert model.input_names == ["data_y", "data_uv"]
    arrays = [np.full(one.shape, 128, one.dtype) for one in model.input_descs]
    (direct,) = model(arrays)
    model.start(arrays, task_id=1)
    (other,) = model.wait(1)
    assert np.array_equal(direct, other)
    bound = [IONArray(one) for one in model.input_descs]
    for one, values in zip(bound, arrays, strict=True):
        one.from_numpy(values)
    assert all(model.check_input(one, at) for at, one in enumerate(bound))
    model.inputs[0] = bound
    model.start(0)
    model.wait_done(0)
    assert np.array_equal(model.outputs[0][0].numpy(), direct)
    assert model.summary()["inputs"][1]["shape"] == [1, 8, 8, 2]
    results = [IONArray(one) for one in model.output_descs]
    model.set_inputs(bound, n_task=1)
    model.set_outputs(results, n_task=1)
    model.set_scheduling_params(bpu_cores=[], task_id=1)
    assert model.scheduled_cores(1) == [-1]
    model.safe_start([], task_id=1)
    model.wait_done(1)
    assert np.array_equal(results[0].numpy(), direct)
    with pytest.raises(ValueError, match="types and shapes of data_y, data_uv"):
        model.set_inputs(bound[:1])
    with pytest.raises(RuntimeError, match="was not started"):
        model.wait(0)
    with pytest.raises(ValueError, match="has 2 inputs"):
        model.start([arrays[0]], 0)


def test_arrays_hold_what_was_written() -> None:
    assert np.array_equal(np.asarray(from_numpy(np.arange(6).reshape(2, 3))), np.arange(6).reshape(2, 3))
    assert IONArray(np.float16, (2, 3), byte_size=4096).mem_size == 4096
    quantized = IONArray(IONArrayDesc(np.dtype(np.int8), [2, 2], scale=[0.5, 2.0], zero_point=[0, 1], quantize_axis=1))
    quantized.quantize([[1.0, 4.0], [-100.0, 2.0]])
    assert quantized.numpy().tolist() == [[2, 3], [-128, 2]]
    assert quantized.dequantize().tolist() == [[1.0, 4.0], [-64.0, 2.0]]
