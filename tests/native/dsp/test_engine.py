"""An op in C sees no difference whether C or Python serves its copies, tiles and mappings: answers, bytes, cycles."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dsp_server import runtime
from dsp_server.c_images import image
from dsp_server.c_images.runtime_calls import ImageRuntime
from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.engines import Engines
from dsp_server.hardware.tile_manager import TileManager
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.native.files import NotBuiltError
from hbrt.profiles.work import MAPPED_BYTES, NO_WORK

CLIENT, OTHER = 3, 4
POOL = 1024
SITES = [f"op.c:{line}".encode() for line in range(200)]  # the library keeps their addresses
Step = tuple[Any, ...]
_OP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_RESULTS = {
    "hbrt_dsp_mem_map": ctypes.c_size_t,
    "hbrt_xvAllocateBuffer": ctypes.c_size_t,
    "xvGetErrorInfo": ctypes.c_char_p,
    "XT_RSR_CCOUNT": ctypes.c_uint32,
}


class After(NamedTuple):
    """What an op has left."""

    answers: list[object]
    memory: bytes
    cycles: int
    work: list[int]
    handles: int
    copies: list[str]
    tiles: list[str]
    mappings: list[str]


class Machine:
    """The library that images link, in this process, over a DDR with two blocks and a TCM of two small banks."""

    def __init__(self) -> None:
        self.ddr = Ddr.create(8 * PAGE_BYTES, 1)
        tables, base = DdrTables(self.ddr), self.ddr.layout.phy_base
        tables.add(1, base, 3000, PAGE_BYTES, CLIENT)
        tables.add(2, base + PAGE_BYTES, PAGE_BYTES, PAGE_BYTES, OTHER)
        self.own = (ctypes.c_char * 2000)()  # the image's own memory
        self.tm = TileManager(POOL, POOL)
        if not image._runtime:
            image._runtime.append(ImageRuntime())
        self.runtime = image._runtime[0]
        self.library: Any = self.runtime._library
        for name, kind in _RESULTS.items():
            getattr(self.library, name).restype = kind
        self.tm_address = ctypes.addressof(ctypes.c_char.in_dll(self.library, "hbrt_dsp_tile_manager"))
        runtime.context.ddr, runtime.context.client_id = self.ddr, CLIENT
        runtime.context.log_level = runtime.HB_DSP_LOG_NONE

    def run(self, steps: list[Step], *, in_c: bool) -> After:
        """Have an op take steps that C serves, or Python."""
        noise = random.Random(5)
        views = [
            self.ddr.bytes[self.ddr.layout.heap :],
            *(bank.memory for bank in self.tm._banks),
            memoryview(self.own),
        ]
        for view in views:
            view.cast("B")[:] = noise.randbytes(view.nbytes)
        self.tm.reset()
        self.tm._freed.clear()
        runtime.context.mappings, runtime.context.mapped_bytes = [], 0
        engines = Engines(self.tm, CycleCounter(1000), (Idma if in_c else _Unlike)(None, self.tm))
        engines.idma.last_handle = engines.idma.last_before_task = 7
        engines.install()
        self.runtime.tile_manager = self.tm
        engine = self.runtime.engine
        engine.open(engines, self.ddr, 1)
        engine.give()
        begun: list[bool] = []
        self.runtime.on_begin = lambda: begun.append(True)
        op = OpInC(self)

        def run(*_: object) -> int:
            op.take(steps)
            return 0

        result, spent = ctypes.c_int32(), (ctypes.c_uint64 * (1 + len(NO_WORK)))()
        function = _OP(run)
        has_used = self.library.hbrt_dsp_call(
            function,
            None,
            None,
            ctypes.c_uint64(0),
            ctypes.c_uint64(0),
            ctypes.c_uint32(CLIENT),
            ctypes.byref(result),
            ctypes.byref(spent),
        )
        self.runtime.finish()
        engine.take()
        assert bool(has_used) == bool(begun)
        assert has_used or not (self.tm.live() or engines.idma.queue or runtime.context.mappings)
        idma = engines.idma
        engines.counter.add_work(spent[1:])
        engines.counter.work[MAPPED_BYTES] += runtime.context.mapped_bytes
        return After(
            op.answers,
            b"".join(bytes(view) for view in views),
            engines.counter.cycles + spent[0],
            engines.counter.work,
            idma.last_handle,
            [str(one) for one in idma.queue],
            [str(one) for one in self.tm.live()],
            [str(one) for one in runtime.context.mappings],
        )


class OpInC:
    """The steps of an op, as calls of the library."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.library, self.answers = machine, machine.library, list[object]()
        self.tiles, self.handles, self.maps = list[int](), list[int](), list[int]()
        ddr = machine.ddr
        heap = ddr.address + ddr.layout.heap
        self.places: dict[str, Callable[[int], int]] = {
            "tile": lambda n: self.tiles[n % len(self.tiles)],
            "block": lambda n: heap + n * 700,
            "other": lambda _: heap + PAGE_BYTES,
            "own": lambda n: ctypes.addressof(machine.own) + n * 97,
            "pool": lambda n: machine.tm.bank_places[n % 2][0] + 900,
            "nowhere": lambda n: n % 2 * 16,
        }

    def take(self, steps: list[Step]) -> None:
        for site, (name, *arguments) in zip(SITES, steps, strict=False):
            answer = getattr(self, name)(site, *arguments)
            self.answers += [name, answer, self.library.XT_RSR_CCOUNT(), self.library.xvGetErrorInfo(None)]

    def at(self, place: tuple[str, int, int]) -> ctypes.c_void_p:
        kind, which, offset = place
        address = self.places[kind](which)
        return ctypes.c_void_p(address and address + offset)

    def issued(self, handle: int) -> int:
        self.handles += [handle] * (handle > 0)
        return handle

    def map(self, site: bytes, offset: int, size: int) -> int:
        phy_addr = ctypes.c_uint64(self.machine.ddr.layout.phy_base + offset)
        self.maps.append(self.library.hbrt_dsp_mem_map(site, phy_addr, ctypes.c_int64(size)))
        return self.maps[-1]

    def unmap(self, site: bytes, which: int, is_32bit: bool) -> int:  # noqa: FBT001 - a step's value
        address = self.maps[which % len(self.maps)] if self.maps else 0
        mapped = ctypes.c_size_t(address & 0xFFFF_FFFF if is_32bit else address)
        return int(self.library.hbrt_dsp_mem_unmap(site, mapped))

    def allocate(self, site: bytes, size: int, color: int, align: int, tm_offset: int) -> int:
        tm = ctypes.c_void_p(self.machine.tm_address + tm_offset)
        tile: int = self.library.hbrt_xvAllocateBuffer(site, tm, size, color, align)
        self.tiles += [tile] * (tile != 0)
        return tile

    def free(self, site: bytes, which: int, offset: int) -> int:
        tile = ctypes.c_void_p(self.tiles[which % len(self.tiles)] + offset)
        return int(self.library.hbrt_xvFreeBuffer(site, ctypes.c_void_p(self.machine.tm_address), tile))

    def copy(self, site: bytes, dst: Any, src: Any, size: int) -> int:
        return self.issued(self.library.hbrt_idma_copy(site, self.at(dst), self.at(src), ctypes.c_size_t(size), 0))

    def copy_2d(self, site: bytes, dst: Any, src: Any, row_bytes: int, *shape: int) -> int:
        size = ctypes.c_size_t(row_bytes)
        return self.issued(self.library.hbrt_idma_copy_2d(site, self.at(dst), self.at(src), size, 0, *shape))

    def copy_3d(self, site: bytes, dst: Any, src: Any, row_bytes: int, *shape: int) -> int:
        ends = (ctypes.byref(self.at(end)) for end in (dst, src))
        return self.issued(self.library.hbrt_idma_copy_3d(site, *ends, 0, ctypes.c_size_t(row_bytes), *shape))

    def poll(self, site: bytes, which: int) -> int | None:
        handles = self.handles
        return self.library.hbrt_idma_desc_done(site, handles[which % len(handles)]) if handles else None

    def wait(self, site: bytes, which: int) -> int:
        polls = 0
        while self.poll(site, which) == 0:
            polls += 1
        return polls

    def status(self, site: bytes) -> int:
        return int(self.library.hbrt_idma_buffer_status(site))

    def wait_all(self, site: bytes) -> int:
        return int(self.library.hbrt_idma_hw_wait_all(site))

    def core(self, _site: bytes) -> int:
        return int(self.library.hb_dsp_core_id())


class _Unlike(Idma):
    """An engine that may do more than C does."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    before, context = (cycles.current(), descriptors.current()), runtime.context
    runtime.context = runtime.CoreContext()
    try:
        machine = Machine()
    except NotBuiltError:
        pytest.skip("the library of images is not built here")
    yield machine
    runtime.context = context
    cycles.install(before[0])
    descriptors.install(before[1])
    machine.runtime.tile_manager = None
    machine.runtime.on_begin = lambda: None
    machine.runtime.engine.close()
    machine.ddr.close()


RARELY = st.integers(0, 39).map(lambda n: n == 0)


def rarely(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return RARELY.flatmap(lambda is_other: other if is_other else usual)


KINDS = rarely(st.sampled_from(["tile", "tile", "block", "own"]), st.sampled_from(["other", "pool", "nowhere"]))
PLACES = st.tuples(KINDS, st.integers(0, 2), st.sampled_from([0, 0, 0, 1, 64, 200]))
ROW_BYTES = rarely(st.sampled_from([1, 16, 60, 64]), st.sampled_from([0, 500, 2000]))
PITCHES = rarely(st.sampled_from([64, 65, 100]), st.sampled_from([0, 7]))
GAPS = st.sampled_from([0, 64, 300])
INDICES = st.integers(0, 5)
ALIGNMENTS = rarely(st.sampled_from([64, 1, 128]), st.sampled_from([0, 3]))
COLORS = rarely(st.sampled_from([0, 1, 255]), st.just(2))
TILES = rarely(st.sampled_from([64, 100, 200, 300]), st.sampled_from([512, 1024, 0, -1]))
RANGES = rarely(
    st.tuples(st.sampled_from([0, 10]), st.sampled_from([1, 100])),
    st.tuples(st.sampled_from([2999, 4096, -1]), st.sampled_from([1, 3000, 0, -5])),
)
STEPS = st.one_of(
    st.tuples(st.just("allocate"), TILES, COLORS, ALIGNMENTS, rarely(st.just(0), st.just(8))),
    st.tuples(st.just("free"), INDICES, rarely(st.just(0), st.just(4))),
    st.tuples(st.just("copy"), PLACES, PLACES, ROW_BYTES),
    st.tuples(st.just("copy"), PLACES, PLACES, ROW_BYTES),
    st.tuples(st.just("copy_2d"), PLACES, PLACES, ROW_BYTES, st.integers(1, 4), PITCHES, PITCHES),
    st.tuples(
        st.just("copy_3d"), PLACES, PLACES, ROW_BYTES,
        rarely(st.integers(1, 2), st.just(0)), rarely(st.integers(1, 3), st.sampled_from([0, 65])),
        PITCHES, PITCHES, GAPS, GAPS,
    ),
    st.tuples(st.just("poll"), INDICES),
    st.tuples(st.just("wait"), INDICES),
    st.sampled_from([("status",), ("wait_all",), ("core",)]),
    RANGES.map(lambda one: ("map", *one)),
    st.tuples(st.just("unmap"), INDICES, st.booleans()),
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=25))
def test_c_and_python_serve_an_op_alike(machine: Machine, steps: list[Step]) -> None:
    steps = [("allocate", 300, 0, 64, 0), ("allocate", 300, 1, 64, 0), *steps]
    assert machine.run(steps, in_c=True) == machine.run(steps, in_c=False)


def test_plain_op_is_not_pythons_at_all(machine: Machine) -> None:
    tile, block, own = ("tile", 0, 0), ("block", 0, 0), ("own", 0, 0)
    steps: list[Step] = [
        ("map", 0, 3000), ("allocate", 900, 0, 64, 0), ("copy", tile, block, 700), ("wait", 0),
        ("copy_2d", ("tile", 0, 100), own, 30, 5, 50, 60), ("copy_3d", block, tile, 8, 4, 3, 16, 24, 64, 96),
        ("poll", 1), ("status",), ("wait_all",), ("status",), *[("copy", own, block, 64)] * 64, ("wait_all",),
        ("free", 0, 0), ("unmap", 0, True),
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine.runtime.engine, "take_over", lambda: pytest.fail("Python took over"))
        in_c = machine.run(steps, in_c=True)
    assert in_c == machine.run(steps, in_c=False)
