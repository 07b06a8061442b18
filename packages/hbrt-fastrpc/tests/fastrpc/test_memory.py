"""Registered ranges and mapped descriptors, while other threads have theirs, and after an interrupt."""

import ctypes
from bisect import bisect_right
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fastrpc.memory import FastrpcMemory, Region
from fastrpc.wire.message import DESCRIPTOR, TABLE_BYTES
from tests.arm_client.interrupts import is_interrupted


def region(start: int) -> Region:
    block: Any = None
    return Region(start, 100, 0x1000 + start, block, is_ours=True)


LOW, HIGH, HIGHER = region(100), region(300), region(500)


@pytest.fixture
def memory() -> FastrpcMemory:
    session: Any = SimpleNamespace(blocks=None, link=SimpleNamespace(can_import=True))
    made = FastrpcMemory(session)
    for one in (LOW, HIGH, HIGHER):
        made._add(one)
    return made


def test_another_thread_frees_a_range_during_a_search(memory: FastrpcMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def bisect(starts: list[int], address: int) -> int:
        at = bisect_right(starts, address)
        memory._remove(LOW)
        return at

    monkeypatch.setattr("fastrpc.memory.bisect_right", bisect)
    assert memory.place(310, 16) == 0x1000 + 310
    assert memory.place(110, 16) == 0
    memory._add(region(200))  # ends where HIGH begins


def test_another_thread_adds_a_range_while_this_one_sorts(memory: FastrpcMemory) -> None:
    class Changing(dict[int, Region]):
        def __iter__(self) -> Iterator[int]:
            found = [*super().__iter__()]
            if 900 not in found:
                super().__setitem__(900, region(900))
            return iter(found)

    memory._regions = Changing(memory._regions)
    memory._remove(LOW)
    assert [memory.place(start, 1) for start in (100, 300, 900)] == [0, 0x1000 + 300, 0x1000 + 900]


def test_an_interrupted_removal_can_be_repeated(memory: FastrpcMemory) -> None:
    at, is_open = 0, True
    while is_open:
        at += 1
        is_open = is_interrupted(at, lambda: memory._remove(HIGH))
        assert memory.place(510, 16) == 0x1000 + 510
        memory._remove(HIGH)
        assert memory.place(310, 16) == 0
        memory._add(HIGH)
        assert memory.place(310, 16) == 0x1000 + 310
    assert at > 2


def test_two_threads_map_their_first_descriptors_at_once(memory: FastrpcMemory) -> None:
    tables = [ctypes.create_string_buffer(TABLE_BYTES) for _ in range(2)]
    blocks: list[Any] = []

    def alloc(*_: object, **__: object) -> Any:
        blocks.append(SimpleNamespace(address=ctypes.addressof(tables[len(blocks)]), phy_addr=len(blocks) + 1))
        mine = blocks[-1]
        if len(blocks) == 1:
            memory._note(8, 0x2000, 20)
        return mine

    memory._blocks = SimpleNamespace(alloc=alloc, release=blocks.remove)  # type: ignore[assignment] # all that is used
    memory._note(7, 0x1000, 10)
    assert memory.table_addr == 2
    assert [one.phy_addr for one in blocks] == [2]
    found = [DESCRIPTOR.unpack_from(tables[1], row * DESCRIPTOR.size) for row in range(3)]
    assert [(row[0], row[2], row[3]) for row in found] == [(8, 0x2000, 20), (7, 0x1000, 10), (0, 0, 0)]
