"""C structures as an LP64 compiler lays them out: sizes, offsets, and every field whole."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from enum import IntEnum
from pathlib import Path

import pytest

from hbrt import types
from hbrt.types import (
    hbDSPCore,
    hbDSPRpcCmd,
    hbDSPRpcCtrlParam,
    hbDspRpcPriority,
    hbDSPTask_t,
    hbSysMem,
    hbSysMemFlushFlag,
)

LARGE = 0xFEDC_BA98_7654_3210
ENUMS: tuple[type[IntEnum], ...] = (hbSysMemFlushFlag, hbDSPCore, hbDSPRpcCmd, hbDspRpcPriority)  # type: ignore[assignment]


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


C_PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef struct { uint64_t phyAddr; void *virAddr; uint32_t memSize; } hbSysMem;
typedef struct {
  int32_t dspCoreId, rpcCmd, priority; int64_t customId; int32_t reserved1, reserved2;
} hbDSPRpcCtrlParam;
int main(void) {
  hbSysMem mem = {0xFEDCBA9876543210ull, (void *)0x0123456789ABCDEFull, 0xFEDCBA98u};
  hbDSPRpcCtrlParam ctrl = {1, 0x7EDCBA98, -2, -81985529216486895ll, 0x12345678, -7};
  fwrite(&mem, sizeof mem, 1, stdout);
  fwrite(&ctrl, sizeof ctrl, 1, stdout);
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler (cc)")
def test_bytes_of_a_c_compiler_are_read_field_by_field(tmp_path: Path) -> None:
    (tmp_path / "layout.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-o", "layout", "layout.c"], cwd=tmp_path, check=True)
    raw = subprocess.run([tmp_path / "layout"], check=True, capture_output=True).stdout
    mem = hbSysMem.from_buffer_copy(raw)
    assert (mem.phyAddr, mem.virAddr, mem.memSize) == (LARGE, 0x0123456789ABCDEF, 0xFEDCBA98)
    ctrl = hbDSPRpcCtrlParam.from_buffer_copy(raw, ctypes.sizeof(hbSysMem))
    assert len(raw) == ctypes.sizeof(hbSysMem) + ctypes.sizeof(hbDSPRpcCtrlParam)
    assert (ctrl.dspCoreId, ctrl.rpcCmd, ctrl.priority, ctrl.customId) == (1, 0x7EDCBA98, -2, -81985529216486895)
    assert (ctrl.reserved1, ctrl.reserved2) == (0x12345678, -7)


@pytest.mark.parametrize("kind", [hbSysMem, hbDSPRpcCtrlParam])
def test_large_value_comes_through_every_field_whole_and_alone(kind: type[ctypes.Structure]) -> None:
    """A mirror of hbSysMem with phyAddr as a double has the right size, and loses the lowest bits of this value."""
    for name, offset, size in _fields(kind):
        structure = kind()
        value = LARGE >> 64 - 8 * size
        setattr(structure, name, value)
        raw = bytes(structure)
        assert raw[offset : offset + size] == value.to_bytes(size, "little")
        assert not any(raw[:offset] + raw[offset + size :])
        assert getattr(kind.from_buffer_copy(raw), name) & (1 << 8 * size) - 1 == value


def test_structure_in_shared_bytes_is_seen_by_both_sides() -> None:
    shared = bytearray(ctypes.sizeof(hbSysMem))
    mem = hbSysMem.from_buffer(shared)
    mem.phyAddr = LARGE
    assert shared[:8] == LARGE.to_bytes(8, "little")
    shared[16:20] = (4096).to_bytes(4, "little")
    assert mem.memSize == 4096


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_flat_constant_and_enum_member_are_the_same_object(kind: type[IntEnum]) -> None:
    for name, member in kind.__members__.items():
        assert getattr(types, name) is member


def test_every_flat_constant_belongs_to_an_enum() -> None:
    flat = {name for name in vars(types) if re.match(r"HB_(DSP|SYS)_(?!VERSION)", name)}
    assert flat == {name for kind in ENUMS for name in kind.__members__}


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


def test_task_handle_holds_64_bits_and_null_is_none() -> None:
    assert hbDSPTask_t().value is None
    assert hbDSPTask_t(LARGE).value == LARGE
