"""Leases of a farm: a board for the life of a program, then a fresh one for the next. Real processes on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board, connect
from arm_client.errors import HbrtError
from arm_client.transport import leased_link, remote_link
from hbrt.board.paths import board_ref
from hbrt.errors import BoardError, RefusedError
from hbrt.mailbox.table import ANSWER, Answer, State
from hbrt.profiles.work import NO_WORK, WORK
from hbrt.protocol.control import ControlReply, decode_reply
from hbrt.protocol.remote import TASK_END
from hbrt.remote import keys as curve_keys
from hbrt.remote.lease import status_of
from hbrt.status import Status
from hbrt_farm.leases.hosted_board import KEYS_PREFIX
from hbrt_farm.temporary import remove_abandoned
from tests.limits import PATIENCE_S
from tests.nursery import Client
from tests.waiting import until

# Lease a board, print its address and its daemon's process, and keep it until a line arrives.
HOLDER = """
import sys
import numpy as np
from arm_client import connect
with connect() as board:
    board.from_array(np.full(1000, 7, np.uint8))
    print(board.session.link.address, board.status()["pid"], flush=True)
    sys.stdin.readline()
"""
# Programs one after another: a fork each, which takes its own lease.
EACH_A_LEASE = """
import os, sys
import numpy as np
from arm_client import connect, nn
for _ in range(int(sys.argv[1])):
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        with connect(os.environ["FARM"]) as board:
            status = board.status()
            assert status["memory"]["blocks"] == 0 and len(status["clients"]) == 2, status
            assert nn.softmax(board, np.zeros((1, 4), np.float32)).tolist() == [[0.25] * 4]
            print(status["pid"])
        break
    assert os.waitpid(child, 0)[1] == 0
"""
IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
import time
def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1001, lambda input, output, tm: 0, 0)
    hb_dsp_register_fn(0x1002, lambda input, output, tm: time.sleep(20) or 0, 0)
    hb_dsp_start()
"""


AT_ONCE, ONE_AFTER_ANOTHER = 4, 2  # programs; a board's start takes 0.7 s of CPU
SAMPLES = Path(__file__).parents[4] / "samples" / "c"


class Farm:
    """The process of 'hbrt farm serve'; a context manager."""

    def __init__(self, *options: object) -> None:
        words = ["farm", "serve", "--listen", "tcp://127.0.0.1:0", *map(str, options)]
        self.process = Client(
            [sys.executable, "-m", "hbrt", *words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HBRT_CORES": "1"},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("The farm listens at ").partition(",")[0]

    def status(self) -> Any:
        """As of 'hbrt farm status --json'."""
        farm = board_ref(self.address)
        return status_of(farm)  # type: ignore[arg-type]

    def until(self, condition: Callable[[Any], Any]) -> Any:
        """The status, once a condition holds."""
        return until(lambda: condition(found := self.status()) and found)

    def until_all_free(self) -> Any:
        return self.until(lambda found: {row["state"] for row in found["boards"]} == {"free"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)


class Holder:
    """A program that has a board, or waits for one."""

    def __init__(self, address: str, **settings: str) -> None:
        self.process = Client(
            [sys.executable, "-c", HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HBRT_BOARD": address, **settings},
        )

    def board(self) -> str:
        """Waits until it has one; the process id of its daemon, since the next one may get the same port."""
        assert self.process.stdout is not None
        self.address, pid = self.process.stdout.readline().split()
        return pid

    def end(self) -> str:
        """Have it end in order; returns its standard error."""
        return self.process.communicate("\n", timeout=PATIENCE_S)[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def used_until_it_goes(board: Board) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        board.status()
        time.sleep(0.1)


def called_until_it_goes(board: Board, command: int) -> None:
    x = board.from_array(np.zeros(4, np.float32))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        board.call(command, x, board.empty_like(x))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    where = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HBRT_HOME", str(where))
        yield where


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "image.py"
    path.write_text(IMAGE)
    return path


@pytest.fixture(scope="module")
def farm(home: Path, image: Path) -> Iterator[Farm]:
    with Farm("--boards", 1, "--pool", f"other=1,image={image}") as one:
        one.until_all_free()
        yield one


def test_a_killed_program_gives_its_board_back_and_the_next_one_gets_a_fresh_one(farm: Farm) -> None:
    first = Holder(farm.address)
    before = first.board()
    second, third = Holder(farm.address), Holder(farm.address)
    found = farm.until(lambda found: len(found["queue"]) == 2)
    assert found["boards"][0]["state"] == "leased"
    assert found["boards"][0]["program"].startswith(f"-c:{first.process.pid}@127.0.0.1")
    assert [row["place"] for row in found["queue"]] == [1, 2]
    first.kill()
    waiting = second if f":{second.process.pid}@" in found["queue"][0]["program"] else third
    assert waiting.board() != before
    other = third if waiting is second else second
    other.process.send_signal(signal.SIGINT)  # a program may give up
    assert "KeyboardInterrupt" in other.process.communicate(timeout=PATIENCE_S)[1]
    told = waiting.end()
    assert told.count("Waiting for a board") == 1
    assert f"Waiting for a board of {farm.address}: place 1 in its queue; its only board is taken" in told
    farm.until_all_free()
    with connect(farm.address) as board:
        status = board.status()
        assert status["memory"]["blocks"] == 0
        assert len(status["clients"]) == 2  # its relay, and this program
        assert nn.softmax(board, np.zeros((1, 4), np.float32)).tolist() == [[0.25] * 4]
    farm.until_all_free()


def test_a_pool_has_boards_of_its_own(farm: Farm) -> None:
    with connect(farm.address) as board, connect(f"{farm.address}/other") as other:
        assert 0x1001 not in {op["cmd"] for op in board.session.link.request("ops")}
        assert 0x1001 in {op["cmd"] for op in other.session.link.request("ops")}
        with connect(farm.address) as same:
            assert same.session is board.session  # one lease per program
    with pytest.raises(RefusedError, match=r"Unknown pool 'third'; the farm has default, other"):
        connect(f"{farm.address}/third")
    farm.until_all_free()


def test_who_does_not_fit_gets_a_sentence(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match="A farm listens here: connect to it as farm://"):
        connect(farm.address.replace("farm:", "tcp:"))
    with pytest.raises(BoardError, match=r"is not a farm address: write farm://HOST:PORT"):
        connect("farm://nowhere")
    with pytest.raises(RefusedError, match=r"Cannot reach a farm at farm://127.0.0.1:1: Connection refused"):
        connect("farm://127.0.0.1:1")
    holder = Holder(farm.address)
    assert holder.board()
    monkeypatch.setenv("HBRT_LEASE_WAIT_S", "1")
    with pytest.raises(RefusedError, match=r"no free board within 1 s .HBRT_LEASE_WAIT_S.: place 1 in"):
        connect(farm.address)
    holder.end()
    farm.until_all_free()


def test_keys_open_the_board_of_a_lease_alone_and_boards_end_with_a_killed_farm(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    curve_keys.make_server(keys)
    names = {name: curve_keys.add_client(keys, name) for name in ("alice", "bob")}
    monkeypatch.setenv("HBRT_KEYS", str(names["alice"]))
    (files := tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(files))
    with Farm("--boards", 2, "--keys", keys, "--per-user", 1) as farm:
        farm.until_all_free()
        first = Holder(farm.address)
        before = first.board()
        again = Holder(farm.address)
        [row] = farm.until(lambda found: found["queue"])["queue"]
        assert (row["user"], row["why"]) == ("alice", "alice has 1 of its boards, the maximum per user")
        monkeypatch.setenv("HBRT_KEYS", str(names["bob"]))
        with connect(farm.address):
            assert {row["user"] for row in farm.status()["boards"]} == {"alice", "bob"}
            with pytest.raises(RefusedError, match="does not know this program's key"):
                connect(first.address)  # the board of alice
        first.end()
        assert again.board() != before
        farm.process.kill()
        again.end()
    until(lambda: not [path for path in home.iterdir() if str(farm.process.pid) in path.name])
    remove_abandoned(KEYS_PREFIX, str(files))  # as the next farm does
    assert not list(files.iterdir())


def test_a_farm_that_is_short_of_descriptors_says_so(home: Path) -> None:
    serve = f"ulimit -n 16; exec {sys.executable} -m hbrt farm serve --boards 1 --listen tcp://127.0.0.1:0"
    answer = subprocess.run(["sh", "-c", serve], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert answer.stderr.startswith("Error: There are fewer than 24 file descriptors free for a farm that listens (Too")
    assert (answer.returncode, answer.stdout) == (1, "")


def test_who_does_nothing_loses_the_board_and_is_told_why(home: Path) -> None:
    with Farm("--boards", 1, "--idle-timeout", 1) as farm:
        board = connect(farm.address)
        taken_back = r"It took the board back\. No task arrived for 1 s, the farm's --idle-timeout"
        farm.until(lambda found: found["boards"][0]["state"] != "leased")
        with pytest.raises(HbrtError, match=taken_back):
            used_until_it_goes(board)
        board.close()
        with connect(farm.address) as another:  # in its place there is a fresh one
            another.status()


@pytest.fixture(scope="module")
def impatient(home: Path, image: Path) -> Iterator[Farm]:
    """A farm that takes its one board back after 2 s."""
    with Farm("--boards", 1, "--lease-timeout", 2, "--image", image) as farm:
        yield farm


def test_who_keeps_a_board_too_long_loses_it_and_is_told_why(impatient: Farm) -> None:
    board = connect(impatient.address)
    first = board.session.link.address
    taken_back = r"It took the board back\. .*2 s, the farm's --lease-timeout"
    with pytest.raises(HbrtError, match=taken_back):
        used_until_it_goes(board)
    board.close()
    with connect(impatient.address) as another:
        assert another.session.link.address != first
        another.call(0x1001, bytes(4), None)


@pytest.mark.parametrize("command", [0x1001, 0x1002], ids=["tasks one after another", "a long task"])
def test_who_has_tasks_under_way_is_told_why_too_and_at_once(impatient: Farm, command: int) -> None:
    with (
        connect(impatient.address) as board,
        pytest.raises(HbrtError, match=r"--lease-timeout\. \[HB_DSP_BOARD_LOST\]"),
    ):
        called_until_it_goes(board, command)


def test_who_loses_the_board_while_it_attaches_is_told_why(impatient: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*_: object) -> None:
        impatient.until(lambda found: found["boards"][0]["state"] != "leased")
        raise RefusedError(Status.HB_DSP_NOT_RUNNING, "No relay can be reached.")

    monkeypatch.setattr(remote_link, "RemoteChannel", too_late)
    with pytest.raises(RefusedError, match=r"It took the board back\. .*--lease-timeout"):
        connect(impatient.address)


def test_a_program_is_told_that_the_farm_itself_has_gone(home: Path) -> None:
    with Farm("--boards", 1) as farm, connect(farm.address) as board:
        farm.process.kill()
        with pytest.raises(HbrtError, match=r"The farm at .* closed the connection\. Its board is released with the"):
            used_until_it_goes(board)


def test_an_answer_that_the_board_is_lost_gives_way_to_the_farms_reason(
    impatient: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_board_that_has_gone(raw: bytes) -> ControlReply:
        return decode_reply(raw)._replace(status=int(Status.HB_DSP_BOARD_LOST), text="The daemon is gone.")

    with connect(impatient.address) as board:
        # When a board ends, its gateway answers pending requests; the farm's message arrives over another connection.
        monkeypatch.setattr(remote_link, "decode_reply", of_a_board_that_has_gone)
        monkeypatch.setattr(leased_link, "LAST_WORD_SECONDS", PATIENCE_S)
        with pytest.raises(HbrtError, match="--lease-timeout"):
            board.status()


def test_an_end_that_the_board_is_lost_gives_way_to_the_farms_reason(impatient: Farm) -> None:
    with connect(impatient.address) as board:
        link = board.session.link
        assert isinstance(link, remote_link.RemoteLink)
        lost = Answer(-1, int(Status.HB_DSP_BOARD_LOST), 0, 0, 0, 0, 0, 0)
        raw = TASK_END.pack(1, int(State.FAILED), ANSWER.pack(*lost), WORK.pack(*NO_WORK))
        with pytest.raises(
            RefusedError, match="The daemon is gone"
        ):  # which ends the connection, whose end asks the farm
            link.on_end(raw, b"The daemon is gone.")


@pytest.mark.long
def test_many_programs_on_few_boards_each_get_a_fresh_one(home: Path, tmp_path: Path) -> None:
    with Farm("--boards", 2) as farm:
        farm.until_all_free()
        # A program in C among them; one is killed while it has its board.
        binary = tmp_path / "softmax"
        compiled = [sys.executable, "-m", "hbrt", "cc", "-std=c11", str(SAMPLES / "softmax.c"), "-o", str(binary)]
        subprocess.run(compiled, check=True, capture_output=True)
        killed = Holder(farm.address)
        had = killed.board()
        in_c = subprocess.Popen(
            [str(binary)], stdout=subprocess.PIPE, text=True, env={**os.environ, "HBRT_BOARD": farm.address}
        )
        several = [
            Client(
                [sys.executable, "-c", EACH_A_LEASE, str(ONE_AFTER_ANOTHER)],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "FARM": farm.address},
            )
            for _ in range(AT_ONCE)
        ]
        killed.kill()
        told = [program.communicate(timeout=PATIENCE_S)[0] for program in several]
        assert in_c.communicate(timeout=PATIENCE_S)[0].split()[0] == "0.0320586"
        assert [program.returncode for program in (*several, in_c)] == [0] * (AT_ONCE + 1)
        boards = [line for lines in told for line in lines.split()]
        assert len(boards) == len(set(boards)) == AT_ONCE * ONE_AFTER_ANOTHER
        assert had not in boards
        farm.until_all_free()
        assert len(farm.status()["boards"]) == 2


def test_status_in_words_and_in_json(farm: Farm) -> None:
    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "hbrt", "farm", "status", *words], check=True, capture_output=True, text=True
        ).stdout

    rows = run(farm.address).splitlines()
    assert rows[0].split() == ["BOARD", "POOL", "STATE", "SINCE", "USER", "PROGRAM"]
    assert [row.split()[1] for row in rows[1:]] == ["default", "other"]
    assert json.loads(run(farm.address, "--json"))["limits"]["per_user"] == 0
