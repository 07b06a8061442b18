"""A dspqueue to an image and back."""

import os
import struct
import threading
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fastrpc
from arm_client.client import Board
from fastrpc import Aee, AeeError, DspQueue, Interface
from fastrpc.wire import ring
from tests.fastrpc.images import plain
from tests.limits import PATIENCE_S

IMAGE = "images/plain.py"


class Calc(Interface):
    """A stub by hand."""

    INTERFACE = "calc"


def code_of(call: Any, *given: Any) -> int:
    with pytest.raises(AeeError) as failed:
        call(*given)
    return failed.value.code


@pytest.mark.dsp_board(IMAGE)
def test_packets_go_there_and_back_without_a_call_each(dsp_board: Board) -> None:
    with Calc() as calc, DspQueue() as queue:
        calc.call(plain.QUEUE, queue.id)
        for number in range(500):
            text = f"packet {number}".encode()
            queue.write(text, timeout=PATIENCE_S)
            if number % 3 == 2:
                for back in range(number - 2, number + 1):
                    assert queue.read(PATIENCE_S).message == f"packet {back}".encode()[::-1]
        assert queue.read(PATIENCE_S).message
        assert queue.read(PATIENCE_S).message
        assert code_of(queue.read) == Aee.AEE_EWOULDBLOCK
        assert code_of(queue.read, 0.01) == Aee.AEE_EEXPIRED
        assert code_of(queue.write, bytes(70_000)) == Aee.AEE_EBADPARM
        assert queue.peek() is None
        assert queue.statistics()[::2] == (500, 500)
        fd = os.memfd_create("buffer")
        os.ftruncate(fd, 4096)
        assert code_of(queue.write, b"x", [(fd, 0, 0, 0)]) == Aee.AEE_ENOSUCHMAP
        assert fastrpc.fastrpc_mmap(3, fd, 0, 0, 4096, fastrpc.FASTRPC_MAP_FD) == 0
        queue.write(np.frombuffer(b"x", np.uint8), [(fd, 8, 16, 0), (fd, 0, 0, 4)])
        assert queue.read(PATIENCE_S).message == b"x"
        assert (os.pread(fd, 1, 8), os.pread(fd, 1, 0)) == (b"\1", b"\1")
        for wrong in ((fd, 8, 0, 0), (fd, 0, 4097, 0), (fd, 0, 0, 12)):
            assert code_of(queue.write, b"", [wrong]) == Aee.AEE_EBADPARM
        assert fastrpc.fastrpc_munmap(3, fd, 0, 4096) == 0
        os.close(fd)
    assert code_of(queue.write, b"x") == Aee.AEE_EINVHANDLE
    queue.close()


@pytest.mark.dsp_board(IMAGE)
def test_a_callback_may_read_until_close_has_returned(dsp_board: Board) -> None:
    began, closing, read = threading.Event(), threading.Event(), list[Any]()

    def callback() -> None:
        if not began.is_set():
            began.set()
            closing.wait(PATIENCE_S)
            read.append(queue.take())
            read.append(queue.peek())

    with Calc() as calc, DspQueue(on_ready=callback) as queue:
        calc.call(plain.QUEUE, queue.id)
        queue.write(b"ab", timeout=PATIENCE_S)
        assert began.wait(PATIENCE_S)
        threading.Timer(0.05, closing.set).start()
    assert ([one and one.message for one in read[:1]], read[1:]) == ([b"ba"], [None])


@pytest.mark.dsp_board(IMAGE)
def test_odd_arguments_are_refused_with_a_sentence(dsp_board: Board) -> None:
    queues = [DspQueue(request_bytes=64, response_bytes=64) for _ in range(ring.MAX_QUEUES)]
    with pytest.raises(AeeError, match="at most 64 queues; close one first"):
        DspQueue()
    for one in queues[1:]:
        one.close()
    with queues[0] as queue:
        for wrong in (-1.0, float("nan")):
            with pytest.raises(AeeError, match="must be 0 or more seconds"):
                queue.read(wrong)
            with pytest.raises(AeeError, match="must be 0 or more seconds"):
                queue.write(b"x", timeout=wrong)
        for flags in (-1, 1 << 16):
            with pytest.raises(AeeError, match="have 16 bits"):
                queue.write(b"x", flags=flags)
        for words in ((-1, 0), (0, 1 << 32)):
            with pytest.raises(AeeError, match="32 bits"):
                queue.write_early_wakeup(*words)


@pytest.mark.dsp_board(IMAGE)
def test_a_packet_arrives_whatever_flags_it_is_given(dsp_board: Board) -> None:
    with Calc() as calc, DspQueue() as queue:
        calc.call(plain.QUEUE, queue.id)
        for flags in (ring.FLAG_WAKEUP, 0xFFFF):  # the one of packets that no reader is given, and of a ring's end
            queue.write(b"ab", flags=flags)
            assert queue.read(PATIENCE_S).message == b"ba"


@pytest.mark.dsp_board(IMAGE)
def test_an_interrupted_close_leaves_a_queue_that_can_be_closed(dsp_board: Board) -> None:
    class Interrupted:
        """The tasks of the session, whose first wait Ctrl-C ends."""

        has_come = False

        def __getattr__(self, name: str) -> Any:
            return getattr(tasks, name)

        def wait(self, handle: int, timeout_ms: float) -> int:
            if not self.has_come:
                self.has_come = True
                raise KeyboardInterrupt
            return tasks.wait(handle, timeout_ms)

    queue = DspQueue()
    queue.write(b"x")  # nobody has imported it: its task fails
    tasks = queue._tasks
    queue._tasks = cast("Any", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        queue.close()
    assert queue.depths()  # it is still open
    queue.close()
    assert queue.is_closed
    assert not dsp_board.status()["tasks"]["running"]


@pytest.mark.dsp_board(IMAGE)
def test_a_callback_takes_the_responses(dsp_board: Board) -> None:
    told: list[bytes] = []
    has_all = threading.Event()

    def take(packet: Any) -> None:
        told.append(packet.message)
        if len(told) == 20:
            has_all.set()

    with Calc() as calc, DspQueue(on_packet=take) as queue:
        calc.call(plain.QUEUE, queue.id)
        for number in range(20):
            queue.write(bytes([number]))
        assert has_all.wait(PATIENCE_S)
        assert told == [bytes([number]) for number in range(20)]
        assert code_of(queue.read) == Aee.AEE_EBADSTATE


def test_a_crash_is_told_to_who_waits(dsp_board_factory: Any) -> None:
    with dsp_board_factory(image=Path(__file__).parent / IMAGE, fresh=True):
        with Calc() as calc, DspQueue() as queue:
            calc.call(plain.QUEUE, queue.id)
            queue.write(b"crash")
            assert code_of(queue.read, PATIENCE_S) == Aee.AEE_ECONNRESET
            assert code_of(queue.write, b"x") == Aee.AEE_ECONNRESET
        with Calc() as calc, DspQueue() as idle:
            calc.call(plain.QUEUE, idle.id)
            idle.write(b"x")
            assert idle.read(PATIENCE_S).message == b"x"
            codes: list[int] = []
            waiting = threading.Thread(target=lambda: codes.append(code_of(idle.read, PATIENCE_S)))
            waiting.start()
            assert code_of(calc.call, plain.CRASH) == Aee.AEE_ECONNRESET  # by no request of the queue
            waiting.join()
            assert codes == [Aee.AEE_ECONNRESET]
        with DspQueue() as unknown:
            unknown.write(b"x")
            assert code_of(unknown.read, PATIENCE_S) & 0xFF == Aee.AEE_ENOSUCHHANDLE


@pytest.mark.dsp_board(IMAGE)
def test_a_damaged_ring_fails_its_call_and_the_core_goes_on(dsp_board: Board) -> None:
    with Calc() as calc, DspQueue() as queue:
        calc.call(plain.QUEUE, queue.id)
        ring_at = ring.QUEUE_HEAD_BYTES
        for positions in ((8, 1 << 20), (1 << 31, 0), (16, 4)):
            struct.pack_into("<II", queue._queue.view, ring_at, *positions)
            queue._queue.set_served(is_served=False)
            queue._ask()
            assert code_of(queue.read, PATIENCE_S) == Aee.AEE_EBADSTATE
            queue._error = None
        struct.pack_into("<II", queue._queue.view, ring_at, 0, 0)
        queue.write(b"ab", timeout=PATIENCE_S)
        assert queue.read(PATIENCE_S).message == b"ba"
