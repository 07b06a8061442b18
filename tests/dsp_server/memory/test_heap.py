"""The allocator's rules by table: where blocks go, what is refused, and in which words."""

import pytest

from dsp_server.memory.heap import BadSize, Heap, NotAllocated, NotFree, OutOfMemory
from tests.dsp_server.memory.heap_rules import check
from tests.each import each

BASE = 0x8000_0000
PAGE = 4096


def heap_of(pages: int, guard_pages: int = 1) -> Heap:
    return Heap(BASE, pages * PAGE, guard_pages=guard_pages)


def page_of(phy_addr: int) -> int:
    return (phy_addr - BASE) // PAGE


@each(
    "size_bytes, pages",
    [(1, 1), (PAGE - 1, 1), (PAGE, 1), (PAGE + 1, 2), (3 * PAGE, 3)],
)
def test_a_block_takes_whole_pages_and_a_guard_follows(size_bytes: int, pages: int) -> None:
    heap = heap_of(16)
    first, second = heap.alloc(size_bytes, "a"), heap.alloc(1, "a")
    assert (first.phy_addr, first.size_bytes, first.reserved_bytes) == (BASE, size_bytes, pages * PAGE)
    assert page_of(second.phy_addr) == pages + 1
    assert heap.used_bytes == (pages + 1) * PAGE
    assert heap.free_bytes == (16 - pages - 1 - 2) * PAGE  # two guards
    check(heap)


@each("guard_pages", [0, 1, 3])
def test_an_empty_heap_can_be_given_away_whole(guard_pages: int) -> None:
    heap = heap_of(8, guard_pages)
    assert heap.free_bytes == heap.largest_free_bytes == 8 * PAGE
    block = heap.alloc(8 * PAGE, "a")
    assert (heap.free_bytes, heap.largest_free_bytes, heap.used_bytes) == (0, 0, 8 * PAGE)
    check(heap)
    heap.free(block.phy_addr)
    assert heap.free_bytes == heap.largest_free_bytes == 8 * PAGE
    check(heap)


def test_without_guards_blocks_are_adjacent() -> None:
    heap = heap_of(2, guard_pages=0)
    assert [page_of(heap.alloc(PAGE, "a").phy_addr) for _ in range(2)] == [0, 1]
    assert heap.free_bytes == 0


def test_the_smallest_range_that_fits_is_taken_and_of_equal_ones_the_lowest() -> None:
    heap = heap_of(64)
    blocks = [heap.alloc(pages * PAGE, "a") for pages in (5, 1, 3, 1, 3, 1)]
    for freed in (0, 2, 4):  # holes of 5, 3 and 3 pages, at pages 0, 8 and 14, and the rest of the heap
        heap.free(blocks[freed].phy_addr)
    assert page_of(heap.alloc(2 * PAGE, "a").phy_addr) == 8
    assert page_of(heap.alloc(3 * PAGE, "a").phy_addr) == 14
    assert page_of(heap.alloc(4 * PAGE, "a").phy_addr) == 0
    check(heap)


@each("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_neighbors_that_are_free_become_one_range(order: tuple[int, ...]) -> None:
    heap = heap_of(16)
    blocks = [heap.alloc(2 * PAGE, "a") for _ in range(3)]
    for index in order:
        heap.free(blocks[index].phy_addr)
        check(heap)
    assert heap.largest_free_bytes == heap.free_bytes == 16 * PAGE


def test_the_same_calls_give_the_same_addresses() -> None:
    def story() -> list[tuple[int, int, int]]:
        heap = heap_of(256)
        blocks = [heap.alloc(size * 700, size % 3) for size in range(1, 20)]
        for block in blocks[::2]:
            heap.free(block.phy_addr)
        heap.alloc(9000, 7)
        return [(block.block_id, block.phy_addr, block.serial) for block in heap]

    assert story() == story()


def test_an_id_is_used_again_after_free_and_a_serial_never() -> None:
    heap = heap_of(64)
    blocks = [heap.alloc(1, "a") for _ in range(4)]
    assert [block.block_id for block in blocks] == [1, 2, 3, 4]
    heap.free(blocks[2].phy_addr)
    heap.free(blocks[1].phy_addr)
    again = [heap.alloc(1, "a") for _ in range(3)]
    assert [block.block_id for block in again] == [2, 3, 5]
    assert [block.serial for block in again] == [5, 6, 7]


def test_ids_index_a_table_of_half_the_pages_when_there_are_guards() -> None:
    heap = heap_of(9)
    ids = []
    while heap.largest_free_bytes:
        ids.append(heap.alloc(1, "a").block_id)
    assert ids == [1, 2, 3, 4, 5]


@each(
    "offset, found, nearest",
    [
        (0, 0, 0),
        (1, 0, 0),
        (2 * PAGE - 1, 0, 0),  # the rest of its last page
        (2 * PAGE, None, 0),  # its guard
        (3 * PAGE, 1, 1),
        (4 * PAGE, None, 1),
        (15 * PAGE, None, 1),
    ],
)
def test_find_and_nearest(offset: int, found: int | None, nearest: int) -> None:
    heap = heap_of(16)
    blocks = [heap.alloc(PAGE + 10, "a"), heap.alloc(PAGE, "b")]
    assert heap.find(BASE + offset) == (None if found is None else blocks[found])
    assert heap.nearest(BASE + offset) == blocks[nearest]


def test_nearest_looks_up_and_down() -> None:
    heap = heap_of(16)
    assert heap.nearest(BASE) is None
    assert heap.find(BASE) is None
    low, gap, high = (heap.alloc(3 * PAGE, "a") for _ in range(3))
    heap.free(gap.phy_addr)
    assert heap.nearest(low.phy_addr + low.reserved_bytes) == low
    assert heap.nearest(high.phy_addr - 1) == high
    assert heap.nearest(0) == low
    assert heap.nearest(1 << 63) == high


def test_blocks_keep_their_owners_in_address_order() -> None:
    heap = heap_of(32)
    mine = [heap.alloc(size, "me") for size in (5000, 1, 9000)]
    other = heap.alloc(1, 7)
    assert [block for block in heap if block.owner == "me"] == mine
    for block in mine:
        heap.free(block.phy_addr)
    assert list(heap) == [other]
    assert len(heap) == 1
    check(heap)


@each("size_bytes", [0, -1, -PAGE])
def test_a_size_that_no_block_can_have_is_refused(size_bytes: int) -> None:
    heap = heap_of(4)
    with pytest.raises(ValueError, match=rf"^Cannot allocate a block of {size_bytes} bytes: the minimum") as info:
        heap.alloc(size_bytes, "a")
    assert isinstance(info.value, BadSize)
    assert heap.free_bytes == 4 * PAGE


@each(
    "base, size_bytes, page_bytes, guard_pages",
    [
        (BASE + 1, 4 * PAGE, PAGE, 1),
        (BASE, PAGE + 1, PAGE, 1),
        (BASE, 0, PAGE, 1),
        (-PAGE, PAGE, PAGE, 1),
        (BASE, 3000, 3000, 1),
        (BASE, 4 * PAGE, 0, 1),
        (BASE, 4 * PAGE, PAGE, -1),
    ],
)
def test_a_heap_that_cannot_be_is_refused(base: int, size_bytes: int, page_bytes: int, guard_pages: int) -> None:
    with pytest.raises(BadSize):
        Heap(base, size_bytes, page_bytes=page_bytes, guard_pages=guard_pages)


def test_out_of_memory_says_how_much_there_is_and_changes_nothing() -> None:
    heap = heap_of(10)
    blocks = [heap.alloc(2 * PAGE, "a") for _ in range(3)]
    heap.free(blocks[1].phy_addr)  # holes of 2 pages and, at the end, 1
    with pytest.raises(OutOfMemory) as info:
        heap.alloc(3 * PAGE, "b")
    assert str(info.value) == (
        "12288 bytes were requested, but the largest free range holds 8192 (16384 are free in total): "
        "free what you do not need, or start the board with more DDR."
    )
    refusal = info.value
    assert (refusal.asked_bytes, refusal.free_bytes, refusal.largest_free_bytes) == (12288, 16384, 8192)
    check(heap)
    assert list(heap) == [blocks[0], blocks[2]]
    heap.alloc(heap.largest_free_bytes, "b")


def refusal_of(heap: Heap, phy_addr: int) -> NotAllocated:
    with pytest.raises(NotAllocated) as info:
        heap.free(phy_addr)
    check(heap)
    return info.value


def test_free_says_what_is_wrong_with_an_address() -> None:
    heap = heap_of(16)
    assert str(refusal_of(heap, BASE)) == (
        "0x80000000 was never allocated, or was freed long ago; no block is allocated."
    )
    kept, gone = heap.alloc(PAGE, "camera"), heap.alloc(2 * PAGE, 7)
    heap.free(gone.phy_addr)
    assert str(refusal_of(heap, gone.phy_addr)) == (
        "0x80002000 was already freed (free it only once): it was the block at 0x80002000 (8192 bytes, owner 7); "
        "the nearest block is 0x80000000 (4096 bytes, owner 'camera')."
    )
    inside_freed = refusal_of(heap, gone.phy_addr + 16)
    assert str(inside_freed).startswith("0x80002010 lies in freed memory, the block that was at 0x80002000 (")
    assert (inside_freed.freed, inside_freed.nearest, inside_freed.phy_addr) == (gone, kept, 0x8000_2010)
    inside = refusal_of(heap, kept.phy_addr + 64)
    assert str(inside) == (
        "0x80000040 lies 64 bytes inside the block at 0x80000000 (4096 bytes, owner 'camera'): "
        "pass the address that the allocation returned."
    )
    for outside in (0x1000, BASE + 16 * PAGE):
        assert str(refusal_of(heap, outside)) == (
            f"0x{outside:x} is outside DDR (0x80000000 to 0x80010000): "
            "pass a physical address that the allocation returned, not a virtual one."
        )


def test_the_memory_of_freed_blocks_is_bounded_and_the_latest_wins() -> None:
    heap = heap_of(16)
    for owner in range(300):
        heap.free(heap.alloc(1, owner).phy_addr)
    freed = refusal_of(heap, BASE).freed
    assert freed is not None
    assert freed.owner == 299
    assert len(heap._freed) == 256


def test_the_check_sees_damage() -> None:
    heap = heap_of(16)
    block = heap.alloc(PAGE, "a")
    heap._blocks[block.phy_addr] = block._replace(reserved_bytes=2 * PAGE)
    with pytest.raises(AssertionError, match="the count of used bytes is wrong"):
        check(heap)
    heap = heap_of(16)
    heap._free._insert(20, 22)
    with pytest.raises(AssertionError, match="pages 20 to 22 do not follow the previous range"):
        check(heap)


def test_a_block_at_an_address_splits_a_free_range_and_ends_every_rest() -> None:
    heap = Heap(BASE, 16 * PAGE, rest_bytes=16 * PAGE)
    at = BASE + 5 * PAGE
    assert heap.alloc(2 * PAGE, "a", at).phy_addr == at
    check(heap)
    assert page_of(heap.alloc(4 * PAGE, "a").phy_addr) == 0  # what is left below holds it and its guard
    heap.free(at)
    assert heap.alloc(PAGE, "a", at + PAGE).phy_addr == at + PAGE  # though the freed block rested there
    check(heap)


@each(
    "at, error, why",
    [
        (BASE + 4 * PAGE, NotFree, "4096 bytes at 0x80004000 are not free in the heap: The block at"),
        (BASE + 3 * PAGE, NotFree, "not free"),  # its guard would lie in the block
        (BASE + 16 * PAGE, BadSize, "No block can start at 0x80010000"),
        (BASE + 1, BadSize, "No block can start at"),
        (0, BadSize, "No block can start at 0x0"),
    ],
)
def test_an_address_that_cannot_be_had_is_refused(at: int, error: type[Exception], why: str) -> None:
    heap = heap_of(16)
    heap.alloc(PAGE, "a", BASE + 4 * PAGE)
    with pytest.raises(error, match=why):
        heap.alloc(PAGE, "b", at)
    check(heap)
