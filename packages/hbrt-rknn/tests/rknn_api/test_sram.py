"""SRAM: pages of contexts, the bitmap, and the accounting against the published log of a model of 31 layers."""

from rknn_api.planning import Lifetime, arena_bytes, place
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
    said = table(placed, Region(4096, 3072), 0xFF001000, 100)
    assert "SRAM Size: 3072, Addr: [0xff002000, 0xff002c00)" in said
    assert "b                        0xff002800 0xff002c00 0x00000400 | 0x00000400" in said
    assert "Predict Internal Memory RW Amount: 12388" in said
    assert said.endswith("Predict SRAM Hit RW Amount: 10240")
