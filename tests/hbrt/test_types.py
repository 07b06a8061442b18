"""C structures as an LP64 compiler lays them out: sizes, offsets, and every field whole."""

from __future__ import annotations

import ctypes

import pytest

from hbrt.types import (
    hbDSPCore,
    hbDSPRpcCmd,
    hbDSPRpcCtrlParam,
    hbDspRpcPriority,
    hbDSPTask_t,
    hbSysMem,
    hbSysMemFlushFlag,
)


def _fields(kind: type[ctypes.Structure]) -> list[tuple[str, int, int]]:
    """Name, offset and bytes of each field."""
    names = [field[0] for field in kind._fields_]
    return [(name, getattr(kind, name).offset, getattr(kind, name).size) for name in names]


def test_a_block_is_printed_with_its_fields() -> None:
    assert repr(hbSysMem()) == "hbSysMem(phyAddr=0x0, virAddr=NULL, memSize=0)"
    assert str(hbSysMem(0x8200_0000, 0x7F00, 64)) == "hbSysMem(phyAddr=0x82000000, virAddr=0x7f00, memSize=64)"


def test_structures_have_the_sizes_and_offsets_of_c() -> None:
    assert ctypes.sizeof(hbSysMem) == 24
    assert _fields(hbSysMem) == [("phyAddr", 0, 8), ("virAddr", 8, 8), ("memSize", 16, 4)]
    assert ctypes.sizeof(hbDSPRpcCtrlParam) == 32
    assert _fields(hbDSPRpcCtrlParam) == [
        ("dspCoreId", 0, 4),
        ("rpcCmd", 4, 4),
        ("priority", 8, 4),
        ("customId", 16, 8),
        ("reserved1", 24, 4),
        ("reserved2", 28, 4),
    ]
    assert ctypes.sizeof(hbDSPTask_t) == 8


def test_values_are_those_of_the_manuals() -> None:
    assert [(flag.name, flag.value) for flag in hbSysMemFlushFlag] == [
        ("HB_SYS_MEM_CACHE_INVALIDATE", 1),
        ("HB_SYS_MEM_CACHE_CLEAN", 2),
    ]
    assert (hbDSPCore.HB_DSP_CORE_ANY, hbDSPCore.HB_DSP_CORE_0, hbDSPCore.HB_DSP_CORE_1) == (0, 1, 2)
    assert (hbDSPRpcCmd.HB_DSP_RPC_CMD_PING, hbDSPRpcCmd.HB_DSP_RPC_CMD_NN_SOFTMAX) == (0, 0x400)
    assert int(hbDSPRpcCmd.HB_DSP_RPC_CMD_BUTT) == 0xFFFF
    assert (hbDspRpcPriority.HB_DSP_RPC_PRIORITY_LOWEST, hbDspRpcPriority.HB_DSP_RPC_PRIORITY_PREEMP) == (0, 255)


def test_view_and_array_are_over_the_memory_itself() -> None:
    memory = (ctypes.c_ubyte * 64)()
    mem = hbSysMem(phyAddr=0x8000_0000, virAddr=ctypes.addressof(memory), memSize=64)
    view = mem.view()
    assert (len(view), view.format, view.readonly) == (64, "B", False)
    view[3] = 9
    assert memory[3] == 9
    array = mem.array("<u2", (4, 4))
    array[0, 1] = 0x0A0B
    assert bytes(memory[2:4]) == b"\x0b\x0a"
    assert mem.array("<f8").shape == (8,)
    assert mem.array("<f4", 3).shape == (3,)
    assert mem.array("<f4", (0, 5)).shape == (0, 5)
    with pytest.raises(
        ValueError, match=r"An array of shape \(17,\) and type float32 needs 68 bytes, but the block at"
    ):
        mem.array("<f4", 17)


def test_view_of_a_crop_starts_where_its_address_does() -> None:
    memory = (ctypes.c_ubyte * 64)(*range(64))
    crop = hbSysMem(phyAddr=0x8000_0010, virAddr=ctypes.addressof(memory) + 16, memSize=8)
    assert bytes(crop.view()) == bytes(range(16, 24))


def test_structure_that_holds_no_memory_says_so() -> None:
    mem = hbSysMem(phyAddr=0x8000_1000)
    for use in (mem.view, lambda: mem.array("u1", 1)):
        with pytest.raises(
            ValueError, match=r"holds no memory \(phyAddr 0x80001000, virAddr NULL\): .*did not return 0"
        ):
            use()
