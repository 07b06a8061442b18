"""What strict mode tells when a task is submitted: memory that was not cleaned, memory that two tasks use."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import arm_client as hb
from arm_client import cv, nn
from arm_client.client import Board
from arm_client.strict.rules import (
    MAX_MARKS,
    MAX_PARAMETER_BYTES,
    DataRace,
    Span,
    TaskFootprint,
    are_never_at_once,
    data_race,
    may_share_out,
    reach,
    words,
)
from hbrt.protocol.control import POINTS, READS, WRITES
from tests.arm_client.conftest import Chip, Hold
from tests.each import each
from tests.threads import in_threads

if TYPE_CHECKING:
    from tests.arm_client.conftest import Peer

CLEAN, INVALIDATE = hb.HB_SYS_MEM_CACHE_CLEAN, hb.HB_SYS_MEM_CACHE_INVALIDATE
BOTH, FIRST, SECOND = 3, 1, 2  # core masks
A, B, OUT, PARAMS, OTHER = 0x10000, 0x20000, 0x30000, 0x40000, 0x50000

pytestmark = pytest.mark.dsp_board(image="../images/ops.py")


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_CACHE", "strict")


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "0")  # an op that numba compiles first may take minutes on a busy machine


def span(start: int, size: int = 0x100) -> Span:
    return Span(start, start + size)


def uses(
    *pointers: int,
    numbers: bytes = bytes(64),
    params: int = PARAMS,
    out: Span | None = None,
    cores: int = BOTH,
    priority: int = 0,
    custom_id: int = 0,
    cmd: int = 0x1000,
) -> TaskFootprint:
    at = tuple((8 * index, address) for index, address in enumerate(pointers))
    return TaskFootprint(cmd, priority, custom_id, cores, span(params, 64), out or span(OUT), at, numbers)


class TestRules:
    def test_words_of_a_structure(self) -> None:
        raw = struct.pack("<QIIQB", 0x8222_0000, 1, 0, 0, 5)
        assert words(memoryview(raw)) == [(0, 0x8222_0000), (8, 1)]
        assert words(memoryview(b"1234567")) == []
        large = bytes(MAX_PARAMETER_BYTES - 8) + bytes([7] * 16)
        assert [at for at, _ in words(memoryview(large))] == [MAX_PARAMETER_BYTES - 8]

    @each(
        "new, old, expected",
        [
            (uses(cores=FIRST), uses(cores=FIRST), True),
            (uses(cores=FIRST), uses(cores=SECOND), False),
            (uses(cores=FIRST), uses(cores=BOTH), False),
            (uses(cores=BOTH), uses(cores=BOTH), False),
            (uses(cores=FIRST, priority=200, custom_id=-1), uses(cores=FIRST), True),
            (uses(cores=FIRST, priority=255), uses(cores=FIRST), False),
            (uses(cores=FIRST, priority=255), uses(cores=FIRST, priority=255), True),
            (uses(cores=FIRST), uses(cores=FIRST, priority=255), True),
        ],
    )
    def test_tasks_of_one_core_are_never_at_once_but_for_one_that_interrupts(
        self, new: TaskFootprint, old: TaskFootprint, *, expected: bool
    ) -> None:
        assert are_never_at_once(new, old) is expected

    @pytest.mark.parametrize(
        ("new", "old", "expected"),
        [
            pytest.param(uses(A, params=OTHER), uses(B), False, id="they differ in where they read"),
            pytest.param(uses(A, OUT, params=OTHER), uses(B, OUT), False, id="so with the output's address in both"),
            pytest.param(uses(A, numbers=b"1", params=OTHER), uses(A, numbers=b"2"), True, id="numbers of rows differ"),
            pytest.param(uses(A, numbers=b"1", params=OTHER), uses(B, numbers=b"2"), True, id="an index in a batch"),
            pytest.param(uses(A, OUT + 8, params=OTHER), uses(A, OUT), True, id="addresses in the output differ"),
            pytest.param(uses(A, OUT + 8, params=OTHER), uses(A), True, id="one has none, and means the start"),
            pytest.param(uses(A, OUT, params=OTHER), uses(B), False, id="which may be the same place"),
            pytest.param(uses(numbers=b"1", params=OTHER), uses(numbers=b"2"), False, id="data, not structures"),
            pytest.param(uses(numbers=b"1", params=OTHER), uses(numbers=b"1"), True, id="copies of one task"),
            pytest.param(uses(A), uses(A), False, id="one input block, used twice"),
            pytest.param(uses(A, cores=FIRST), uses(A, cores=SECOND), True, id="an op that goes by its core"),
            pytest.param(uses(A, cmd=0x1001, params=OTHER), uses(A), False, id="two ops"),
            pytest.param(uses(A, OUT, cmd=0x1001, params=OTHER), uses(A, OUT + 8), True, id="two ops, two places"),
            pytest.param(
                uses(OTHER + 8, params=OTHER), uses(PARAMS + 8), True, id="an address in the structure itself"
            ),
        ],
    )
    def test_who_may_share_an_output_out(self, new: TaskFootprint, old: TaskFootprint, *, expected: bool) -> None:
        assert may_share_out(new, old) is expected

    @pytest.mark.parametrize(
        ("new", "old", "expected"),
        [
            pytest.param(
                uses(A, params=OTHER, out=span(OUT + 0x80)),
                uses(B),
                DataRace(Span(OUT + 0x80, OUT + 0x100), WRITES, WRITES),
                id="both write a part",
            ),
            pytest.param(uses(A, params=OTHER, out=span(OUT + 0x100)), uses(B), None, id="beside one another"),
            pytest.param(uses(A, params=OTHER, out=span(B)), uses(A), None, id="both read"),
            pytest.param(uses(A, out=span(B)), uses(A), None, id="one structure, two outputs"),
            pytest.param(uses(params=OTHER, out=span(PARAMS)), uses(), DataRace(span(PARAMS, 64), WRITES, READS)),
            pytest.param(uses(params=OUT, out=span(B)), uses(), DataRace(span(OUT, 64), READS, WRITES)),
            pytest.param(uses(params=OTHER, out=span(A)), uses(A + 8), DataRace(span(A + 8, 1), WRITES, POINTS)),
            pytest.param(uses(OUT + 8, params=OTHER, out=span(B)), uses(), DataRace(span(OUT + 8, 1), POINTS, WRITES)),
            pytest.param(
                uses(OUT + 8, params=OTHER, out=span(B)),
                uses(OUT),
                None,
                id="the other is told to write elsewhere there",
            ),
            pytest.param(
                uses(A, OUT, params=OTHER, out=span(A)),
                uses(A, OUT),
                None,
                id="a table of all buffers in both",
            ),
            pytest.param(uses(A, params=OTHER, out=span(0, 0)), uses(A, out=span(0, 0)), None, id="no output"),
            pytest.param(uses(cmd=0), uses(), None, id="PING"),
            pytest.param(uses(A, params=OTHER, cores=FIRST), uses(B, cores=FIRST), None, id="one core"),
        ],
    )
    def test_data_races(self, new: TaskFootprint, old: TaskFootprint, expected: DataRace | None) -> None:
        assert data_race(new, old) == expected

    def test_memory_reaches_to_the_next_place_that_was_named(self) -> None:
        assert reach(0, 100, []) == 100
        assert reach(0, 100, [0, 40, 100]) == 40
        assert reach(40, 100, [0, 40, 60, 100]) == 60
        assert reach(60, 80, [0, 40, 60, 100]) == 80


def found(chip: Chip, kind: str) -> list[str]:
    return [one["text"] for one in chip.board.status()["findings"] if one["kind"] == kind]


def all_found(chip: Chip) -> list[str]:
    return found(chip, "missing-clean") + found(chip, "shared-block")


def fetch(chip: Chip, *parts: tuple[int, int], cached: bool = False) -> hb.hbSysMem:
    """Structures of FETCH, cleaned: address and bytes."""
    raw = b"".join(struct.pack("<QQ", *part) for part in parts)
    mem = chip.mem(len(raw), raw, cached=cached)
    assert hb.hbSysFlushMem(mem, CLEAN) == 0
    return mem


def at(mem: hb.hbSysMem, start: int, size: int) -> hb.hbSysMem:
    return hb.hbSysMem(phyAddr=mem.phyAddr + start, memSize=size)


@pytest.mark.usefixtures("strict")
class TestMemoryThatIsPointedTo:
    @pytest.mark.parametrize("cached", [False, True], ids=["from a block that is not cached", "from a cached one"])
    def test_is_told_once_a_block(self, chip: Chip, caplog: pytest.LogCaptureFixture, *, cached: bool) -> None:
        source, result = chip.mem(64, cached=True), chip.mem(64)
        source.view()[30:34] = b"late"
        params = fetch(chip, (source.phyAddr + 16, 48), cached=cached)
        for _ in range(3):
            assert chip.outcome(chip.FETCH, params, result) == (0, "")
        assert bytes(result.view()) == bytes(64)
        (text,) = found(chip, "missing-clean")
        (said,) = caplog.messages
        assert said == f"missing-clean: {text.partition(': ')[2]}"
        assert "conftest.py:" in said
        assert (
            f": The memory at {source.phyAddr + 16:#x}, whose address is at offset 0 of the input block "
            f"{params.phyAddr:#x}, holds 4 bytes that the CPU changed but did not clean:" in said
        )

    def test_is_looked_at_in_each_submission(self, chip: Chip) -> None:
        source, result = chip.mem(64, b"first", cached=True), chip.mem(64)
        params = fetch(chip, (7, 0), (source.phyAddr, 64))
        assert hb.hbSysFlushMem(source, CLEAN) == 0
        assert chip.outcome(chip.ECHO, params, result) == (0, "")
        assert found(chip, "missing-clean") == []
        source.view()[:6] = b"second"
        assert chip.outcome(chip.ECHO, params, result) == (0, "")
        (text,) = found(chip, "missing-clean")
        assert f"whose address is at offset 16 of the input block {params.phyAddr:#x}, holds 6 bytes" in text

    def test_registered_memory_is_looked_at_too(
        self, chip: Chip, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]
    ) -> None:
        mem = registered(peer.alloc(64), 64)
        mem.view()[:4] = b"late"
        assert chip.outcome(chip.FETCH, fetch(chip, (mem.phyAddr, 64)), chip.mem(64)) == (0, "")
        assert len(found(chip, "missing-clean")) == 1

    def test_what_was_cleaned_or_not_changed_is_in_order(self, chip: Chip) -> None:
        source, result = chip.mem(64, b"content", cached=True), chip.mem(64, cached=True)
        assert hb.hbSysFlushMem(source, CLEAN) == 0
        params = fetch(chip, (source.phyAddr, 64), cached=True)
        for _ in range(2):
            assert chip.outcome(chip.FETCH, params, result) == (0, "")
            assert hb.hbSysFlushMem(result, INVALIDATE) == 0
        assert bytes(result.view()[:7]) == b"content"
        assert all_found(chip) == []

    def test_the_next_frame_in_the_same_block_may_be_under_way(self, chip: Chip) -> None:
        ring, result = chip.mem(3 * 4096, cached=True), chip.mem(64)
        for frame in range(3):  # all are written before the first continues its way
            ring.view()[frame * 4096 : frame * 4096 + 5] = b"frame"
        for frame in range(3):
            assert hb.hbSysFlushMem(at(ring, frame * 4096, 4096), CLEAN) == 0
            params = fetch(chip, (ring.phyAddr + frame * 4096, 64))
            assert chip.outcome(chip.FETCH, params, result) == (0, "")
        ring.view()[4096:4101] = b"again"
        assert chip.outcome(chip.FETCH, fetch(chip, (ring.phyAddr, 64)), result) == (0, "")
        assert all_found(chip) == []
        assert chip.outcome(chip.FETCH, fetch(chip, (ring.phyAddr + 4096, 64)), result) == (0, "")
        assert len(found(chip, "missing-clean")) == 1

    def test_so_when_the_program_flushes_the_block_as_a_whole(self, chip: Chip) -> None:
        ring, result = chip.mem(2 * 4096, b"frame", cached=True), chip.mem(64)
        assert hb.hbSysFlushMem(ring, CLEAN) == 0
        ring.view()[4096:4101] = b"frame"  # as another thread might, before the submission
        assert chip.outcome(chip.FETCH, fetch(chip, (ring.phyAddr, 64)), result) == (0, "")
        assert all_found(chip) == []

    def test_a_block_that_is_addressed_in_very_many_places_is_left_alone(self, chip: Chip) -> None:
        source, result = chip.mem(2 * MAX_MARKS + 64, cached=True), chip.mem(64)
        for start in range(0, 2 * MAX_MARKS, 2):
            assert hb.hbSysFlushMem(at(source, start, 1), CLEAN) == 0
        source.view()[:4] = b"late"
        assert chip.outcome(chip.FETCH, fetch(chip, (source.phyAddr, 64)), result) == (0, "")
        assert all_found(chip) == []

    def test_a_large_block_is_data_in_which_only_starts_of_blocks_are_addresses(self, chip: Chip) -> None:
        source, result = chip.mem(64, b"late", cached=True), chip.mem(8192)
        data = chip.mem(8192, struct.pack("<QQ", source.phyAddr + 1, source.phyAddr + 8))
        assert chip.outcome(chip.ECHO, data, result) == (0, "")
        assert all_found(chip) == []
        data.view()[:8] = struct.pack("<Q", source.phyAddr)
        assert chip.outcome(chip.ECHO, data, result) == (0, "")
        assert len(found(chip, "missing-clean")) == 1

    def test_addresses_of_the_cpu_are_none(self, chip: Chip) -> None:
        source = chip.mem(64, b"late", cached=True)
        params = fetch(chip, (0x8000_0000, 0), (source.virAddr or 0, 0), (0xFFFF_FFFF_FFFF_FFFF, 0))
        assert chip.outcome(chip.ECHO, params, chip.mem(64)) == (0, "")
        assert all_found(chip) == []


@pytest.mark.usefixtures("strict")
class TestOutputThatWasNotCleaned:
    def test_is_told_once_a_block(self, chip: Chip, caplog: pytest.LogCaptureFixture) -> None:
        source, result = chip.mem(8, b"12345678"), chip.mem(8, b"old", cached=True)
        for _ in range(2):
            assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        (text,) = found(chip, "missing-clean")
        (said,) = caplog.messages
        assert said == f"missing-clean: {text.partition(': ')[2]}"
        assert f": The output block at {result.phyAddr:#x}+0x8 holds 3 bytes that the CPU changed but did not" in said

    @pytest.mark.parametrize("flag", [CLEAN, INVALIDATE])
    def test_either_flush_puts_it_in_order(self, chip: Chip, flag: int) -> None:
        source, result = chip.mem(8, b"12345678"), chip.mem(8, b"old", cached=True)
        assert hb.hbSysFlushMem(result, flag) == 0
        assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        assert hb.hbSysFlushMem(result, INVALIDATE) == 0
        assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        assert all_found(chip) == []

    def test_only_what_the_structure_points_to_when_it_points_there(self, chip: Chip) -> None:
        image = chip.mem(2 * 4096, cached=True)
        image.view()[4096:4100] = b"next"  # the lower half is another thread's
        params = fetch(chip, (image.phyAddr, 64), (image.phyAddr + 4096, 0))
        part = at(params, 0, 16)
        assert hb.hbSysFlushMem(at(image, 0, 4096), CLEAN) == 0
        assert chip.outcome(chip.ECHO, part, image) == (0, "")
        assert all_found(chip) == []

    def test_ping_writes_nothing(self, chip: Chip) -> None:
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING, None, chip.mem(8, b"mine", cached=True)) == (0, "")
        assert all_found(chip) == []


class TestMemoryOfTwoUnfinishedTasks:
    @pytest.fixture(autouse=True)
    def held(self, strict: None, chip: Chip) -> Iterator[Hold]:
        """A task that holds core 0; core 1 is free."""
        held = chip.hold(FIRST)
        yield held
        assert held.finish() == 0

    def other(self, chip: Chip, cmd: int, into: hb.hbSysMem | None, out: hb.hbSysMem | None) -> list[str]:
        """Findings after another task, on core 1, has come and gone."""
        task = chip.rpc(cmd, into, out, SECOND)
        assert hb.hbDSPWaitTaskDone(task, 0) == 0, hb.last_error()
        assert hb.hbDSPReleaseTask(task) == 0
        return found(chip, "shared-block")

    def test_one_output_is_told_once_a_block(self, chip: Chip, held: Hold, caplog: pytest.LogCaptureFixture) -> None:
        place = held.output.phyAddr
        self.other(chip, chip.ECHO, chip.mem(8), at(held.output, 8, 8))
        (text,) = self.other(chip, chip.ECHO, chip.mem(8), at(held.output, 8, 8))
        assert (
            f" writes {place + 8:#x}+0x8, which an earlier one of command 0x1001 that has not finished writes" in text
        )
        (said,) = caplog.messages
        assert "conftest.py:" in said
        assert (
            f": This task of command 0x1000 writes {place + 8:#x}+0x8, which an earlier one of command 0x1001 that "
            "has not finished writes: the result depends on their timing." in said
        )

    def test_reading_what_the_other_writes(self, chip: Chip, held: Hold) -> None:
        (text,) = self.other(chip, chip.ECHO, held.output, chip.mem())
        assert f" reads {held.output.phyAddr:#x}+0x40, which an earlier one" in text

    def test_writing_what_the_other_points_to(self, chip: Chip, held: Hold) -> None:
        target = chip.mem()
        params = chip.mem(16, bytes(8) + struct.pack("<Q", target.phyAddr))
        task = chip.rpc(chip.HOLD, params, chip.mem(), SECOND)
        late = chip.rpc(chip.ECHO, chip.mem(8), target, FIRST)
        params.view()[1] = 1
        assert hb.hbSysFlushMem(params, CLEAN) == 0
        held.let_go()
        for one in (task, late):
            assert hb.hbDSPWaitTaskDone(one, 0) == 0
            assert hb.hbDSPReleaseTask(one) == 0
        (text,) = found(chip, "shared-block")
        assert "that has not finished points to" in text

    @pytest.mark.parametrize(("number", "count"), [(0, 1), (1, 0)], ids=["another source", "another row of one output"])
    def test_what_tells_two_structures_apart_is_numbers_and_not_addresses(
        self, chip: Chip, held: Hold, number: int, count: int
    ) -> None:
        out, sources = chip.mem(), [chip.mem(), chip.mem()]
        images = [struct.pack("<QQQ", 0, mem.phyAddr, mem.virAddr or 0) for mem in sources]  # an image has both
        first = chip.mem(32, images[0] + bytes(8))
        second = chip.mem(32, images[1] + struct.pack("<Q", number))
        tasks = [chip.rpc(chip.HOLD, first, out, SECOND), chip.rpc(chip.HOLD, second, out)]
        for mem in (first, second):
            mem.view()[1] = 1
            assert hb.hbSysFlushMem(mem, CLEAN) == 0
        for task in tasks:
            assert hb.hbDSPWaitTaskDone(task, 0) == 0
            assert hb.hbDSPReleaseTask(task) == 0
        assert len(found(chip, "shared-block")) == count

    def test_reading_what_the_other_reads_is_in_order(self, chip: Chip, held: Hold) -> None:
        assert self.other(chip, chip.ECHO, held.mem, chip.mem()) == []
        assert self.other(chip, chip.FETCH, fetch(chip, (held.mem.phyAddr, 8)), chip.mem()) == []

    def test_an_ended_task_uses_nothing_whether_or_not_it_was_waited_for(self, chip: Chip) -> None:
        out = chip.mem()
        task = chip.rpc(chip.ECHO, chip.mem(8, b"1"), out, SECOND)
        chip.until(lambda: chip.board.session.tasks.has_ended(task.value or 0), "the end of a task")
        assert self.other(chip, chip.ECHO, chip.mem(8, b"2"), out) == []
        assert hb.hbDSPReleaseTask(task) == 0

    def test_a_task_that_was_let_go_uses_nothing(self, chip: Chip) -> None:
        out, mem = chip.mem(), chip.mem(64, b"\0\1")
        assert hb.hbDSPReleaseTask(chip.rpc(chip.HOLD, mem, out, FIRST)) == 0  # still queued: it is cancelled
        assert self.other(chip, chip.ECHO, chip.mem(8), out) == []

    def test_tasks_of_one_core_follow_one_another(self, chip: Chip, held: Hold) -> None:
        out = chip.mem()
        chain = [(chip.mem(8, b"1"), out), (out, chip.mem()), (chip.mem(8, b"3"), out)]
        tasks = [chip.rpc(chip.ECHO, *blocks, FIRST) for blocks in chain]
        held.let_go()
        for task in tasks:
            assert hb.hbDSPWaitTaskDone(task, 0) == 0
            assert hb.hbDSPReleaseTask(task) == 0
        assert all_found(chip) == []

    def test_a_refused_task_uses_nothing(self, chip: Chip) -> None:
        out = chip.mem()
        for ctrl in (chip.ctrl(chip.ECHO, priority=256), chip.ctrl(chip.ECHO, core=64)):
            assert hb.hbDSPRpc(hb.hbDSPTask_t(), chip.mem(8, b"1"), out, ctrl) != 0
        foreign = hb.hbSysMem(phyAddr=16, memSize=8)
        assert hb.hbDSPRpc(hb.hbDSPTask_t(), foreign, out, chip.ctrl(chip.ECHO)) == hb.HB_DSP_INVALID_ADDRESS
        with pytest.raises(TypeError):
            chip.board.submit("1000", None, None)  # type: ignore[arg-type]
        assert self.other(chip, chip.ECHO, chip.mem(8, b"2"), out) == []

    @pytest.mark.parametrize("step", ["_check", "publish"])
    def test_an_interrupted_submission_leaves_nothing(
        self, chip: Chip, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        out, session = chip.mem(), chip.board.session
        checker = session.checker
        assert checker is not None
        look = checker._check

        def interrupted(*given: Any) -> None:
            if step == "_check":
                look(*given)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(checker if step == "_check" else session.tasks.carrier, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                chip.rpc(chip.ECHO, chip.mem(8, b"1"), out, SECOND)
        assert self.other(chip, chip.ECHO, chip.mem(8, b"2"), out) == []


def test_coherent_mode_does_not_look(chip: Chip) -> None:
    assert "submit" not in vars(chip.board.session.tasks)
    held = chip.hold(FIRST)
    source = chip.mem(64, b"late", cached=True)
    assert chip.outcome(chip.FETCH, fetch(chip, (source.phyAddr, 64)), held.output) == (0, "")
    assert held.finish() == 0
    assert all_found(chip) == []


@pytest.mark.dsp_board
class TestProgramsThatAreRight:
    """Nothing is told of a program with all its flushes: warnings would be seen, findings are."""

    @pytest.fixture(autouse=True)
    def _is_silent(
        self, strict: None, no_limit: None, dsp_board: Board, caplog: pytest.LogCaptureFixture
    ) -> Iterator[None]:
        yield
        assert caplog.messages == []
        assert dsp_board.status()["findings"] == []

    def test_images_in_cached_memory(self, dsp_board: Board) -> None:
        rng = np.random.default_rng(1)
        out = dsp_board.empty((60, 80), np.uint8, cached=True)
        assert out.board_buffer is not None
        for number in range(4):
            pixels = rng.integers(0, 256, (60, 80), np.uint8)
            image = dsp_board.from_array(pixels, cached=True)
            assert cv.flip(dsp_board, image, "horizontal", out=out) is out
            out.board_buffer.invalidate()
            np.testing.assert_array_equal(out, pixels[:, ::-1], err_msg=str(number))

    def test_halves_of_one_image_by_two_threads(self, dsp_board: Board) -> None:
        pixels = np.random.default_rng(2).integers(0, 256, (400, 640), np.uint8)
        image, out = dsp_board.from_array(pixels, cached=True), dsp_board.empty((400, 640), np.uint8)

        def work(half: slice) -> None:
            for _ in range(10):
                cv.flip(dsp_board, image[half], "horizontal", out=out[half])

        in_threads(work, (slice(0, 200), slice(200, 400)))
        np.testing.assert_array_equal(out, pixels[:, ::-1])

    @pytest.mark.parametrize("plan", [1, 2])
    def test_point_clouds_whose_steps_share_their_output_out(self, dsp_board: Board, plan: Any) -> None:
        pipeline = nn.PillarPipeline(dsp_board, nn.CENTERPOINT)
        points = nn.lidar_sweep(3, max_points=8000)
        for _ in range(3):
            assert pipeline.process(points, plan=plan).voxel_count > 1024

    def test_the_same_call_again_and_again(self, dsp_board: Board) -> None:
        values, out = dsp_board.from_array(np.ones(64, np.float32), cached=True), dsp_board.empty(64, cached=True)
        for _ in range(3):
            nn.softmax(dsp_board, values, out=out)
