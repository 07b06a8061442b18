"""SRAM: pages of contexts, the bitmap, and the accounting against the published log of a model of 31 layers."""

from onnx import ModelProto, TensorProto, helper

from rknn_api.planning import Lifetime, arena_bytes, internal_tensors, place
from rknn_api.sram import Region, bitmap, hit, table, take, traffic

TOTAL = 978944
# Start, end and bytes in SRAM of each internal tensor of the published log, whose window is 0xff3e0000 to 0xff460000.
BIG, HALF, TOP, LOW = 0x18800, 0x31000, 0xFF3F8800, 0xFF3E0000
LOG = [
    (0xFF404C00, 0xFF466C00, 0x5B400), (0xFF466C00, 0xFF52AC00, 0), (0xFF52AC00, 0xFF5EEC00, 0),
    (0xFF3E0000, 0xFF411000, HALF), (0xFF411000, 0xFF473000, 0x4F000), (0xFF473000, 0xFF4D5000, 0),
    (0xFF3E0000, 0xFF442000, 0x62000), (0xFF442000, 0xFF45A800, BIG), (0xFF3E0000, 0xFF411000, HALF),
    (0xFF411000, 0xFF442000, HALF), (0xFF3E0000, 0xFF411000, HALF), (0xFF411000, 0xFF41D400, 0xC400),
    *((LOW, LOW + BIG, BIG) if at % 2 == 0 else (TOP, TOP + BIG, BIG) for at in range(11)),
    (TOP, 0xFF3FF000, 0x6800), (LOW, 0xFF3ED000, 0xD000), (0xFF3ED000, 0xFF3FA000, 0xD000), (LOW, 0xFF3ED000, 0xD000),
    (0xFF3ED000, 0xFF3ED400, 0x400), (LOW, 0xFF3E0400, 0x400),
]  # fmt: skip
WINDOW, INPUT_BYTES, OUTPUT_BYTES = Region(0xFF3E0000, 524288), 0x24C00, 0xFA0


def test_the_published_log_adds_up() -> None:
    assert len(LOG) == 31 - 2  # its first row is the input, its last the output
    assert [hit(start, end, WINDOW) for start, end, _ in LOG] == [inside for *_, inside in LOG]
    spans = [(start, end) for start, end, _ in LOG]
    assert traffic(spans, WINDOW, INPUT_BYTES + OUTPUT_BYTES) == (11068320, 6688768)
    assert max(end for _, end in spans) - WINDOW.start == 2157568


def test_the_bitmap_of_a_free_and_of_a_used_sram() -> None:
    head, *rows, sums = bitmap(TOTAL, []).splitlines()
    assert head.startswith('SRAM bitmap: "*" - used')
    assert rows == [*(f"[{at:03}] [{'.' * 32}]" for at in range(7)), f"[007] [{'.' * 15}]"]
    assert sums == "SRAM total size: 978944, used: 0, free: 978944"
    _, *rows, sums = bitmap(TOTAL, [Region(0, 524288)]).splitlines()
    assert [row[7:-1] for row in rows] == ["*" * 32] * 4 + ["." * 32] * 3 + ["." * 15]
    assert sums == "SRAM total size: 978944, used: 524288, free: 454656"


def test_contexts_get_pages_beside_each_other_until_none_is_left() -> None:
    first = take(5000, TOTAL, [])
    assert first == (0, 8192)
    second = take(4096, TOTAL, [first])
    third = take(2 * TOTAL, TOTAL, [second, first])
    assert (second, third) == ((8192, 4096), (12288, TOTAL - 12288))
    assert take(4096, TOTAL, [first, second, third]).size_bytes == 0
    assert take(8192, TOTAL, [second, third]) == (0, 8192)
    assert take(0, TOTAL, []).size_bytes == 0


def test_tensors_that_live_at_once_do_not_overlap() -> None:
    tensors = [
        Lifetime("a", 2048, 0, 1),
        Lifetime("b", 1024, 1, 2),
        Lifetime("c", 2048, 2, 3),
        Lifetime("d", 1024, 2, 3),
    ]
    placed = place(tensors)
    assert {one.tensor.name: one.start for one in placed} == {"a": 0, "b": 2048, "c": 0, "d": 3072}
    assert arena_bytes(placed) == 4096
    edge = Lifetime("x", 100, 0, 0, "InputOperator", "int8", (1, 3, 4, 8), (1, 3, 4, 8))
    edges = [edge], [Lifetime("out", 20, 0, 0, dtype="float16", shape=(1, 10), native=(1, 10))]
    said = table(placed, edges, (640, 600), Region(4096, 3072), 0xFF001000).splitlines()
    assert said[0] == "Total allocated Internal SRAM Size: 3072, Addr: [0xff002000, 0xff002c00)"
    heads = [
        "ID",
        "User",
        "Tensor",
        "DataType",
        "OrigShape",
        "NativeShape",
        "|",
        "[Start",
        "End)",
        "Size",
        "|",
        "SramHit",
    ]
    assert said[1].split() == heads
    assert said[2].split() == ["1", "InputOperator", "x", "INT8", *["(1,3,4,8)"] * 2, "|", "0x00000064", "|", "\\"]
    assert said[4].split()[-6:] == ["|", "0xff002800", "0xff002c00", "0x00000400", "|", "0x00000400"]
    assert said[7].split() == ["6", "OutputOperator", "out", "FLOAT16", *["(1,10)"] * 2, "|", "0x00000014", "|", "\\"]
    assert said[8:] == [
        "Total Weight Memory Size: 640",
        "Total Internal Memory Size: 4096",
        "Predict Internal Memory RW Amount: 12408",
        "Predict Weight Memory RW Amount: 600",
        "Predict SRAM Hit RW Amount: 10240",
    ]


def test_internal_tensors_are_stored_as_in_the_published_log() -> None:
    """Rows 2, 5, 25, 26 and 29 of the log: sizes of int8 tensors in NC1HWC2, and the layers that read them."""
    for channels, side, size in (
        (32, 112, 0x62000), (64, 56, 0x31000), (512, 7, 0x6800), (1024, 7, 0xD000), (1024, 1, 0x400),
    ):  # fmt: skip
        model = net(channels, side)
        (stored,) = internal_tensors(model, {"int8": 16}, {"y": "ConvRelu"})
        assert (stored.user, stored.dtype, stored.shape) == ("ConvRelu", "int8", (1, channels, side, side))
        assert stored.size_bytes == size
    assert internal_tensors(net(1024, 1), {"int8": 16}, {})[0].native == (1, 64, 1, 1, 16)
    assert internal_tensors(net(512, 7), {"int8": 16}, {})[0].native == (1, 33, 7, 7, 16)
    assert internal_tensors(net(13, 4, TensorProto.FLOAT), {"float16": 8}, {})[0].dtype == "float16"


def net(channels: int, side: int, kind: int = TensorProto.INT8) -> ModelProto:
    """Two operators with one tensor in between."""
    shape = [1, channels, side, side]
    x, t, y = (helper.make_tensor_value_info(name, kind, shape) for name in "xty")
    nodes = [helper.make_node("Identity", ["x"], ["t"]), helper.make_node("Identity", ["t"], ["y"])]
    return helper.make_model(helper.make_graph(nodes, "net", [x], [y], value_info=[t]))
