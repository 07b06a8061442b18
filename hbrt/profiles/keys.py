"""The constants of a profile and their allowed values, in one table. Pure.

A constant for a kind of cores (``Key.of``) is required if the board has such cores, and is meaningless otherwise. In
addition, a profile may have ``codes.NAME``: the numbers of status names that its programs see.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Key(NamedTuple):
    """Allowed values of a constant: ``is_whole`` for counts, ``of`` the kind of cores that needs it or ""."""

    least: float
    most: float
    unit: str
    help: str
    is_whole: bool = True
    of: str = ""


KINDS: Final = ("dsp", "bpu", "npu")
"""The kinds of cores, in display order."""
CODES: Final = "codes."
_CODE: Final = Key(-(1 << 31), 1 << 32, "", "number of a status")
_MOST: Final = 1_000_000_000

_OF_ALL: Final[dict[str, Key]] = {
    "cores.dsp.count": Key(0, 8, "cores", "DSP cores of the board"),
    "cores.bpu.count": Key(0, 8, "cores", "BPU cores of the board"),
    "cores.npu.count": Key(0, 8, "cores", "NPU cores of the board"),
    "ddr.mb_per_s": Key(1, _MOST, "MB/s", "throughput of the DDR, which all cores share", is_whole=False),
    "ddr.base": Key(0, (1 << 62) - 1, "", "physical address of the first byte of DDR"),
    "priority.highest": Key(0, 255, "", "number of the highest priority of a task"),
    "priority.lowest": Key(0, 255, "", "number of the lowest priority of a task"),
}
_OF_BPU: Final[dict[str, Key]] = {
    "limits.model_tasks": Key(1, 4096, "tasks", "model tasks that a program may have in flight"),
}
_OF_NPU: Final[dict[str, Key]] = {
    "cores.npu.clock_mhz": Key(1, 100_000, "MHz", "clock of an NPU core", is_whole=False),
    "npu.functions": Key(1, 4, "", "the column of the public matrix of functions that the chip is in: P1 to P4"),
    "npu.c2_int8": Key(0, 64, "channels", "C2 of NC1HWC2 with 8 bits per element, 0 where the chip has no such layout"),
    "npu.c2_float16": Key(0, 64, "channels", "the same of float16"),
    "npu.c2_int16": Key(0, 64, "channels", "the same of int16"),
    "npu.width_align": Key(1, 64, "pixels", "what the width of an input with 1, 3 or 4 channels is rounded up to"),
    "npu.bytes_align": Key(1, 64, "bytes", "what the size of an input that has not four dimensions is rounded up to"),
    "npu.int8_macs": Key(1, _MOST, "MACs", "multiplications of int8 that a core does in a cycle"),
    "npu.float16_macs": Key(1, _MOST, "MACs", "the same of float16"),
    "npu.depthwise_macs": Key(1, _MOST, "MACs", "the same of int8 in a depthwise convolution"),
    "npu.ddr_mb_per_s": Key(1, _MOST, "MB/s", "throughput between the NPU and the DDR"),
    "sram.bytes": Key(0, 1 << 30, "bytes", "SRAM that the NPU may use"),
    "sram.base": Key(0, (1 << 62) - 1, "", "physical address of its first byte"),
}
_OF_DSP: Final[dict[str, Key]] = {
    "cores.dsp.clock_mhz": Key(1, 100_000, "MHz", "clock of a DSP core", is_whole=False),
    "cores.dsp.domain_cores": Key(1, 8, "cores", "DSP cores of a process domain, which crash and start again as one"),
    "cores.dsp.rule_ns": Key(0.01, 1000, "ns", "the vendor's rule for the length of a cycle", is_whole=False),
    "tcm.banks": Key(2, 2, "banks", "banks of TCM"),
    "tcm.bank_bytes": Key(4096, 131072, "bytes", "size of a bank"),
    "tcm.vtcm_bytes": Key(4096, 1 << 25, "bytes", "vector memory that images of FastRPC ask for"),
    "tcm.usable_bytes": Key(1024, 131072, "bytes", "bytes of a bank that ops may use, unless the image says another"),
    "vector.bits": Key(512, 1024, "bits", "bits of a vector"),
    "vector.slots": Key(1, 16, "slots", "operations in an instruction"),
    "vector.memory_slots": Key(1, 16, "slots", "loads and stores in an instruction"),
    "vector.store_slots": Key(1, 16, "slots", "stores in an instruction"),
    "vector.alu_slots": Key(1, 16, "slots", "additions, comparisons, shifts in an instruction"),
    "vector.mul_slots": Key(1, 16, "slots", "multiplications in an instruction"),
    "vector.pack_slots": Key(1, 16, "slots", "packs of a wide register in an instruction"),
    "vector.select_slots": Key(1, 16, "slots", "selections of lanes in an instruction"),
    "vector.reduce_slots": Key(1, 16, "slots", "reductions in an instruction"),
    "vector.schedule": Key(1, 100, "cycles", "what a loop takes for each cycle of its scarcest slot", is_whole=False),
    "vector.gather_cycles": Key(0, 100_000, "cycles", "a gather or a scatter"),
    "vector.divide_cycles": Key(0, 100_000, "cycles", "a division, reciprocal or root"),
    "scalar.cycles": Key(0, 1000, "cycles", "a scalar operation"),
    "scalar.printf_cycles": Key(0, _MOST, "cycles", "a call of printf"),
    "scalar.printf_byte_cycles": Key(0, _MOST, "cycles", "one character printed by printf"),
    "ddr.load_bytes": Key(1, 4096, "bytes", "bytes of one access straight to DDR"),
    "ddr.stall_cycles": Key(0, 1_000_000, "cycles", "what the core waits for such an access"),
    "idma.queue_depth": Key(1, 64, "descriptors", "copies that may be outstanding"),
    "idma.issue_cycles": Key(0, 1_000_000, "cycles", "the core's own cost of a copy"),
    "idma.setup_cycles": Key(0, 1_000_000, "cycles", "the engine's delay before the first byte of a copy"),
    "idma.row_cycles": Key(0, 1_000_000, "cycles", "each row of a 2-D copy after the first"),
    "idma.bytes_per_cycle": Key(1, 4096, "bytes", "the engine's throughput"),
    "idma.poll_cycles": Key(1, 1_000_000, "cycles", "a poll of a copy that is not done"),
    "rpc.call_us": Key(0, _MOST, "µs", "a call from the CPU and back, without the op", is_whole=False),
    "rpc.relay_us": Key(0, _MOST, "µs", "what a relay adds to a call", is_whole=False),
    "rpc.buffer_us": Key(0, _MOST, "µs", "a buffer of a call: its cache maintenance and mapping", is_whole=False),
    "rpc.flush_bytes_per_us": Key(1, _MOST, "bytes", "bytes per µs of cache maintenance", is_whole=False),
    "cpu.random_ns": Key(0, _MOST, "ns", "an access that misses the caches", is_whole=False),
    "cpu.operation_ns": Key(0, _MOST, "ns", "a scalar operation", is_whole=False),
    "cpu.divide_ns": Key(0, _MOST, "ns", "a float division", is_whole=False),
    "cpu.bytes_per_us": Key(1, _MOST, "bytes", "memset and memcpy of one core", is_whole=False),
    "cpu.host_ratio": Key(0.01, 1000, "times", "how many times slower than this machine", is_whole=False),
    "estimate.instructions": Key(1, 10_000, "instructions", "for each 64 bytes of an op that charges none"),
}

KEYS: Final[dict[str, Key]] = {
    **_OF_ALL,
    **{
        key: rule._replace(of=kind)
        for kind, table in (("dsp", _OF_DSP), ("bpu", _OF_BPU), ("npu", _OF_NPU))
        for key, rule in table.items()
    },
}


def rule_of(key: str) -> Key | None:
    """Return the allowed values of a constant; None if there is no such constant."""
    return _CODE if key.startswith(CODES) else KEYS.get(key)
