"""A board on another machine, as a program sees it: the same calls, and what is lost when the way to it goes.

That the calls are the same is what other tests of this directory say when every board is used over TCP:
``test_the_same_tests_pass_over_tcp`` has them do so.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import msgpack
import numpy as np
import pytest
import zmq

import arm_client as hb
from arm_client import nn
from arm_client.client import Board, connect, private_board
from arm_client.commands.run.references import CHECKS
from arm_client.errors import BoardLostError
from arm_client.session import session as sessions
from arm_client.transport import remote_channel, remote_link, remote_memory
from hbrt.errors import BoardError, RequestRefusedError
from hbrt.protocol.remote import WINDOW_BYTES, RemoteFrame, encode
from hbrt.remote import connection, keys as curve_keys
from tests.arm_client.conftest import Chip, Hold
from tests.arm_client.transport.again import HERE, STRICT, STRICT_LEFT_OUT, STRICT_PARTS, run_again
from tests.each import each
from tests.limits import PATIENCE_S, open_descriptors
from tests.nursery import Client, run_program
from tests.remote_relay import KeptRelays, RemoteRelay, kept_relays, relay_command
from tests.threads import in_threads

__all__ = ["kept_relays"]

pytestmark = pytest.mark.dsp_board(image="../images/ops.py")
SAMPLES = HERE.parent.parent / "samples" / "arm" / "nn"
# Checks look at a task before it is handed on, and at its end.
PARTS = {STRICT: [*STRICT_PARTS, "TestProgramsThatAreRight::test_images_in_cached_memory"]}

HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 300, 1200

TAKER = """
import arm_client as hb
mem = hb.hbSysMem()
print(hb.hbSysAllocMem(mem, 5 << 20), flush=True)
input()
"""


@pytest.fixture
def relay(dsp_board: Board, kept_relays: KeptRelays) -> RemoteRelay:
    return kept_relays.of(dsp_board.path)


@pytest.fixture
def quick_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before ``far``: it waits less for a relay's signs of life."""
    monkeypatch.setattr(connection, "HEARTBEAT_MS", HEARTBEAT_MS)
    monkeypatch.setattr(connection, "HEARTBEAT_TIMEOUT_MS", HEARTBEAT_TIMEOUT_MS)


@pytest.fixture
def far(relay: RemoteRelay) -> Iterator[Chip]:
    """The test's board as from another machine; the C names use it, too."""
    board = connect(relay.address)
    before = sessions.set_default(board.session)
    chip = Chip(board)
    yield chip
    if not board.session.link.fault:
        chip.free_all()
    sessions.set_default(before)
    board.close()


def run(program: Path, *arguments: Path, address: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        [str(program), *map(str, arguments)],
        PATIENCE_S,
        env={**os.environ, "HBRT_BOARD": address, "HBRT_AUTOSTART": "0", **environment},
    )


def bytes_in(mem: hb.hbSysMem, count: int) -> bytes:
    return bytes(mem.view()[:count])


class TestWhatMoves:
    def test_blocks_that_a_parameter_block_names_go_up_and_the_output_comes_down(self, far: Chip) -> None:
        source, output = far.mem(64, b"where it lies"), far.mem(64)
        where = far.mem(16, source.phyAddr.to_bytes(8, "little") + (13).to_bytes(8, "little"))
        assert far.outcome(far.FETCH, where, output) == (0, "")
        assert bytes_in(output, 14) == b"where it lies\0"

    def test_more_than_the_window_both_ways(self, far: Chip) -> None:
        count = WINDOW_BYTES + (5 << 20) + 123
        values = np.random.default_rng(0).integers(0, 256, count, np.uint8)
        result = far.board.call(far.ECHO, far.board.from_array(values), far.board.empty(count, np.uint8))
        np.testing.assert_array_equal(result, values)
        del result
        gc.collect()

    def test_writes_of_both_sides_into_one_page_meet(self, far: Chip) -> None:
        held = Hold(far, 1).await_running()  # the op has written byte 0, and writes the output
        held.flags[8:12] = b"mine"
        held.output.view()[60:64] = b"late"  # which the op's own bytes, not seen here yet, do not take away
        held.let_go()
        assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.hbDSPReleaseTask(held.task) == 0
        assert bytes_in(held.mem, 12) == b"\1\1" + bytes(6) + b"mine"
        assert bytes_in(held.output, 61) == b"\xa5" * 60 + b"l"

    def test_an_input_is_what_it_was_when_it_was_submitted_last(self, far: Chip) -> None:
        source, output = far.mem(64), far.mem(64)
        for number in range(20):
            source.view()[:] = bytes([number]) * 64
            assert far.outcome(far.ADD_ONE, source, output) == (0, "")
            assert bytes_in(output, 64) == bytes([number + 1]) * 64

    def test_many_tasks_of_many_threads(self, far: Chip) -> None:
        board = far.board
        wrong: list[int] = []

        def work(seed: int) -> None:
            values = np.random.default_rng(seed).integers(0, 255, 5000, np.uint8)
            tasks = []
            for _ in range(6):
                values = values[::-1].copy()
                tasks.append((values, board.submit(far.ADD_ONE, board.from_array(values), board.empty(5000, np.uint8))))
            wrong.extend(seed for given, task in tasks if not np.array_equal(task.result(30), given + 1))

        in_threads(work, range(4))
        assert wrong == []

    def test_clean_shows_bytes_to_programs_beside_the_board_and_invalidate_theirs(
        self, dsp_board: Board, far: Chip, registered: Callable[[int, int], hb.hbSysMem]
    ) -> None:
        theirs = dsp_board.alloc(8192)
        mine = registered(theirs.phy_addr, 8192)
        mine.view()[5000:5004] = b"mine"
        assert hb.hbSysFlushMem(mine, hb.HB_SYS_MEM_CACHE_CLEAN) == 0
        assert bytes(theirs.view()[5000:5004]) == b"mine"
        theirs.view()[:6] = b"theirs"
        assert hb.hbSysFlushMem(mine, hb.HB_SYS_MEM_CACHE_INVALIDATE) == 0
        assert bytes_in(mine, 6) == b"theirs"
        assert bytes(mine.view()[5000:5004]) == b"mine"
        assert hb.hbSysUnregisterMem(mine) == 0
        theirs.free()

    def test_what_was_there_when_it_is_registered_is_seen(
        self, dsp_board: Board, far: Chip, registered: Callable[[int, int], hb.hbSysMem]
    ) -> None:
        theirs = dsp_board.alloc(64)
        theirs.view()[:6] = b"before"
        assert bytes_in(registered(theirs.phy_addr, 64), 6) == b"before"

    @pytest.mark.usefixtures("no_rest")
    def test_an_address_used_again_holds_zeros(self, far: Chip) -> None:
        first = far.mem(64, b"old")
        assert far.outcome(far.ADD_ONE, first, first) == (0, "")
        place = first.phyAddr
        assert hb.hbSysFreeMem(first) == 0
        again = far.mem(64)
        assert again.phyAddr == place
        assert bytes_in(again, 64) == bytes(64)
        assert far.outcome(far.ADD_ONE, again, again) == (0, "")
        assert bytes_in(again, 64) == b"\1" * 64


def test_an_overrun_is_found() -> None:
    with private_board() as near, RemoteRelay(near.path) as relay, connect(relay.address) as board:
        buffer = board.alloc(100)
        ctypes.memset(buffer.address, 0xFF, 104)
        buffer.free()
        (found,) = near.status()["findings"]
        assert (found["kind"], "past the end of block" in found["text"]) == ("overrun", True)


@pytest.mark.parametrize(
    ("check", "said", "kinds"),
    [
        (
            "all",
            ["memory checks", "not inside ops; coherence reports", "; dma checks nothing. To have its"],
            ["missing-clean"],
        ),
        ("coherence", ["this program: coherence reports bytes that lack a CLEAN when a task is"], ["missing-clean"]),
        ("layout", [], []),
    ],
)
def test_what_a_check_does_not_see_from_afar_is_said(
    check: str, said: list[str], kinds: list[str], relay: RemoteRelay, caplog: pytest.LogCaptureFixture
) -> None:
    board = hb.connect(relay.address, check=check)
    try:
        sentence = caplog.messages[0]
        assert (
            f"Board {relay.address} is on another machine. Stray pointers of this program are not detected." in sentence
        )
        assert ("Its cores do not watch" in sentence) == bool(said)
        assert all(part in sentence for part in said)
        source, result = board.alloc(16, cached=True), board.alloc(16)
        source.view()[:] = b"x" * 16
        board.call(0x1000, source, result)
        assert [
            kind for kind in ("missing-clean", "unclean-use") if any(kind in line for line in caplog.messages)
        ] == kinds
    finally:
        board.close()


@pytest.mark.parametrize("error_s", [0, 3600, -3600])
def test_times_are_of_this_machines_clock(far: Chip, monkeypatch: pytest.MonkeyPatch, error_s: int) -> None:
    # How far the board's clock is ahead is known badly on a busy machine.
    monkeypatch.setattr(remote_link.RemoteLink, "ahead_ns", error_s * 10**9)
    before = time.monotonic_ns()
    task = far.board.submit(hb.HB_DSP_RPC_CMD_PING)
    task.result()
    times = task.times
    assert before <= times.submitted_ns
    assert list(times) == sorted(times)
    assert times.ended_ns <= time.monotonic_ns()
    assert task.latency_ns >= task.duration_ns >= 0
    assert far.board.live_tasks() == 0


def test_the_boards_programs_are_told_apart(far: Chip) -> None:
    names = [client["name"] for client in far.board.status()["clients"]]
    assert [name for name in names if name.startswith("127.0.0.1:") and name.endswith(f":{os.getpid()}")]


def test_what_only_the_boards_own_machine_may_do(far: Chip) -> None:
    for verb in ("stop", "slots", "restart"):
        with pytest.raises(RequestRefusedError) as caught:
            far.board.session.link.request(verb, None, **({"count": 1} if verb == "slots" else {}))
        assert str(caught.value) == f"{verb} is only for programs on the board's own machine."


def test_memory_of_another_library_is_refused(far: Chip) -> None:
    mem, fd = hb.hbSysMem(), os.memfd_create("camera")
    os.ftruncate(fd, 4096)
    assert hb.hbrt_register_fd(mem, fd, 0, 4096) == hb.HB_SYS_REGISTER_MEM_FAILED
    assert "is on another machine" in hb.last_error()
    os.close(fd)


def test_memory_that_a_program_there_has_of_another_library_is_not_reached(far: Chip, dsp_board: Board) -> None:
    fd = os.memfd_create("camera")
    os.ftruncate(fd, 4096)
    frame = dsp_board.from_fd(fd, 4096)
    mem = hb.hbSysMem(phyAddr=frame.phy_addr, memSize=64)
    assert hb.hbSysRegisterMem(mem) == hb.HB_SYS_REGISTER_MEM_FAILED
    assert "is another library's memory" in hb.last_error()
    assert far.board.session.link.request("mem", most=9)["blocks"][0]["registered_by"] == []
    os.close(fd)


def test_a_forks_child_is_refused(far: Chip) -> None:
    mem = far.mem(64)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(hb.hbSysFreeMem(mem)).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    assert int(os.read(read, 100)) == hb.HB_SYS_FORKED
    os.close(read)
    assert far.outcome(far.ADD_ONE, mem, mem) == (0, "")


class TestEnds:
    def test_a_killed_programs_memory_comes_back(self, dsp_board: Board, relay: RemoteRelay) -> None:
        environment = {**os.environ, "HBRT_BOARD": relay.address}
        before = dsp_board.status()["memory"]["used_bytes"]
        program = Client(
            [sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        with program:
            assert program.stdout is not None
            assert program.stdout.readline() == "0\n"
            assert dsp_board.status()["memory"]["used_bytes"] >= before + (5 << 20)
            program.kill()
        Chip.until(lambda: dsp_board.status()["memory"]["used_bytes"] == before, "the end of its memory")

    def test_a_program_that_detaches_leaves_nothing(self, dsp_board: Board, relay: RemoteRelay) -> None:
        count = len(dsp_board.status()["clients"])
        for _ in range(3):
            with connect(relay.address) as board:
                board.ping()
                assert len(dsp_board.status()["clients"]) == count + 1
            Chip.until(lambda: len(dsp_board.status()["clients"]) == count, "the end of the lease")

    def test_the_copy_of_its_memory_goes_with_the_connection(self, relay: RemoteRelay) -> None:
        gc.disable()  # its bytes may be many, and the collector counts objects
        try:
            board = connect(relay.address)
            buffer = board.alloc(1 << 20)
            buffer.view()[:] = b"1" * (1 << 20)
            gone = weakref.ref(board.session.link)
            board.close()
            del board, buffer
            assert gone() is None
        finally:
            gc.enable()

    def test_no_room_for_the_copy_of_its_memory_leaves_nothing(
        self, relay: RemoteRelay, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_memory(ddr: object, client_id: int) -> None:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

        connect(relay.address).close()  # what is loaded, or kept for the process, by the first one
        before = open_descriptors()
        monkeypatch.setattr(remote_memory, "RemoteMemory", no_memory)
        with pytest.raises(BoardError, match=r"Cannot create a copy of the memory of .* here: .*Cannot allocate"):
            connect(relay.address)
        assert open_descriptors() == before

    @pytest.mark.dsp_board(image="../images/ops.py", fresh=True)  # nobody lets the cores' tasks go
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
    def test_the_relay_goes_while_callers_wait(
        self, quick_to_give_up: None, relay: RemoteRelay, far: Chip, number: int
    ) -> None:
        held, heard = Hold(far, 1).await_running(), []
        assert hb.hbDSPSetTaskDoneCb(held.task, lambda _task, status, _: heard.append(status)) == 0
        future = far.board.submit(far.HOLD, far.board.alloc(64), core=2)
        threading.Timer(0.1, relay.kill, [number]).start()
        assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.HB_DSP_RELAY_LOST, hb.last_error()
        with pytest.raises(BoardLostError) as caught:
            future.result(20)
        assert caught.value.status == hb.HB_DSP_RELAY_LOST
        Chip.until(lambda: heard, "the callback")
        assert heard == [hb.HB_DSP_RELAY_LOST]
        assert hb.hbSysFreeMem(held.mem) == hb.HB_SYS_BOARD_LOST
        relay.kill(signal.SIGCONT) if number == signal.SIGSTOP else relay.process.wait()
        far.board.session.link.detach()

    def test_another_relay_serves_the_same_program(self, dsp_board: Board, relay: RemoteRelay, far: Chip) -> None:
        relay.kill()
        Chip.until(lambda: far.board.session.link.fault, "the end of the relay")
        with RemoteRelay(dsp_board.path) as other, connect(other.address) as board:
            assert nn.softmax(board, np.zeros(4, np.float32)).tolist() == [0.25] * 4
            gc.collect()

    @pytest.mark.dsp_board(image="../images/ops.py", fresh=True)
    def test_the_board_goes_while_callers_wait(self, dsp_board: Board, far: Chip) -> None:
        held = Hold(far, 1).await_running()
        pid = dsp_board.session.link.daemon_pid
        threading.Timer(0.1, os.kill, [pid, signal.SIGKILL]).start()
        assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.HB_DSP_BOARD_LOST, hb.last_error()


class TestComingIn:
    @pytest.mark.parametrize("has_keys", [False, True])
    def test_samples_run_as_they_are(self, dsp_board: Board, tmp_path: Path, has_keys: bool) -> None:  # noqa: FBT001
        keys = tmp_path / "keys" if has_keys else None
        environment = {}
        if keys is not None:
            curve_keys.make_server(keys)
            environment["HBRT_KEYS"] = str(curve_keys.add_client(keys, "alice"))
        with RemoteRelay(dsp_board.path, keys) as relay:
            for name in ("softmax",) if has_keys else ("softmax", "quantize"):
                done = run(SAMPLES / f"{name}.py", tmp_path, address=relay.address, **environment)
                assert (done.returncode, done.stderr) == (0, "")
                program = runpy.run_path(str(SAMPLES / f"{name}.py"))
                result = np.load(tmp_path / f"{name}.npy")
                assert CHECKS["nn", name](result, SimpleNamespace(**program), {}).passed

    def test_keys(self, dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ours, others = tmp_path / "ours", tmp_path / "others"
        for keys in (ours, others):
            curve_keys.make_server(keys)
        alice, bob = curve_keys.add_client(ours, "alice"), curve_keys.add_client(others, "bob")
        with RemoteRelay(dsp_board.path, ours) as relay:

            def refusal(directory: Path) -> str:
                monkeypatch.setenv("HBRT_KEYS", str(directory))
                with pytest.raises(BoardError) as caught:
                    connect(relay.address)
                return str(caught.value)

            assert "requires a key. No such key:" in refusal(tmp_path)
            assert "does not belong to that relay" in refusal(bob)
            (bob / "server.key").write_bytes((ours / "server.key").read_bytes())
            assert "does not know this program's key" in refusal(bob)
            monkeypatch.setenv("HBRT_KEYS", str(alice))
            with connect(relay.address) as board:
                assert any(client["name"].startswith("alice@127.0.0.1:") for client in board.status()["clients"])
            (ours / "clients" / "alice.key").unlink()
            assert "does not know this program's key" in refusal(alice)

    def test_keys_that_the_relay_has_not(
        self, relay: RemoteRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HBRT_KEYS", str(tmp_path))
        with pytest.raises(BoardError, match=r"has no keys, but HBRT_KEYS requires them"):
            connect(relay.address)

    def test_nobody_is_there(self, relay: RemoteRelay) -> None:
        relay.close()
        with pytest.raises(BoardError, match=r"Cannot reach a relay at tcp://127.0.0.1:\d+: Connection refused"):
            connect(relay.address)

    @pytest.mark.parametrize(
        ("frame", "why"),
        [
            (encode(RemoteFrame.BEAT, b"0"), r"did not answer within 0\.3 s"),
            (
                msgpack.packb([1, int(RemoteFrame.REFUSED), 0, ""]),
                "version 1; this side speaks 3. Use the same installation",
            ),
            (encode(RemoteFrame.NOW, 1, 1), "did not send its greeting"),
        ],
        ids=["beats alone", "an older version", "another word"],
    )
    def test_one_that_never_says_welcome(self, frame: bytes, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(remote_channel, "WELCOME_SECONDS", 0.3)
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.linger = 0
            port = router.bind_to_random_port("tcp://127.0.0.1")
            is_over = threading.Event()

            def talk() -> None:
                identity, _ = router.recv_multipart()
                while not is_over.wait(0.01):
                    router.send_multipart((identity, frame))

            thread = threading.Thread(target=talk)
            thread.start()
            with pytest.raises(BoardError, match=why):
                connect(f"tcp://127.0.0.1:{port}")
            is_over.set()
            thread.join()

    @each("address", ["tcp://nowhere", "tcp://a:0", "tcp://a:70000", "tcp://a b:1", "tcp://:5"])
    def test_addresses_that_are_none(self, address: str) -> None:
        with pytest.raises(BoardError, match="is not a relay address"):
            connect(address)


WAITER = f"""
import arm_client as hb
from hbrt.remote import connection
connection.HEARTBEAT_MS, connection.HEARTBEAT_TIMEOUT_MS = {HEARTBEAT_MS}, {HEARTBEAT_TIMEOUT_MS}
mem, task, ctrl = hb.hbSysMem(), hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
assert hb.hbSysAllocMem(mem, 5 << 20) == 0, hb.last_error()
hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
ctrl.rpcCmd = 0x1001
assert hb.hbDSPRpc(task, mem, mem, ctrl) == 0, hb.last_error()
print("waits", flush=True)
print("waited", hb.hbDSPWaitTaskDone(task, 0))
"""


def can_make_networks() -> bool:
    """Whether this process may make network namespaces and join them."""
    if not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    trial = ["unshare", "-n", "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces need rights that this process has not")
@pytest.mark.dsp_board(image="../images/ops.py", fresh=True)
def test_two_machines_and_a_cable_that_is_cut(dsp_board: Board, tmp_path: Path) -> None:
    keys, waiter = tmp_path / "keys", tmp_path / "waiter.py"
    curve_keys.make_server(keys)
    curve_keys.add_client(keys, "alice")
    waiter.write_text(WAITER)
    before = dsp_board.status()["memory"]["used_bytes"]
    listening = "dsp_server.gateway.server."
    limits = {f"{listening}HEARTBEAT_MS": HEARTBEAT_MS, f"{listening}HEARTBEAT_TIMEOUT_MS": HEARTBEAT_TIMEOUT_MS}
    relay = shlex.join(relay_command(dsp_board.path, keys, limits, "tcp://10.99.0.1:5557"))
    script = ["sh", HERE / "two_machines.sh", sys.executable, relay, keys, SAMPLES / "softmax.py", waiter]
    done = subprocess.run(
        ["unshare", "-n", *map(str, script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "softmax.npy").sum(axis=-1), 1, rtol=1e-6)
    assert f"waited {int(hb.HB_DSP_RELAY_LOST)}" in done.stdout
    # Its task runs on forever, and keeps what it uses until the core lets go; the lease has ended.
    Chip.until(
        lambda: not [client for client in dsp_board.status()["clients"] if "waiter" in client["name"]],
        "the end of its lease",
    )
    assert dsp_board.status()["memory"]["used_bytes"] <= before + (5 << 20)


@pytest.mark.long
def test_the_same_checks_over_tcp(tmp_path: Path) -> None:
    run_again([STRICT], tmp_path / "inner", "-p", "tests.arm_client.over_tcp", parts=PARTS, left_out=STRICT_LEFT_OUT)
