import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from rknn_api.container import Container, Metadata, TensorInfo
from rknn_api.errors import RknnError, RknnStatus
from tests.rknn_api.capi.models import model

TENSOR = TensorInfo("x", (1, 3, 8, 8), "float32", "int8", 0.5, -3, "NCHW", (103.94,), (58.8,), "x_q")
METADATA = Metadata(
    "rk3588",
    (TENSOR,),
    (replace(TENSOR, name="y"),),
    dynamic_input=(((1, 3, 8, 8),), ((1, 3, 4, 4),)),
    custom_string="été",
    custom_ops=("cstSoftmax",),
)
MODEL = Container(METADATA, {"graph": b"onnx" * 40, "notes": b""})


def test_a_file_says_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "model.rknn"
    MODEL.write(path)
    read = Container.read(path)
    assert read.metadata == METADATA
    assert {name: bytes(data) for name, data in read.sections.items()} == MODEL.sections


@settings(max_examples=60)
@given(at=st.integers(0), is_cut=st.booleans())
def test_a_cut_or_a_changed_byte_is_told(*, at: int, is_cut: bool) -> None:
    whole = MODEL.to_bytes()
    held = [*range(20), *range(24, whole.index(b"}}") + 2), *range(whole.index(b"onnx"), whole.rindex(b"onnx") + 4)]
    at = held[at % len(held)]  # not the padding, which nobody reads
    changed = bytes([*whole[:at], whole[at] ^ 0x55, *whole[at + 1 :]])
    with pytest.raises(RknnError) as caught:
        Container.from_bytes(whole[:at] if is_cut else changed)
    assert caught.value.status == RknnStatus.RKNN_ERR_MODEL_INVALID


@pytest.mark.parametrize(
    "metadata",
    [
        replace(METADATA, rknn_batch_size=0),
        replace(METADATA, rknn_batch_size="a"),  # type: ignore[arg-type]  # as a file of another program may have it
        replace(METADATA, inputs=(replace(TENSOR, dtype="object"),)),
        replace(METADATA, rknn_batch_size=2.5),  # type: ignore[arg-type]
        replace(METADATA, extra=5),  # type: ignore[arg-type]
        replace(METADATA, dynamic_input=((),)),
        replace(METADATA, dynamic_output=(((1, 3, 8, 8), (1,)),)),
        replace(METADATA, inputs=(replace(TENSOR, name=5),)),  # type: ignore[arg-type]
        replace(METADATA, inputs=(replace(TENSOR, scale="x"),)),  # type: ignore[arg-type]
        replace(METADATA, outputs=(replace(TENSOR, shape=(1, 3)),)),
    ],
)
def test_a_description_that_cannot_be_is_refused(metadata: Metadata) -> None:
    with pytest.raises(RknnError, match="its description cannot be read"):
        Container.from_bytes(replace(MODEL, metadata=metadata).to_bytes())


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (lambda made: replace(made, sections={"graph": b"\xff\xff nonsense"}), "its graph cannot be read: "),
        (
            lambda made: replace(made, metadata=replace(made.metadata, outputs=made.metadata.outputs[:1])),
            r"it describes the outputs \['y'\], but its graph has \['y', 'z'\]",
        ),
        (
            lambda made: replace(made, metadata=replace(made.metadata, inputs=())),
            r"it describes the inputs \[\], but its graph has \['x'\]",
        ),
    ],
)
def test_a_graph_that_is_not_the_described_one_is_refused(changed: Callable[[Container], Container], told: str) -> None:
    made = Container.from_bytes(model("float16"))
    assert made.proto().graph.input[0].name == "x"
    with pytest.raises(RknnError, match=told) as caught:
        changed(made).proto()
    assert caught.value.status == RknnStatus.RKNN_ERR_MODEL_INVALID


def test_a_boards_file_is_refused_with_what_to_do() -> None:
    with pytest.raises(RknnError, match="runs only there"):
        Container.from_bytes(b"RKNN" + bytes(100))
    with pytest.raises(RknnError, match="is not an RKNN model of this emulator"):
        Container.from_bytes(b"\x08\x07onnx")


def test_a_path_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RknnError, match="No such file"):
        Container.read(tmp_path / "none.rknn")
    with pytest.raises(RknnError, match="Is a directory"):
        MODEL.write(tmp_path / ".." / tmp_path.name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_whole_while_others_write_it(tmp_path: Path) -> None:
    path = tmp_path / "model.rknn"
    MODEL.write(path)

    def write() -> None:
        for _ in range(50):
            MODEL.write(path)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):
        assert Container.read(path).metadata == METADATA
    assert [one.name for one in tmp_path.iterdir()] == ["model.rknn"]


def test_a_description_that_is_nested_too_deeply_and_an_endless_file_are_refused(tmp_path: Path) -> None:
    whole = MODEL.to_bytes()
    deep = b"[" * 100_000
    head = whole[: whole.index(b"{")]
    with pytest.raises(RknnError, match=r"damaged|truncated"):
        Container.from_bytes(head + deep)
    with (tmp_path / "sparse.rknn").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(RknnError, match="it has 1099511627776 bytes, more than"):
        Container.read(tmp_path / "sparse.rknn")
    os.mkfifo(tmp_path / "fifo.rknn")
    with pytest.raises(RknnError, match="it is not a regular file"):
        Container.read(tmp_path / "fifo.rknn")
