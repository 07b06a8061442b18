"""The constants that a profile has: what each may be, in one table. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple


class Key(NamedTuple):
    """What a constant may be; ``is_whole`` for numbers of things."""

    least: float
    most: float
    unit: str
    help: str
    is_whole: bool = True


_MOST: Final = 1_000_000_000

KEYS: Final[dict[str, Key]] = {
    "cores.dsp.count": Key(1, 8, "cores", "DSP cores of the board"),
    "cores.dsp.clock_mhz": Key(1, 100_000, "MHz", "clock of a DSP core", is_whole=False),
    "cores.dsp.rule_ns": Key(0.01, 1000, "ns", "the vendor's rule for the length of a cycle", is_whole=False),
    "cores.bpu.count": Key(0, 8, "cores", "BPU cores of the board"),
    "tcm.banks": Key(2, 2, "banks", "banks of TCM"),
    "tcm.bank_bytes": Key(4096, 131072, "bytes", "size of a bank"),
    "tcm.usable_bytes": Key(1024, 131072, "bytes", "bytes of a bank that ops may use, unless the image says another"),
    "vector.bits": Key(512, 512, "bits", "bits of a vector"),
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
    "scalar.printf_byte_cycles": Key(0, _MOST, "cycles", "a character that printf prints"),
    "ddr.load_bytes": Key(1, 4096, "bytes", "bytes of one access straight to DDR"),
    "ddr.stall_cycles": Key(0, 1_000_000, "cycles", "what the core waits for such an access"),
    "idma.queue_depth": Key(1, 64, "descriptors", "copies that may be outstanding"),
    "idma.issue_cycles": Key(0, 1_000_000, "cycles", "the core's own cost of a copy"),
    "idma.setup_cycles": Key(0, 1_000_000, "cycles", "the engine's delay before the first byte of a copy"),
    "idma.row_cycles": Key(0, 1_000_000, "cycles", "each row of a 2-D copy after the first"),
    "idma.bytes_per_cycle": Key(1, 4096, "bytes", "the engine's throughput"),
    "idma.poll_cycles": Key(1, 1_000_000, "cycles", "a poll of a copy that is not done"),
    "rpc.call_us": Key(0, _MOST, "us", "a call from the CPU and back, without the op", is_whole=False),
    "rpc.relay_us": Key(0, _MOST, "us", "what a relay adds to a call", is_whole=False),
    "rpc.buffer_us": Key(0, _MOST, "us", "a buffer of a call: its cache maintenance and mapping", is_whole=False),
    "rpc.flush_bytes_per_us": Key(1, _MOST, "bytes", "bytes a us of cache maintenance", is_whole=False),
    "cpu.random_ns": Key(0, _MOST, "ns", "an access that misses the caches", is_whole=False),
    "cpu.operation_ns": Key(0, _MOST, "ns", "a scalar operation", is_whole=False),
    "cpu.divide_ns": Key(0, _MOST, "ns", "a float division", is_whole=False),
    "cpu.bytes_per_us": Key(1, _MOST, "bytes", "memset and memcpy of one core", is_whole=False),
    "cpu.host_ratio": Key(0.01, 1000, "times", "how many times slower than this machine", is_whole=False),
    "estimate.instructions": Key(1, 10_000, "instructions", "for each 64 bytes of an op that charges none"),
}
