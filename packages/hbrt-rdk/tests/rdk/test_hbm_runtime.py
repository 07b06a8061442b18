"""hbm_runtime: names, forms of inputs, schedules, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hbm_runtime
from arm_client.client import Board
from tools.stand_in import write_model

NV12 = {"shape": [1, 3, 32, 64], "type": "nv12", "name": "data"}
OUT = {"shape": [1, 5], "name": "scores"}
PICTURE = np.arange(32 * 64 * 3 // 2, dtype=np.int64).astype(np.uint8)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = [tmp_path / "one.bin", tmp_path / "two.hbm"]
    for name in names:
        write_model(name, [NV12], [OUT])
    return [str(name) for name in names]


def test_a_bin_takes_packed_pictures_and_an_hbm_two_planes(dsp_board: Board, files: list[str]) -> None:
    runtime = hbm_runtime.HB_HBMRuntime(files)
    assert runtime.model_names == ["one", "two"]
    assert runtime.input_names == {"one": ["data"], "two": ["data_y", "data_uv"]}
    assert runtime.input_shapes["one"] == {"data": [1, 3, 32, 64]}
    assert runtime.input_shapes["two"] == {"data_y": [1, 32, 64, 1], "data_uv": [1, 16, 32, 2]}
    assert runtime.input_strides["two"] == {"data_y": [-1, -1, 1, 1], "data_uv": [-1, -1, 2, 1]}
    assert str(runtime.input_dtypes["two"]["data_uv"]) == "hbDNNDataType.U8"
    assert runtime.output_dtypes["two"]["scores"].value == 7
    area = 32 * 64
    planes = {"data_y": PICTURE[:area].reshape(1, 32, 64, 1), "data_uv": PICTURE[area:].reshape(1, 16, 32, 2)}
    both = runtime.run({"one": {"data": PICTURE}, "two": planes})
    np.testing.assert_array_equal(both["one"]["scores"], both["two"]["scores"])
    alone = runtime.run(planes, model_name="two", priority={"two": 9}, bpu_cores={"two": [0]})
    np.testing.assert_array_equal(alone["two"]["scores"], both["one"]["scores"])
    of_s600 = runtime.run(planes, model_name="two", bpu_cores={"two": [0, 1, 2, 3]})
    np.testing.assert_array_equal(of_s600["two"]["scores"], both["one"]["scores"])
    assert runtime.run(PICTURE, "one").keys() == {"one"}


def test_schedules_stay_and_those_of_a_run_do_not(dsp_board: Board, files: list[str]) -> None:
    runtime = hbm_runtime.HB_HBMRuntime(files[0])
    assert (runtime.sched_params["one"].bpu_cores, runtime.sched_params["one"].priority) == ([-1], 0)
    runtime.set_scheduling_params(priority={"one": 200}, bpu_cores={"one": [1]}, custom_id={"one": 3})
    runtime.run(PICTURE, priority={"one": 50})
    told = runtime.sched_params["one"]
    assert (told.priority, told.bpu_cores, told.customId, told.deviceId) == (200, [1], 3, 0)


def test_two_files_of_one_name_are_two_models(dsp_board: Board, tmp_path: Path) -> None:
    files = [tmp_path / folder / "net.hbm" for folder in ("a", "b")]
    for at, file in enumerate(files):
        write_model(file, [{"shape": [1, 4], "name": "x"}], [{"shape": [2], "name": "y", "ramp": [at, at]}])
    runtime = hbm_runtime.HB_HBMRuntime([str(file) for file in files])
    assert runtime.model_names == ["net", "net_2"]
    given = {name: {"x": np.zeros((1, 4), np.float32)} for name in runtime.model_names}
    assert [each["y"].tolist() for each in runtime.run(given).values()] == [[0, 0], [1, 1]]
    with pytest.raises(TypeError, match="priority must be a dict"):
        runtime.run(given, priority=5)  # type: ignore[arg-type]


def test_quantized_outputs_say_how(dsp_board: Board) -> None:
    digits = Path(__file__).resolve().parents[4] / "samples" / "dnn" / "digits_int8.onnx"
    runtime = hbm_runtime.HB_HBMRuntime(str(digits))
    (name,) = runtime.model_names
    quant = runtime.output_quants[name]["logits"]
    assert (quant.quant_type.name, quant.scale.shape, quant.zero_point.shape) == ("SCALE", (1,), (1,))


def test_what_does_not_fit_is_refused_by_a_sentence(dsp_board: Board, files: list[str], tmp_path: Path) -> None:
    runtime = hbm_runtime.HB_HBMRuntime(files)
    y, uv = PICTURE[: 32 * 64].reshape(1, 32, 64, 1), PICTURE[32 * 64 :].reshape(1, 16, 32, 2)
    for call, why in (
        (lambda: runtime.run(PICTURE), "Name the model: one, two"),
        (lambda: runtime.run(PICTURE, "none"), "Unknown model 'none'"),
        (lambda: runtime.run(PICTURE, "two"), r"has 2 inputs \(data_y, data_uv\)"),
        (lambda: runtime.run({"other": PICTURE}, "one"), "unknown or missing: data, other"),
        (lambda: runtime.run(PICTURE.astype(np.float32), "one"), "takes uint8, not float32"),
        (lambda: runtime.set_scheduling_params(priority={"one": 256}), "must be 0 to 255"),
        (lambda: runtime.set_scheduling_params(bpu_cores={"one": []}), r"or \[-1\] for any"),
        (lambda: runtime.set_scheduling_params(bpu_cores={"one": [4]}), "numbers from 0 to 3"),
        (lambda: runtime.run({"data_y": uv, "data_uv": y}, "two"), r"'data_y' has the shape \[1, 32, 64, 1\]"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    write_model(tmp_path / "plain.bin", [{"shape": [1, 4]}], [OUT])
    with pytest.raises(ValueError, match=r"has the shape \[1, 4\], not \[4\]"):
        hbm_runtime.HB_HBMRuntime(str(tmp_path / "plain.bin")).run(np.zeros(4, np.float32))


@pytest.mark.parametrize("profile", ["j5", "rk3588"])
def test_importing_it_loads_no_opencv_where_nothing_is_shown(profile: str) -> None:
    outer = {name: value for name, value in os.environ.items() if name not in {"HBRT_CAMERA", "HBRT_DISPLAY"}}
    program = "import sys, hbm_runtime; print('cv2' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**outer, "HBRT_PROFILE": profile},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
