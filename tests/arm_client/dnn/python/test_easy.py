"""Models with Python's habits: numbers in, numbers out, in the shapes and types that the model says."""

from __future__ import annotations

import gc
import pkgutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import arm_client as hb
from arm_client import dnn
from arm_client.client import Board, connect
from arm_client.dnn.capi.api import model_behind
from arm_client.dnn.capi.runtime import runtime
from arm_client.errors import CallerError, HbrtError
from arm_client.session.session import attached, set_default
from arm_client.transport.remote_memory import RemoteMemory
from hbrt.attach.question import Question
from hbrt.status import Status
from tests.arm_client.dnn.exact import exact
from tests.each import each
from tests.remote_relay import RemoteRelay
from tests.threads import in_threads

DIGITS = Path(__file__).resolve().parents[4] / "samples" / "dnn"


def parsed(text: str) -> bytes:
    """Bytes of a model in ONNX's text form."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 21]>\n{text}')
    return bytes(model.SerializeToString())


def one(text: str) -> dnn.Model:
    """The one model of a text."""
    (model,) = dnn.load(parsed(text))
    return model


@pytest.fixture
def images() -> Any:
    return (np.load(DIGITS / "digits_test.npz")["images"] / 16).astype(np.float32)[:20, None, None]


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_a_call_takes_and_gives_real_numbers(dsp_board: Board, images: Any, name: str) -> None:
    (model,) = dnn.load(DIGITS / f"{name}.onnx")
    (given,) = model.inputs
    for image in images:
        (logits,) = model(image)
        taken = given.dequantize(given.quantize(image))
        np.testing.assert_allclose(logits, exact(DIGITS / f"{name}.onnx", {"image": taken}), atol=1e-4)
        assert logits.dtype == np.float32


def test_a_call_takes_its_inputs_as_arguments_or_as_one_list(dsp_board: Board) -> None:
    two = one("agraph (float[2] a, float[2] b) => (float[2] y) { y = Sub(a, b) }")
    a, b = np.array([5, 7], np.float32), np.array([1, 2], np.float32)
    for outputs in (two(a, b), two([a, b]), two((a, b)), two([[5.0, 7.0], [1.0, 2.0]])):
        assert outputs[0].tolist() == [4, 5]
    single = one("agraph (float[2] a) => (float[2] y) { y = Neg(a) }")
    assert [single(given)[0].tolist() for given in (a, [a], [5.0, 7.0])] == [[-5, -7]] * 3
    with pytest.raises(CallerError, match=r"has 2 inputs \(a, b\), not 3"):
        two([a, b, a])


def test_shapes_in_turn_are_computed_once_each(dsp_board: Board) -> None:
    """Nothing is computed again for want of room, and the largest inputs so far are the memory that is held."""
    text = "agraph (float[1,3,N] x) => (float[1,3,N] y) { y = Neg(x) }"
    model = one(text)
    steps: list[object] = []
    model_behind(model.handle).model.plan.observer = steps.append
    values = [np.random.default_rng(0).normal(size=(1, 3, size)).astype(np.float32) for size in (30_000, 10_000)]
    used = []
    for at in range(6):
        given = values[at % 2]
        np.testing.assert_array_equal(model(given)[0], -given)
        used.append(dsp_board.live_bytes())
    assert len(steps) == 6
    assert len(set(used)) == 1


def test_forward_takes_and_gives_stored_values(dsp_board: Board, images: Any) -> None:
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    stored = model.inputs[0].quantize(images[0])
    assert stored.dtype == np.int8
    (output,) = model.forward(stored, core_id=2, priority=7)
    assert (output.name, output.buffer.dtype.name, output.buffer.shape) == ("logits", "int8", (1, 10))
    np.testing.assert_array_equal(output.dequantize(), model(images[0])[0])
    assert model.outputs[0].buffer.size == 0


def test_properties_are_in_the_words_of_the_boards_library(dsp_board: Board) -> None:
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    told = model.inputs[0].properties
    assert (told.tensor_type, told.dtype, told.layout, told.shape) == ("int8", "int8", "NCHW", (1, 1, 8, 8))
    assert (told.aligned_shape, told.stride, told.aligned_byte_size) == ((1, 1, 8, 16), (128, 128, 16, 1), 128)
    assert (told.quanti_type, told.scale_data.tolist()) == ("SCALE", [np.float32(1 / 255)])
    assert told.zero_point_data.tolist() == [-128]
    assert repr(model).startswith("<Model 'digits_int8': [<Tensor 'image' int8 NCHW [1, 1, 8, 8]>] -> ")


def test_several_files_are_loaded_at_once(dsp_board: Board) -> None:
    models = dnn.load([DIGITS / "digits_float.onnx", str(DIGITS / "digits_int8.onnx")])
    assert [model.name for model in models] == ["digits_float", "digits_int8"]
    kept = models.pop()
    del models
    gc.collect()
    assert kept(np.zeros((1, 1, 8, 8)))[0].shape == (1, 10)


def test_a_nv12_picture_is_bytes(dsp_board: Board, tmp_path: Path) -> None:
    file = tmp_path / "gray.onnx"
    file.write_bytes(parsed("g (float[1,3,4,6] x) => (float[1,3,4,6] y) { y = Identity(x) }"))
    (tmp_path / "gray.yaml").write_text("{input_type_rt: nv12, input_type_train: yuv444, input_layout_train: NCHW}")
    (model,) = dnn.load(file)
    told = model.inputs[0].properties
    assert (told.tensor_type, told.dtype, told.shape, told.aligned_shape) == (
        "NV12",
        "uint8",
        (1, 3, 4, 6),
        (1, 3, 4, 16),
    )
    nv12 = np.arange(36, dtype=np.uint8).reshape(6, 6)
    (out,) = model(nv12)
    np.testing.assert_array_equal(out[0, 0], nv12[:4])
    np.testing.assert_array_equal(out[0, 1, ::2, ::2], nv12[4:, ::2])
    np.testing.assert_array_equal(out[0, 2, 1::2, 1::2], nv12[4:, 1::2])
    wide = np.pad(nv12, ((0, 0), (0, 10)), constant_values=99)
    np.testing.assert_array_equal(model(wide)[0], out)
    with pytest.raises(CallerError, match=r"has 36, or 96 with rows of 16 bytes, not 35"):
        model(nv12.reshape(-1)[:35])


@each(
    "kind, dtype",
    [("bool", np.bool_), ("uint64", np.uint64), ("float16", np.float16), ("double", np.float64), ("int32", np.int32)],
)
@each("shape", [(), (0, 3), (2, 1, 3)])
def test_every_type_and_shape_passes_unchanged(dsp_board: Board, kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    sizes = ",".join(map(str, shape))
    model = one(
        f"g ({kind}[{sizes}] x) => ({kind}[{sizes}] y) {{ y = Identity(x) }}"
        if shape
        else f"g ({kind} x) => ({kind} y) {{ y = Identity(x) }}"
    )
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    (y,) = model(x)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(y, x)


def test_sizes_that_the_data_decides(dsp_board: Board) -> None:
    model = one("g (float[n] x) => (int64[1,m] y) { y = NonZero(x) }")
    assert model.inputs[0].properties.shape == (-1,)
    for size in (5, 3, 0, 20_000, 5):  # the largest result is above the first room for it
        x = np.arange(size, dtype=np.float32) % 2
        np.testing.assert_array_equal(model(x)[0], np.nonzero(x))
    for count in (7, 7, 7, 2, 2, 300, 7):  # of inputs of one size
        x = np.zeros(400, np.float32)
        x[:count] = 1
        np.testing.assert_array_equal(model(x)[0], np.nonzero(x))


def test_threads_may_call_one_model(dsp_board: Board, images: Any) -> None:
    (model,) = dnn.load(DIGITS / "digits_float.onnx")
    expected = [model(image)[0] for image in images]
    wrong: list[int] = []

    def work(start: int) -> None:
        frames = [at % 20 for at in range(start, start + 40)]
        wrong.extend(at for at in frames if not np.array_equal(model(images[at])[0], expected[at]))

    in_threads(lambda number: work(5 * number), range(4))
    assert wrong == []


def test_memory_goes_with_the_model(dsp_board: Board) -> None:
    (model,) = dnn.load(DIGITS / "digits_float.onnx")
    model(np.zeros((1, 1, 8, 8)))
    assert len(attached().blocks.owned()) == 2
    del model
    gc.collect()
    assert attached().blocks.owned() == []


@pytest.mark.parametrize(
    "where",
    ["hbrt.attach.link.wire.encode_request", "arm_client.dnn.cores.tasks.call_site", "arm_client.memory.blocks.sorted"],
)
def test_models_that_the_collector_finds_in_the_middle_of_a_call(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    module, _, name = where.rpartition(".")
    real = pkgutil.resolve_name(where if name != "sorted" else "builtins.sorted")
    (other,) = dnn.load(DIGITS / "digits_float.onnx")
    image = np.zeros((1, 1, 8, 8), np.float32)
    other.forward(image)
    gc.disable()
    try:
        cycle: list[Any] = dnn.load(DIGITS / "digits_int8.onnx")
        cycle[0](image)
        cycle.append(cycle)
        del cycle

        def collect(*args: Any, **options: Any) -> Any:
            gc.collect()
            return real(*args, **options)

        def use() -> None:
            dsp_board.empty(4)
            attached().blocks.owned()
            other.forward(image)

        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{name}", collect, raising=False)
            thread = threading.Thread(target=use, daemon=True)
            thread.start()
            thread.join(20)
            assert not thread.is_alive(), "it waits for its own lock"
    finally:
        gc.enable()
    other.forward(image)
    assert len(runtime.models) == 1
    assert len(attached().blocks.owned()) == 2


@pytest.mark.parametrize("moment", ["on_alloc", "on_free", "_discard", "release_block", "changes"])
def test_models_that_the_collector_finds_in_the_thread_that_answers(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A board of another machine: what asks for anything in its connection's thread would wait for itself."""

    class Copies(dnn.Layer):
        def Forward(self, bottom: Any, top: Any, ctrl: Any) -> int:
            top[0].numpy()[...] = bottom[0].numpy()
            return 0

    assert hb.hbDNNRegisterLayerCreator("Softmax", Copies) == 0  # what is next to it lies in device memory
    with RemoteRelay(dsp_board.path) as relay, connect(relay.address) as board:
        before = set_default(board.session)
        (other,) = dnn.load(DIGITS / "digits_float.onnx")
        gc.collect()
        gc.disable()
        try:
            text = "g (float[1,9] x) => (float[1,9] y) { a = Exp(x) b = Softmax(a) y = Neg(b) }"
            cycle: list[Any] = dnn.load(parsed(text))
            cycle[0](np.zeros((1, 9), np.float32))
            cycle.append(cycle)
            del cycle
            real = getattr(RemoteMemory, moment)
            with monkeypatch.context() as patch:
                patch.setattr(RemoteMemory, moment, lambda *given, **named: (gc.collect(), real(*given, **named))[1])
                thread = threading.Thread(target=lambda: board.alloc(4096).free(), daemon=True)
                thread.start()
                thread.join(20)
                assert not thread.is_alive(), "the connection's thread waits for itself"
            other(np.zeros((1, 1, 8, 8), np.float32))
            assert len(runtime.models) == 1
            del other
            gc.collect()
            assert board.session.blocks.owned() == []
        finally:
            gc.enable()
            set_default(before)
            assert hb.hbDNNUnregisterLayerCreator("Softmax") == 0


@pytest.mark.parametrize("holder", ["request", "tasks"])
def test_a_model_that_goes_while_a_lock_is_held_is_released_later(
    dsp_board: Board, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other,) = dnn.load(DIGITS / "digits_float.onnx")
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    image = np.zeros((1, 1, 8, 8), np.float32)
    model(image)
    session = attached()
    with monkeypatch.context() as patch, runtime.tasks._lock if holder == "tasks" else nullcontext():
        if holder == "request":
            patch.setattr(vars(session.link)["requests"], "_open", {1: Question()})
        del model
        assert len(runtime.models) == 2
    other(image)
    assert len(runtime.models) == 1
    assert len(session.blocks.owned()) == 2


def test_latency_is_measured(dsp_board: Board) -> None:
    (model,) = dnn.load(DIGITS / "digits_float.onnx")
    assert np.isnan(model.estimate_latency)
    model(np.zeros((1, 1, 8, 8)))
    assert model.estimate_latency > 0


def test_one_image_needs_no_batch_and_no_shape(dsp_board: Board) -> None:
    (model,) = dnn.load(DIGITS / "digits_float.onnx")
    image = np.random.default_rng(1).random((1, 1, 8, 8), np.float32)
    wanted = model.forward(image)[0].buffer
    for given in (image[0], image[0, 0], image.ravel()):
        np.testing.assert_array_equal(model.forward(given)[0].buffer, wanted)


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ((), "The model digits_int8 has 1 inputs (image), not 0."),
        ((np.zeros((1, 4, 16)),), "'image' has the shape [1, 1, 8, 8], not [1, 4, 16]."),
        ((np.zeros((1, 1, 8, 8), np.int16),), "'image' holds int8, not int16: convert it with astype('int8')."),
    ],
)
def test_an_input_that_does_not_fit_is_a_sentence(dsp_board: Board, inputs: tuple[Any, ...], sentence: str) -> None:
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    with pytest.raises(CallerError) as caught:
        model(*inputs)
    assert sentence in str(caught.value)
    assert caught.value.status == Status.HB_DNN_INVALID_ARGUMENT


def test_values_of_another_type_hear_what_makes_them_fit(dsp_board: Board, tmp_path: Path) -> None:
    (quantized,) = dnn.load(DIGITS / "digits_int8.onnx")
    with pytest.raises(
        CallerError, match=r"'image' holds int8, not float64: quantize real numbers with the tensor's qua"
    ):
        quantized.forward(np.zeros((1, 1, 8, 8)))
    (real,) = dnn.load(DIGITS / "digits_float.onnx")
    with pytest.raises(CallerError, match=r"'image' holds float32, not float64: convert it with astype\('float32'\)\."):
        real.forward(np.zeros((1, 1, 8, 8)))
    (tmp_path / "gray.onnx").write_bytes((DIGITS / "digits_float.onnx").read_bytes())
    (tmp_path / "gray.yaml").write_text("input_type_rt: gray\nscale_value: 0.0625\n")
    (picture,) = dnn.load(tmp_path / "gray.onnx")
    with pytest.raises(CallerError, match=r"'image' holds uint8, not float32: it is a picture: pass its bytes"):
        picture.forward(np.zeros((8, 8), np.float32))
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    shifted = (pixels.astype(np.int16) - 128).astype(np.int8)  # as programs for X5 pass RGB
    np.testing.assert_array_equal(picture.forward(shifted)[0].buffer, picture.forward(pixels)[0].buffer)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            None,
            "'image': None is not an array of numbers; pass one array per input, in the model's order.",
        ),
        ({"image": 1}, "'image': {'image': 1} is not an array of numbers"),
        ([[[1], [1, 2]]], "'image': setting an array element with a sequence."),
    ],
)
def test_what_is_no_array_is_a_sentence(dsp_board: Board, inputs: Any, said: str) -> None:
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    with pytest.raises(CallerError) as caught:
        model.forward(inputs)
    assert said in str(caught.value)


def test_sizes_that_a_graph_does_not_accept_get_a_hint(dsp_board: Board) -> None:
    model = one("open (float[1, 1, h, w] x) => (float[1, 1, h, v] y) { z = Concat<axis = 3>(x, x) y = Add(x, z) }")
    with pytest.raises(HbrtError, match=r"broadcast.*; the graph may not accept inputs of these sizes"):
        model(np.zeros((1, 1, 7, 7), np.float32))


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"priority": 1 << 40}, "The priority is 1099511627776, but must be 0 to 255."),
        ({"priority": 1.5}, "The priority is 1.5; write an integer."),
        ({"core_id": (1 << 32) + 1}, "bpuCoreId is 4294967297"),
        ({"core_id": "1"}, "The core is '1'; write an integer."),
    ],
)
def test_a_schedule_that_there_is_none_of(dsp_board: Board, schedule: dict[str, Any], said: str) -> None:
    (model,) = dnn.load(DIGITS / "digits_int8.onnx")
    with pytest.raises(CallerError) as caught:
        model.forward(np.zeros((1, 1, 8, 8), np.int8), **schedule)
    assert said in str(caught.value)


@each(
    "source, said",
    [
        (None, "The source is None; pass a model file, a list of files, or the bytes of one model."),
        ([DIGITS / "digits_int8.onnx", 5], "a list of files, or the bytes of one model."),
        ("a\0b", "has a zero byte; pass a model's bytes with hbDNNInitializeFromDDR."),
    ],
)
def test_a_source_that_is_none(source: Any, said: str) -> None:
    with pytest.raises(CallerError) as caught:
        dnn.load(source)
    assert said in str(caught.value)


def test_a_task_that_takes_too_long_is_given_up(dsp_board: Board) -> None:
    model = one(
        "g (float[300,300] x, int64 n) => (float[300,300] y) {"
        " go = Constant <value = bool {1}> ()"
        " y = Loop (n, go, x) <body = step (int64 i, bool c, float[300,300] a) => (bool c2, float[300,300] b) {"
        " c2 = Identity(c) b = MatMul(a, a) }> }"
    )
    with pytest.raises(TimeoutError, match="did not finish within 20 ms"):
        model(np.zeros((300, 300)), np.array(1_000_000), timeout_ms=20)
    assert model(np.eye(300), np.array(2))[0].trace() == 300


def test_an_interrupted_call_leaves_no_task(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    (model,) = dnn.load(DIGITS / "digits_float.onnx")

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(runtime.tasks), "wait", interrupt)
        for _ in range(40):  # more than can be alive
            with pytest.raises(KeyboardInterrupt):
                model(np.zeros((1, 1, 8, 8)))
    assert model(np.zeros((1, 1, 8, 8)))[0].shape == (1, 10)


def test_a_file_that_is_no_model_says_why(dsp_board: Board, tmp_path: Path) -> None:
    with pytest.raises(HbrtError) as caught:
        dnn.load(tmp_path / "none.onnx")
    assert caught.value.status == Status.HB_DNN_CAN_NOT_OPEN_FILE
    assert "none.onnx" in str(caught.value)
