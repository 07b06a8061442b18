"""``hb_dsp_*`` in a process that is not a core: what works in an op's unit test, and what needs a board."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dsp_server import runtime
from dsp_server.runtime import (
    HB_DSP_LOG_DEBUG,
    HB_DSP_LOG_ERROR,
    HB_DSP_LOG_FATAL,
    HB_DSP_LOG_INFO,
    HB_DSP_LOG_NONE,
    HB_DSP_LOG_WARNING,
    MAP_FAILED,
    NoBoardError,
    hb_dsp_core_id,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_log,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_set_log_level,
    hb_dsp_start,
)
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.status import Status

CLIENT, OTHER = 3, 4


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> runtime.CoreContext:
    """A core context of the test's own."""
    fresh = runtime.CoreContext()
    monkeypatch.setattr(runtime, "context", fresh)
    return fresh


@pytest.fixture
def log(capfd: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """What is written to the board's log, which is descriptor 2."""
    return capfd


@pytest.fixture
def ddr(context: runtime.CoreContext) -> Iterator[Ddr]:
    """A DDR with one block of 100 bytes of CLIENT, which this core serves."""
    ddr = Ddr.create(8 * PAGE_BYTES, 1)
    DdrTables(ddr).add(1, ddr.layout.phy_base, 100, PAGE_BYTES, CLIENT)
    context.ddr, context.client_id = ddr, CLIENT
    yield ddr
    ddr.close()


def op(input: memoryview, output: memoryview, tm: object) -> int:
    return 0


def test_calls_that_come_before_env_init_say_so() -> None:
    with pytest.raises(NoBoardError, match=r"hb_dsp_register_fn\(0x1000, ...\) was called before hb_dsp_env_init\(\)"):
        hb_dsp_register_fn(0x1000, op, 0)


def test_start_needs_a_core_and_env_init(context: runtime.CoreContext) -> None:
    with pytest.raises(
        NoBoardError, match=r"hb_dsp_start\(\) runs only on a core. Start a board with this image: hbrt"
    ):
        hb_dsp_start()
    served: list[bool] = []
    context.serve = lambda: served.append(True)  # type: ignore[assignment]
    with pytest.raises(NoBoardError, match=r"hb_dsp_start\(\) was called before hb_dsp_env_init\(\)"):
        hb_dsp_start()
    assert hb_dsp_env_init() == 0
    hb_dsp_start()
    assert served == [True]


def test_template_registers_in_a_process_without_a_board(context: runtime.CoreContext) -> None:
    assert hb_dsp_env_init() == 0
    assert hb_dsp_init_global_tm() == 0
    assert runtime.HB_DSP_REGISTER_NN_ALL() == 0
    assert runtime.HB_DSP_REGISTER_CV_ALL() == 0
    assert hb_dsp_register_fn(0x1000, op, 0) == 0
    assert {0x400, 0x401, 0x402, 0x1000} <= {row.cmd for row in context.registry.listing()}
    assert context.tile_manager is not None
    assert hb_dsp_core_id() == -1


def test_mapping_is_the_ddrs_bytes(ddr: Ddr) -> None:
    base = ddr.layout.phy_base
    view = hb_dsp_mem_map(base + 10, 20)
    assert isinstance(view, memoryview)
    assert (len(view), view.format, view.readonly) == (20, "B", False)
    view[0] = 7
    assert ddr.view(base + 10, 1)[0] == 7
    assert len(memoryview(hb_dsp_mem_map(base + 100 - 1, 1))) == 1  # type: ignore[arg-type]
    assert len(memoryview(hb_dsp_mem_map(base, 0))) == 0  # type: ignore[arg-type]
    assert hb_dsp_mem_unmap(view) == 0


FAILURES = (
    (0, 101, "runs 1 byte past the end of its block"),
    (99, 2, "runs 1 byte past the end of its block"),
    (100, 1, "is not in a live block"),
    (-1, 1, "is outside this board's DDR"),
    (1 << 40, 1, "That looks like a virtual address: pass mem.phyAddr, not mem.virAddr."),
    (0, -1, "has a negative size"),
    (0.5, 1, "hb_dsp_mem_map: the address and the size must be integers, not"),
)


@pytest.mark.parametrize(("offset", "size_bytes", "text"), FAILURES)
def test_range_that_cannot_be_mapped_gives_map_failed_and_the_reason(
    ddr: Ddr,
    context: runtime.CoreContext,
    log: pytest.CaptureFixture[str],
    offset: int,
    size_bytes: int,
    text: str,
) -> None:
    assert hb_dsp_mem_map(ddr.layout.phy_base + offset, size_bytes) is MAP_FAILED
    assert context.map_failure.startswith("hb_dsp_mem_map: ")
    assert text in context.map_failure
    assert context.map_failure in log.readouterr().err


def test_another_clients_block_is_mapped_only_when_it_is_registered(ddr: Ddr, context: runtime.CoreContext) -> None:
    context.client_id = OTHER
    base = ddr.layout.phy_base
    assert hb_dsp_mem_map(base, 10) is MAP_FAILED
    assert context.map_failure == (
        f"hb_dsp_mem_map: The physical range {base:#x}+0xa belongs to another process, client {CLIENT}, not to "
        f"client {OTHER}; register it first (hbSysRegisterMem)."
    )
    DdrTables(ddr).set_owner(1, CLIENT, (OTHER,))
    assert hb_dsp_mem_map(base, 10) is not MAP_FAILED


def test_map_failed_is_false_and_like_nothing_else() -> None:
    assert not MAP_FAILED
    assert repr(MAP_FAILED) == "MAP_FAILED"
    empty: object = memoryview(b"")
    assert empty != MAP_FAILED
    for nothing in (MAP_FAILED, None, 0):
        assert hb_dsp_mem_unmap(nothing) == Status.HB_DSP_INVALID_ARGUMENT


def test_mapping_needs_a_board() -> None:
    with pytest.raises(NoBoardError, match=r"hb_dsp_mem_map\(\) needs a board: run the op on one"):
        hb_dsp_mem_map(0x8000_0000, 1)


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (HB_DSP_LOG_NONE, ""),
        (HB_DSP_LOG_DEBUG, "diwef"),
        (HB_DSP_LOG_INFO, "iwef"),
        (HB_DSP_LOG_WARNING, "wef"),
        (HB_DSP_LOG_ERROR, "ef"),
        (HB_DSP_LOG_FATAL, "f"),
    ],
)
def test_log_shows_a_level_and_above(log: pytest.CaptureFixture[str], level: int, shown: str) -> None:
    assert hb_dsp_set_log_level(level) == 0
    runtime.DSP_DBG("d")
    runtime.DSP_INFO("i")
    runtime.DSP_WARN("w")
    runtime.DSP_ERR("e")
    hb_dsp_log(HB_DSP_LOG_FATAL, "f")
    assert "".join(line.split()[-1] for line in log.readouterr().err.splitlines()) == shown


def test_log_line_says_when_who_and_how_bad(context: runtime.CoreContext, log: pytest.CaptureFixture[str]) -> None:
    runtime.DSP_ERR("%d of %s", 3, "four")
    context.index = 1
    runtime.DSP_WARN("100%")
    first, second = log.readouterr().err.splitlines()
    assert first.split(" ", 1)[1] == "dsp ERROR 3 of four"
    assert second.split(" ", 1)[1] == "core1 WARNING 100%"


def test_a_record_whose_arguments_do_not_fit_is_written_all_the_same(log: pytest.CaptureFixture[str]) -> None:
    runtime.DSP_ERR("%d tiles of %d", "two")
    runtime.DSP_ERR("50 %", 1)
    first, second = log.readouterr().err.splitlines()
    assert "ERROR %d tiles of %d ('two',) (arguments do not match the format: " in first
    assert "ERROR 50 % (1,) (arguments do not match the format: " in second


def test_levels_that_are_none_are_refused(context: runtime.CoreContext) -> None:
    for level in (-1, 6):
        assert hb_dsp_set_log_level(level) == Status.HB_DSP_INVALID_ARGUMENT
    assert context.log_level == HB_DSP_LOG_WARNING


def test_log_that_cannot_be_written_ends_nothing() -> None:
    kept = os.dup(2)
    os.close(2)
    try:
        runtime.DSP_ERR("nobody reads this")
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_clock_and_timer_of_the_template() -> None:
    assert runtime.xos_get_clock_freq() == 648_000_000
    runtime.xos_set_clock_freq(600_000_000)
    assert runtime.xos_get_clock_freq() == 600_000_000
    assert runtime.xos_start_system_timer(0, 1000) == 0
    assert runtime.xos_start_system_timer(-1, 1000) == Status.HB_DSP_INVALID_ARGUMENT
