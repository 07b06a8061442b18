"""bpu_infer_lib: a program's calls, in order, and what is refused."""

from pathlib import Path

import cv2
import numpy as np
import pytest

import bpu_infer_lib
import bpu_infer_lib_x3
import bpu_infer_lib_x5
from arm_client.client import Board
from tools.stand_in import write_model


def test_a_picture_becomes_numbers(dsp_board: Board, tmp_path: Path) -> None:
    write_model(tmp_path / "net.bin", [{"shape": [1, 3, 32, 32], "type": "nv12"}], [{"shape": [1, 6]}])
    cv2.imwrite(str(tmp_path / "picture.png"), np.full((20, 30, 3), 128, np.uint8))
    infer = bpu_infer_lib_x5.Infer(False)
    assert bpu_infer_lib_x3.Infer is bpu_infer_lib.Infer
    assert infer.load_model(str(tmp_path / "net.bin"))
    assert infer.inputs[0].properties.tensorType == "HB_DNN_IMG_TYPE_NV12"
    assert infer.read_img_to_nv12(str(tmp_path / "picture.png"), 0)
    assert infer.forward(more=True)
    infer.get_output()
    assert infer.outputs[0].data.shape == (1, 6)
    np.testing.assert_array_equal(infer.get_infer_res_np_float32(0, 4), infer.outputs[0].data[0, :4])


def test_numbers_are_taken_in_any_shape_of_as_many(
    dsp_board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(tmp_path / "net.bin", [{"shape": [1, 4]}, {"shape": [1], "type": "s32"}], [{"shape": [1, 3]}])
    infer = bpu_infer_lib.Infer()
    assert not infer.load_model(str(tmp_path / "none.bin"))
    assert "none.bin" in capsys.readouterr().err
    assert infer.load_model(str(tmp_path / "net.bin"))
    infer.read_numpy_arr_float32(np.full(4, 2.0), 0)
    with pytest.raises(ValueError, match="Not read yet: input 1"):
        infer.forward()
    infer.read_numpy_arr_int32(np.array([3]), 1)
    infer.forward()
    np.testing.assert_allclose(infer.get_infer_res_np_float32(0), [4, 5, 6])
    with pytest.raises(ValueError, match="takes float32, not int64"):
        infer.read_input(np.zeros(4, np.int64), 0)
    with pytest.raises(ValueError, match="Input 2 is out of range"):
        infer.read_input(np.zeros(4, np.float32), 2)
    with pytest.raises(ValueError, match="0 to 300 do not fit int8"):
        infer.read_numpy_arr_int8(np.array([0, 300]), 0)
    with pytest.raises(ValueError, match="takes float32, not NV12"):
        infer.read_img_to_nv12("picture.jpg", 0)


def test_quantized_outputs_are_stored_numbers_and_scales(dsp_board: Board, tmp_path: Path) -> None:
    quantized = {"shape": [1, 2, 3], "type": "s32", "scale": 0.5, "ramp": [0, 5]}
    write_model(tmp_path / "net.bin", [{"shape": [1, 4]}], [quantized, {"shape": [1, 3]}])
    infer = bpu_infer_lib.Infer()
    infer.load_model(str(tmp_path / "net.bin"))
    infer.read_numpy_arr_float32(np.zeros(4), 0)
    infer.forward()
    stored = infer.get_infer_res_np_int32(0)
    assert (stored.dtype.name, stored.tolist()) == ("int32", [0, 1, 2, 3, 4, 5])
    assert infer.get_output_scale(0).scaleData.tolist() == [0.5, 0.5, 0.5]
    assert (len(infer.get_output_scale(1).scaleData), infer.get_output_scale(1).scaleLen) == (0, 0)
    np.testing.assert_array_equal(infer.get_infer_res_np_float32(0, 2), [0, 0.5])
    for refused in (infer.get_output_scale, infer.get_infer_res_np_int32):
        with pytest.raises(ValueError, match="Output 2 is out of range"):
            refused(2)
