"""Arguments of another type than a call takes: each has a sentence, and none a traceback."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rknn.api import RKNN
from rknnlite.api import RKNNLite
from rknnlite.api.rknn_runtime import RKNNRuntime
from tests.rknn_api import nets

IMAGE = np.zeros((1, 8, 8, 1), np.float32)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RKNN]:
    """The digits' model in real numbers, exported as digits.rknn."""
    folder = tmp_path_factory.mktemp("arguments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HBRT_BPU", "inline")
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        assert rknn.load_onnx(nets.DIGITS) == 0
        assert rknn.build(do_quantization=False) == 0
        assert rknn.export_rknn("digits.rknn") == 0
        assert rknn.init_runtime() == 0
        yield rknn
        rknn.release()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda rknn: rknn.inference(None), "inputs is NoneType; pass a list"),
        (lambda rknn: rknn.inference({}), "inputs is dict; pass a list"),
        (lambda rknn: rknn.inference(image=IMAGE), "its arguments are inputs, data_format"),
        (lambda rknn: rknn.build(auto_hybrid_quant=True), "its arguments are do_quantization, dataset"),
        (lambda rknn: rknn.init_runtime(target="rk3588", rknn2precompile=True), "its arguments are target, device_id"),
        (lambda rknn: rknn.inference([None]), "'image' is NoneType; pass an array of numbers"),
        (lambda rknn: rknn.inference(["digit.png"]), "'image' is str; pass an array of numbers"),
        (lambda rknn: rknn.inference([[[1, 2], [3]]]), "'image' is list; pass an array of numbers"),
        (lambda rknn: rknn.inference([IMAGE, IMAGE]), "2 inputs were given, but the model has 1"),
        (lambda rknn: rknn.inference([IMAGE], inputs_pass_through=1), "inputs_pass_through is for the C API"),
        (lambda rknn: rknn.init_runtime(core_mask=1.0), "Invalid core_mask 1.0: must be one of NPU_CORE_AUTO"),
        (lambda rknn: rknn.init_runtime(target=["rk3588"]), "Unknown platform \"['rk3588']\""),
        (lambda rknn: rknn.init_runtime(target="rk3588", device_id=[1]), "Invalid device_id [1]"),
        (lambda rknn: rknn.accuracy_analysis(["a.npy"], output_dir=5), "output_dir is int"),
        (lambda rknn: rknn.export_rknn("."), "The model file . cannot be written"),
    ],
)
def test_a_call_says_what_it_takes(built: RKNN, call: Callable[[Any], object], why: str) -> None:
    assert call(built) in (None, -1)
    assert why in built.last_error


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"do_quantization": "no"}, "Invalid do_quantization 'no': must be True or False"),
        ({"rknn_batch_size": "3"}, "Invalid rknn_batch_size '3'"),
    ],
)
def test_build_says_what_it_takes(tmp_path: Path, how: dict[str, Any], why: str) -> None:
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(nets.DIGITS, inputs=["image"]) == 0
    assert rknn.build(dataset=nets.arrays(tmp_path, np.ones((1, 1, 8, 8))), **how) == -1
    assert why in rknn.last_error
    assert rknn.load_onnx(nets.DIGITS, inputs=["image", "image"]) == -1
    assert rknn.last_error == "inputs names 'image' twice."


@pytest.mark.parametrize("name", ["remove_weight", "single_core_mode", "model_pruning"])
def test_a_flag_of_config_is_true_or_false(name: str) -> None:
    rknn = RKNN()
    assert rknn.config(**{name: "no"}) == -1
    assert rknn.last_error == f"{name} is 'no'; it must be True or False."


def test_a_question_ends_with_its_mark() -> None:
    rknn = RKNN()
    assert rknn.config(quantized_algorithm="norml") == -1
    assert rknn.last_error.endswith("did you mean 'normal'?")


def test_a_number_of_numpy_is_a_number_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HBRT_BPU", "inline")
    rknn, images = RKNN(), cast("int", np.int64(2))
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(nets.DIGITS) == 0
    assert rknn.build(do_quantization=False, rknn_batch_size=images) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0
    lite = RKNNLite()
    assert lite.load_rknn("net.rknn") == 0
    assert lite.init_runtime() == 0
    found = lite.inference([np.full((2, 8, 8, 1), 1e300)])  # too large for float32, which is infinity in C
    assert found is not None
    assert len(found[0]) == 2
    lite.release()


def test_a_model_that_is_loaded_takes_the_place_of_the_one_before(built: RKNN) -> None:
    lite = RKNNLite()
    assert lite.load_rknn("digits.rknn") == 0
    assert lite.init_runtime() == 0
    assert lite.load_rknn("digits.rknn") == 0
    assert lite.inference([IMAGE]) is None
    assert lite.last_error == "The runtime is not initialized; call init_runtime first."
    assert lite.load_rknn("none.rknn") == -1
    assert lite.init_runtime() == -1
    assert lite.last_error == "No model is loaded; call load_rknn first."


def test_the_run_times_library_is_found_by_the_toolkits_name() -> None:
    assert Path(RKNNRuntime()._get_rknn_api_lib_path()).is_file()


def test_config_takes_what_public_programs_give(capsys: pytest.CaptureFixture[str]) -> None:
    defaults: dict[str, Any] = {
        "compress_weight": False,
        "quantized_hybrid_level": 0,
        "inputs_yuv_fmt": None,
        "disable_rules": [],
    }
    assert RKNN().config(target_platform="rk3588", **defaults, sram_prefer=False, nbuf_prefer=False, check_data=[]) == 0
    assert capsys.readouterr().err == ""
    assert RKNN().config(target_platform="rk3588", quantized_hybrid_level=3, output_tensor_type="int8") == 0
    printed = capsys.readouterr().err
    assert "W config: quantized_hybrid_level has no effect in this emulator" in printed
    assert "W config: output_tensor_type has no effect in this emulator" in printed
    rknn = RKNN()
    assert rknn.config(target_platform="rk3588", inputs_yuv_fmt=["nv12"]) == -1
    assert "Invalid inputs_yuv_fmt ['nv12']" in rknn.last_error
