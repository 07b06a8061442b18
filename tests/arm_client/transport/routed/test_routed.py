"""Commands that another board runs: the same calls, and what is lost when the way to it goes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board, connect, private_board
from arm_client.errors import BoardLostError, CallerError, OpFailedError
from arm_client.session import session as sessions
from hbrt.board.paths import OF_A_TEST, private_directory
from hbrt.errors import BoardError, WrongUseError
from hbrt.mailbox.table import State
from hbrt.settings import BadSettingError
from tests.limits import PATIENCE_S
from tests.remote_relay import RemoteRelay
from tests.shared import build_c
from tests.waiting import until

# ADD adds a number of the board's own; BUMP adds it to the page that its input points at.
IMAGE = """
import time
import numpy as np
from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server import hb_dsp_mem_map, hb_dsp_mem_unmap

def add(input, output, tm):
    np.add(np.frombuffer(input, np.float32), {number}, out=np.frombuffer(output, np.float32))
    return 0

def bump(input, output, tm):
    page = hb_dsp_mem_map(int(np.frombuffer(input, np.uint64)[0]), 4096)
    page[100] += {number}
    if not input[8:]:
        hb_dsp_mem_unmap(page)
    return 0

def fail(input, output, tm):
    raise ValueError("no such tile")

def hold(input, output, tm):
    while not input[0]:
        time.sleep(0.001)
    return 0

def main():
    hb_dsp_env_init()
    if {number} == 2:
        HB_DSP_REGISTER_NN_ALL()
    for at, op in enumerate((add, bump, fail, hold)):
        hb_dsp_register_fn(0x1000 + at, op, 0)
        hb_dsp_register_fn(0x2000 + at, op, 0)
    hb_dsp_start()
"""
SAMPLES = Path(__file__).parents[4] / "samples" / "c"
ADD, BUMP, FAIL, HOLD = range(0x1000, 0x1004)
HERE = 0x1000  # add it to a command for the one that this board runs


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """That of this board, and that of the other one."""
    place = tmp_path_factory.mktemp("images")
    for number in (1, 2):
        (place / f"add{number}.py").write_text(IMAGE.format(number=number))
    return place / "add1.py", place / "add2.py"


@pytest.fixture(scope="module")
def beside(images: tuple[Path, Path]) -> Iterator[sessions.Session]:
    """An attachment to the board of the routes on its own machine."""
    session = sessions.start_board(private_directory(OF_A_TEST), image=str(images[1]), cores=1)
    yield session
    session.close()


@pytest.fixture(scope="module")
def other(beside: sessions.Session) -> Iterator[RemoteRelay]:
    """The board of the routes, by its relay."""
    relay = RemoteRelay(Path(beside.link.address))
    yield relay
    relay.close()


def route_to(relay: RemoteRelay) -> str:
    return f"{ADD:#x}-{HOLD:#x}={relay.address}"


@pytest.fixture(params=["direct", "relay", "inline"])
def board(
    images: tuple[Path, Path], other: RemoteRelay, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Board]:
    """A private board with routes, in each mode."""
    if request.param == "relay":
        monkeypatch.setenv("HB_DSP_RPC_MODE", "relay")
    with private_board(images[0], cores=1, route=route_to(other), inline=request.param == "inline") as made:
        yield made


def test_routed_commands_run_there_and_the_others_here(board: Board, other: RemoteRelay) -> None:
    x = board.from_array(np.arange(4, dtype=np.float32))
    assert board.call(ADD, x, board.empty_like(x)).tolist() == [2, 3, 4, 5]
    assert board.call(HERE + ADD, x, board.empty_like(x)).tolist() == [1, 2, 3, 4]
    # What a parameter block points at goes there and comes back, and the cores here see it.
    data = board.from_array(np.zeros(8192, np.uint8))
    at = board.from_array(np.array([data.phy_addr + 4096], np.uint64))
    for cmd in (BUMP, HERE + BUMP, BUMP):
        board.call(cmd, at)
    assert np.flatnonzero(data).tolist() == [4196]
    assert data[4196] == 5
    with pytest.raises(OpFailedError, match=rf"(?s)On the board of the route 0x1000-0x1003={other.address}: .*no such"):
        board.call(FAIL)
    ended = threading.Event()
    board.submit(ADD, x, board.empty_like(x)).add_done_callback(lambda _: ended.set())
    assert ended.wait(PATIENCE_S)
    flag = board.alloc(64)
    running, queued = board.submit(HOLD, flag), board.submit(ADD, x, board.empty_like(x))
    with pytest.raises(TimeoutError):
        running.result(0.01)
    shown = board.status()
    assert (shown["routed_tasks"], shown["tasks"], shown["waiting"]) == (2, {"ready": 0, "running": 0}, [])
    assert queued.cancel()
    flag.view()[0] = 1
    board.session.blocks.flush(flag.phy_addr, 64, hb.HB_SYS_MEM_CACHE_CLEAN)
    running.result(PATIENCE_S)
    with pytest.raises(CallerError, match=r"On the board of the route .* dspCoreId is 2"):
        board.call(ADD, x, x, core=2)


def test_blocks_of_two_programs_have_addresses_that_are_free_there(
    images: tuple[Path, Path], other: RemoteRelay
) -> None:
    x = np.arange(4, dtype=np.float32)
    with private_board(images[0], cores=1, route=route_to(other)) as one:
        first = one.from_array(x)
        with private_board(images[0], cores=1, route=route_to(other)) as two:
            second = two.from_array(x)
            assert second.phy_addr != first.phy_addr
            for board, given in ((one, first), (two, second)):
                assert board.call(ADD, given, board.empty_like(given)).tolist() == [2, 3, 4, 5]


def test_a_connection_that_goes_ends_its_tasks_and_the_next_one_has_all_memory(
    images: tuple[Path, Path], other: RemoteRelay, beside: sessions.Session
) -> None:
    with RemoteRelay(other.of) as relay, private_board(images[0], cores=1, route=route_to(relay)) as board:
        x = board.from_array(np.arange(4, dtype=np.float32))
        flag = board.alloc(64)
        assert board.call(ADD, x, board.empty_like(x)).tolist() == [2, 3, 4, 5]
        running = board.submit(HOLD, flag)
        address = relay.address
        there, _ = beside.blocks.register(flag.phy_addr, 64)
        until(lambda: beside.link.mailbox.slots_in(State.RUNNING))  # one that no core has would be dropped at once
        relay.kill()
        with pytest.raises(BoardLostError, match=f"On the board of the route 0x1000-0x1003={address}: "):
            running.result(PATIENCE_S)
        with pytest.raises(BoardLostError, match=r"Cannot reach a relay"):
            board.call(ADD, x, x)
        assert board.call(HERE + ADD, x, board.empty_like(x)).tolist() == [1, 2, 3, 4]
        relay.close()
        with RemoteRelay(other.of, listen=address):
            with pytest.raises(CallerError, match=r"It does not have the block .* not free"):
                board.call(ADD, x, board.empty_like(x))  # the core that runs the lost task keeps its program's memory
            there.view[0] = 1
            beside.blocks.unregister(flag.phy_addr)
            deadline = time.monotonic() + PATIENCE_S
            y = None
            while y is None:
                assert time.monotonic() < deadline
                with contextlib.suppress(CallerError):
                    y = board.call(ADD, x, board.empty_like(x)).tolist()
            assert y == [2, 3, 4, 5]


def test_compared_tasks_name_the_first_difference(
    images: tuple[Path, Path], other: RemoteRelay, caplog: pytest.LogCaptureFixture
) -> None:
    with private_board(images[0], cores=1, route=route_to(other), compare=True) as board:
        x = board.from_array(np.arange(4, dtype=np.float32))
        y = board.empty_like(x)
        for _ in range(2):
            board.call(ADD, x, y)
        assert y.tolist() == [1, 2, 3, 4]  # this board's: each task is compared from the same bytes
        data = board.from_array(np.zeros(8192, np.uint8))
        board.call(BUMP, board.from_array(np.array([data.phy_addr], np.uint64)))
        with pytest.raises(OpFailedError):
            board.call(FAIL)
        found = [one["text"] for one in board.status()["findings"] if one["kind"] == "route-difference"]
        assert len(found) == 2  # once per line, and none where both fail alike
        first = "element 0 (float32, byte 2) is 1.0 here and 2.0 there; 4 of 4 elements differ"
        assert (
            f"Task 1 of command 0x1000 gave a different result on the board of the route {route_to(other)}" in found[0]
        )
        assert f"in its output block ({y.phy_addr:#x}+0x10) {first}" in found[0]
        assert f"({data.phy_addr:#x}+0x2000) byte 100 is 0x01 here and 0x02 there" in found[1]
    assert caplog.text.count("route-difference") == 2


def test_what_the_other_board_finds_is_told_at_the_end(
    images: tuple[Path, Path], other: RemoteRelay, caplog: pytest.LogCaptureFixture
) -> None:
    with private_board(images[0], cores=1, route=route_to(other)) as board:
        data = board.from_array(np.zeros(4096, np.uint8))
        board.call(BUMP, board.from_array(np.array([data.phy_addr, 0], np.uint64)))
        # What was released while it ran is no leak there.
        tasks, flag = board.session.tasks, board.alloc(64)
        handle = tasks.submit(HOLD, 0, 0, 0, flag.phy_addr, 64, 0, 0)
        until(lambda: tasks.state(handle) is State.RUNNING)
        tasks.release(handle)
        flag.view()[0] = 1
        board.session.blocks.flush(flag.phy_addr, 64, hb.HB_SYS_MEM_CACHE_CLEAN)
        x = board.from_array(np.zeros(4, np.float32))
        board.call(ADD, x, x)
    assert [record.message.partition(":")[0] for record in caplog.records] == ["left-mapped"]
    assert f"mapped at {images[1]}" in caplog.text


def test_a_program_in_c(images: tuple[Path, Path], other: RemoteRelay, tmp_path: Path) -> None:
    binary = tmp_path / "softmax"
    build_c("-std=c11", SAMPLES / "softmax.c", "-o", binary)

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HBRT_IMAGE": str(images[0]), "HBRT_CORES": "1", **settings}
        return subprocess.run(
            [str(binary)], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )

    done = run(HBRT_ROUTE=f"0x400={other.address}", HBRT_CHECK="fail")
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "0.0320586", "")
    done = run(HBRT_ROUTE=f"0x400={other.address},compare", HBRT_CHECK="fail")
    assert done.returncode != 0
    assert (
        "softmax.c:34: Task 1 of command 0x400 gave a different result on the board of the route 0x400=" in done.stderr
    )


@pytest.fixture
def _no_board_yet() -> Iterator[None]:
    """What earlier tests of this process left attached is not this test's board."""
    before = sessions.set_default(None)
    yield
    sessions.set_default(before)


@pytest.mark.usefixtures("_no_board_yet")
def test_what_cannot_be_is_refused_with_the_route(other: RemoteRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        BoardError, match=r"The route 0x400=tcp://127.0.0.1:1 .HBRT_ROUTE. cannot be used: Cannot reach a relay"
    ):
        connect(route="0x400=tcp://127.0.0.1:1")
    with pytest.raises(BadSettingError, match=r"HBRT_ROUTE has '0x400=here', whose board is not an address"):
        connect(route="0x400=here")
    with pytest.raises(WrongUseError, match=f"this program's board is {other.address}"):
        connect(other.address, route="0x400=tcp://127.0.0.1:1")
    monkeypatch.setenv("HBRT_RECORD", "calls")
    with pytest.raises(WrongUseError, match=r"HBRT_RECORD and HBRT_ROUTE cannot be combined"):
        connect(route=route_to(other))
