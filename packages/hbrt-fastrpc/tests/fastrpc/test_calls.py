"""remote_handle64_* and stubs in Python against a board."""

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrpc
from arm_client.client import Board
from fastrpc import Aee, AeeError, Interface, remote_arg, remote_handle64
from fastrpc.runtime import runtime
from fastrpc.wire import behavior, types, uri
from fastrpc.wire.aee import DSP_ERROR
from fastrpc.wire.message import FASTRPC_CMD
from fastrpc.wire.scalars import make
from hbrt.status import Status
from tests.fastrpc.images import plain
from tests.limits import PATIENCE_S
from tests.waiting import until

pytestmark = pytest.mark.dsp_board("images/plain.py")
URI = uri.of_interface("calc") + "&_dom=cdsp"


class Calc(Interface):
    """A stub by hand."""

    INTERFACE = "calc"


def code_of(call: Callable[..., object], *given: Any) -> int:
    with pytest.raises(AeeError) as failed:
        call(*given)
    assert str(failed.value)
    return failed.value.code


def nobody_listens() -> bool:
    """Whether the thread that reports domain states has noticed that its board ended."""
    return all(one.name != "hbrt-fastrpc-status" for one in threading.enumerate())


def arguments(*buffers: tuple[int, int]) -> ctypes.Array[remote_arg]:
    array = (remote_arg * len(buffers))()
    for one, (address, size) in zip(array, buffers, strict=True):
        one.buf.pv, one.buf.nLen = address, size
    return array


def test_every_form_of_a_parameter_travels(dsp_board: Board) -> None:
    with Calc() as calc:
        x, w = np.arange(5, dtype=np.uint8), np.full(1000, 2, np.uint8)
        assert list(calc.call(plain.FORWARD, x, w, 3, 2, 10)) == [(10 + 2000 + 20 + i) % 256 for i in range(3)]
        assert calc.call(plain.COUNT) == 1
        assert calc.call(plain.GREET, "Jürgen", 40) == "Hello, Jürgen"
        values = np.array([1, 2, 3], np.float32)
        assert calc.call(plain.SCALE, values, 3.0) == 4.0
        assert list(values) == [3, 6, 9]
        assert calc.call(plain.FAR, 21) == 42
        assert calc.call(plain.FORWARD, x[:0], w, 0, 0, 0).size == 0  # no bytes at all
    with Calc(session=1) as other:
        assert other.call(plain.COUNT) == 0


def test_shared_memory_is_not_copied_and_all_else_is_aligned(dsp_board: Board) -> None:
    whole = fastrpc.empty(1 << 20)
    x, w, y = whole[:100], whole[4096:70_000], whole[-256:]
    x[:], w[:] = 1, 1
    with Calc() as calc:
        before = fastrpc.statistics()
        calc.call(plain.FORWARD, x, w, y, 0, 0)
        assert y[0] == (100 + len(w)) % 256
        calc.call(plain.FORWARD, x, np.ones(130, np.uint8), y, 0, 0)
        assert y[0] == 230
        on_board = dsp_board.from_array(x)
        calc.call(plain.FORWARD, on_board, on_board, y, 0, 0)
        told = fastrpc.statistics()
        assert told.calls - before.calls == 3
        assert told.shared_buffers - before.shared_buffers == 3 + 2 + 3
        assert told.copied_bytes - before.copied_bytes == 130 + 3 * 20
        assert told.padding_bytes - before.padding_bytes == 126 + 3 * 108
        assert "copied" in str(told)
        del on_board


def test_the_c_names(dsp_board: Board) -> None:
    handle = remote_handle64()
    assert fastrpc.remote_handle64_open(URI, handle) == 0
    fastrpc.rpcmem_init()
    memory = fastrpc.rpcmem_alloc(fastrpc.RPCMEM_HEAP_ID_SYSTEM, fastrpc.RPCMEM_DEFAULT_FLAGS, 4096)
    fd = fastrpc.rpcmem_to_fd(memory)
    assert fd == fastrpc.rpcmem_to_fd(memory)
    with mmap.mmap(fd, 4096) as view:
        view[7] = 9
        assert ctypes.string_at(memory + 7, 1) == b"\x09"
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(fd, 0)
    assert fastrpc.rpcmem_to_fd(memory + 1) == -1
    assert fastrpc.fastrpc_mmap(3, fd, memory, 0, 4097, fastrpc.FASTRPC_MAP_FD) == Aee.AEE_EBADPARM
    assert fastrpc.fastrpc_mmap(3, fd, memory, 0, 4096, fastrpc.FASTRPC_MAP_FD) == 0
    assert fastrpc.fastrpc_munmap(3, fd, memory, 4096) == 0
    assert fastrpc.remote_mmap(fd, 0, memory, 4096, None) == Aee.AEE_EBADPARM
    assert "vaddrout is None; pass a ctypes integer" in fastrpc.last_error()
    block = (ctypes.c_uint32 * 5).from_address(memory)
    block[:] = [4, 4, 2, 0, 0]
    ctypes.memset(memory + 128, 1, 4)
    given = arguments((memory, 20), (memory + 128, 4), (memory + 128, 4), (memory + 256, 2))
    for _ in range(3):  # the second takes the short way
        assert fastrpc.remote_handle64_invoke(handle, make(2, 3, 1), given) == 0
        assert ctypes.string_at(memory + 256, 2) == bytes([8, 9])
        ctypes.memset(memory + 256, 0, 2)
    assert fastrpc.statistics().copied_bytes == 0
    outside = ctypes.create_string_buffer(2)
    given[3].buf.pv = ctypes.addressof(outside)
    assert fastrpc.remote_handle64_invoke(handle, make(2, 3, 1), given) == 0
    assert outside.raw == bytes([8, 9])
    given[2].buf.nLen = 4096
    assert fastrpc.remote_handle64_invoke(handle, make(2, 3, 1), given) == Aee.AEE_EBADPARM
    assert "runs past its end" in fastrpc.last_error()
    given[2].buf.nLen = 4
    assert fastrpc.remote_handle64_invoke(handle, make(2, 3, 1), None) == Aee.AEE_EBADPARM
    assert fastrpc.remote_handle64_invoke(handle, make(2, 4, 1), given) == Aee.AEE_EBADPARM
    assert fastrpc.remote_handle64_invoke(handle, make(2, 3, 0), given) == DSP_ERROR + Aee.AEE_EBADPARM
    assert "got 0x02030000" in fastrpc.last_error()
    assert fastrpc.remote_handle64_invoke(handle, make(20, 0, 0), None) == DSP_ERROR + Aee.AEE_EUNSUPPORTED
    assert fastrpc.remote_handle64_close(handle) == 0
    for stale in (handle, -1, 12345, None):
        assert fastrpc.remote_handle64_invoke(stale, 0, None) == Aee.AEE_EINVHANDLE
        assert fastrpc.remote_handle64_close(stale) == Aee.AEE_EINVHANDLE
    fastrpc.rpcmem_free(memory)
    fastrpc.rpcmem_free(memory)
    fastrpc.rpcmem_free(12)
    assert fastrpc.rpcmem_alloc(25, 1, 0) == 0
    assert fastrpc.rpcmem_alloc(25, 1, 1 << 31) == 0


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (None, Aee.AEE_EBADPARM),
        (uri.of_interface("calc"), Aee.AEE_EBADPARM),
        (uri.of_interface("other") + "&_dom=cdsp", DSP_ERROR + Aee.AEE_EUNABLETOLOAD),
        (uri.of_interface("calc") + "&_dom=adsp", Aee.AEE_ECONNREFUSED),
        (uri.of_interface("calc") + "&_dom=cdsp&_session=7", Aee.AEE_ENOSESSION),
        (uri.of_interface("c" * 2000) + "&_dom=cdsp", Aee.AEE_EBADPARM),
    ],
)
def test_an_open_that_cannot_be_is_refused(dsp_board: Board, written: str | None, code: int) -> None:
    handle = remote_handle64(77)
    assert fastrpc.remote_handle64_open(written, handle) == code
    assert handle.value == 77
    assert fastrpc.last_error()


def test_registered_memory_of_another_library(dsp_board: Board) -> None:
    fd = os.memfd_create("camera")
    os.ftruncate(fd, 8192)
    pages = mmap.mmap(fd, 8192)
    x = np.frombuffer(pages, np.uint8)
    address = x.__array_interface__["data"][0]
    try:
        assert fastrpc.remote_register_buf(address, 8192, fd) == 0
        x[:128] = 1
        with Calc() as calc:
            before = fastrpc.statistics()
            calc.call(plain.FORWARD, x[:128], x[:128], x[4096:4097], 0, 0)
            assert x[4096] == 0  # 256
            assert fastrpc.statistics().shared_buffers - before.shared_buffers == 3
        assert fastrpc.remote_register_buf(address + 4096, 4096, fd) == Aee.AEE_EALREADY
        assert fastrpc.remote_register_buf(address, 4096, -1) == Aee.AEE_ENOSUCHMAP
        assert fastrpc.remote_register_buf(address, 8192, -1) == 0
        assert fastrpc.fastrpc_mmap(3, fd, address, 0, 8192, fastrpc.FASTRPC_MAP_FD) == 0
        assert fastrpc.fastrpc_mmap(3, fd, address, 0, 8192, fastrpc.FASTRPC_MAP_FD) == Aee.AEE_EALREADY
        assert fastrpc.fastrpc_mmap(3, fd, address, 4096, 8192, fastrpc.FASTRPC_MAP_FD) == Aee.AEE_EBADPARM
        assert fastrpc.fastrpc_mmap(3, fd, address, 0, 8192, 5) == Aee.AEE_EBADPARM
        assert fastrpc.fastrpc_munmap(3, fd, address, 4096) == Aee.AEE_ENOSUCHMAP
        assert fastrpc.fastrpc_munmap(3, fd, address, 8192) == 0
        assert fastrpc.fastrpc_munmap(3, fd, 0, 0) == Aee.AEE_ENOSUCHMAP
        assert fastrpc.fastrpc_mmap(3, fd, address, 0, 8192, fastrpc.FASTRPC_MAP_FD) == 0
        assert fastrpc.fastrpc_munmap(3, fd, 0, 0) == 0
    finally:
        os.close(fd)
    assert fastrpc.remote_register_buf(address, 8192, fd) == Aee.AEE_EINVALIDFD
    assert fastrpc.fastrpc_mmap(3, 9999, address, 0, 8192, fastrpc.FASTRPC_MAP_FD) == Aee.AEE_EINVALIDFD


def test_a_method_fails_with_its_own_code_and_a_sentence(dsp_board: Board) -> None:
    with Calc() as calc:
        for code in (17, -5, 0x7FFF_FFFF):
            with pytest.raises(AeeError, match=f"asked to fail with {code}") as failed:
                calc.call(plain.FAIL, code)
            assert failed.value.code == code
        with pytest.raises(AeeError, match="a mistake of the method") as failed:
            calc.call(plain.FAIL, 99)
        assert failed.value.code == DSP_ERROR + Aee.AEE_EFAILED
        with pytest.raises(AeeError, match="takes 9 bytes") as failed:
            calc.call(plain.GREET, "x", 4)
        assert failed.value.code == DSP_ERROR + Aee.AEE_EBUFFERTOOSMALL
        for wrong in ((np.zeros(3), 1.0), ([1.0], 1.0), (np.zeros(3, np.float32), "x")):
            assert code_of(calc.call, plain.SCALE, *wrong) == Aee.AEE_EBADPARM
        for short_or_long in ((), (1, 2)):
            with pytest.raises(AeeError, match=rf"far takes 1 argument \(value\), not {len(short_or_long)}"):
                calc.call(plain.FAR, *short_or_long)
        assert calc.call(plain.FAR, 1) == 2
    assert code_of(calc.call, plain.COUNT) == Aee.AEE_EINVHANDLE


def test_nonsense_for_the_command_fails_alone(dsp_board: Board) -> None:
    from arm_client.errors import HbrtError

    with Calc() as calc:
        for junk in (None, b"x", bytes(24), b"\2" + bytes(30), b"\1\0\0\0" + b"\xff" * 30, os.urandom(200)):
            with pytest.raises(HbrtError):
                dsp_board.call(FASTRPC_CMD, junk)
        assert calc.call(plain.FAR, 4) == 8


def test_a_domain_that_crashed_makes_its_handles_stale(dsp_board_factory: Any) -> None:
    with dsp_board_factory(image=Path(__file__).parent / "images/plain.py", fresh=True) as board:
        first, other = Calc(), Calc(session=1)
        idle = Calc()
        assert code_of(first.call, plain.CRASH) == Aee.AEE_ECONNRESET
        for stale in (first, idle):
            assert code_of(stale.call, plain.COUNT) == Aee.AEE_ECONNRESET
        assert other.call(plain.COUNT) == 0
        with Calc() as anew:
            assert anew.call(plain.FAR, 3) == 6
        for one in (first, other, idle):
            one.close()
            one.close()
        assert board.live_tasks() == 0


def test_a_skeleton_that_closes_its_cores_descriptors_costs_the_core(dsp_board_factory: Any) -> None:
    with dsp_board_factory(image=Path(__file__).parent / "images/plain.py", fresh=True, cores=1) as board:
        core = board.status()["cores"][0]["pid"]
        calc = Calc()
        with contextlib.suppress(AeeError):  # the answer still reaches the program, or the core ends first
            calc.call(plain.CLOSE_ALL)
        until(lambda: board.status()["cores"][0]["pid"] not in {0, core})  # it was woken by nothing, and span
        calc.close()
        with Calc() as other:
            assert other.call(plain.FAR, 3) == 6


def test_threads_share_a_handle(dsp_board: Board) -> None:
    wrong: list[int] = []
    with Calc() as calc:

        def call(seed: int) -> None:
            wrong.extend(value for value in range(seed, seed + 200) if calc.call(plain.FAR, value) != 2 * value)

        threads = [threading.Thread(target=call, args=(1000 * one,)) for one in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert wrong == []
    assert runtime().statistics().calls >= 600


def test_a_stubs_repeated_call_fills_the_same_message(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, y = np.ones(5, np.uint8), np.ones(7, np.uint8), np.zeros(3, np.uint8)
    written: list[object] = []
    with Calc() as calc, Calc() as other:
        messages, before = runtime()._messages, fastrpc.statistics()
        write = messages.write

        def counted(*given: Any) -> Any:
            written.append(given)
            return write(*given)

        monkeypatch.setattr(messages, "write", counted)

        def call(one: Calc, value: int, out: Any) -> int:
            """How many messages have been written then."""
            x[:] = value
            one.call(plain.FORWARD, x, w, out, value, 3)
            assert list(out) == [5 * value + 7 + 3 * value + at for at in range(len(out))]
            return len(written)

        assert [call(calc, value, y) for value in (1, 2, 3)] == [1, 1, 1]
        assert [call(calc, 4, y[:2]), call(other, 5, y), call(calc, 6, y)] == [2, 3, 3]
        memory = fastrpc.rpcmem_alloc(fastrpc.RPCMEM_HEAP_ID_SYSTEM, fastrpc.RPCMEM_DEFAULT_FLAGS, 4096)
        assert [call(calc, 7, y), call(calc, 8, y)] == [4, 4]  # what was copied might be registered now
        fastrpc.rpcmem_free(memory)
        assert [call(calc, 9, y), call(calc, 10, y)] == [5, 5]
        added = fastrpc.statistics()
        assert (added.calls - before.calls, added.copied_buffers - before.copied_buffers) == (10, 40)
        refused = [code_of(calc.call, plain.FAIL, 17) for _ in range(3)]
        assert refused == [17, 17, 17]
        assert call(calc, 11, y) == 8  # a message whose call fails is not kept
    with Calc() as again:
        assert call(again, 12, y) == 9  # nor one whose handle is closed


def test_the_newest_small_messages_are_kept(dsp_board: Board) -> None:
    w, y = np.ones(7, np.uint8), np.zeros(3, np.uint8)
    with Calc() as calc:
        kept: Any = runtime()._kept._kept
        for count in (*range(1, 90), 1 << 17):
            calc.call(plain.FORWARD, np.ones(count, np.uint8), w, y, 1, 3)
        assert [key[3][1] for key in kept] == [*range(26, 90)]


def test_asynchronous_invocations(dsp_board: Board) -> None:
    told: list[tuple[int, int | None, int]] = []
    has_come = threading.Event()

    @fastrpc.fastrpc_async_callback  # type: ignore[untyped-decorator]
    def callback(job: int, context: int | None, result: int) -> None:
        told.append((job, context, result))
        has_come.set()

    memory = fastrpc.rpcmem_alloc(25, 1, 4096)
    block = (ctypes.c_uint32 * 5).from_address(memory)
    block[:] = [4, 4, 2, 0, 0]
    ctypes.memset(memory + 128, 1, 4)
    given = arguments((memory, 20), (memory + 128, 4), (memory + 128, 4), (memory + 256, 2))
    result = ctypes.c_int(77)
    with Calc() as calc:
        desc = fastrpc.fastrpc_async_descriptor(fastrpc.FASTRPC_ASYNC_POLL)
        assert fastrpc.remote_handle64_invoke_async(calc.handle, desc, make(2, 3, 1), given) == 0
        assert fastrpc.fastrpc_async_get_status(desc.jobid, -1, result) == 0
        assert result.value == 0
        assert ctypes.string_at(memory + 256, 2) == bytes([8, 9])
        assert fastrpc.fastrpc_async_get_status(desc.jobid, 0, result) == 0
        assert fastrpc.fastrpc_release_async_job(desc.jobid) == 0
        assert fastrpc.fastrpc_release_async_job(desc.jobid) == Aee.AEE_ENOSUCHJOB
        assert fastrpc.fastrpc_async_get_status(desc.jobid, 0, result) == Aee.AEE_ENOSUCHJOB

        desc = fastrpc.fastrpc_async_descriptor(fastrpc.FASTRPC_ASYNC_CALLBACK, fn=callback, context=5)
        assert fastrpc.remote_handle64_invoke_async(calc.handle, desc, make(20, 0, 0), None) == 0
        assert has_come.wait(PATIENCE_S)
        assert told == [(desc.jobid, 5, DSP_ERROR + Aee.AEE_EUNSUPPORTED - (1 << 32))]
        assert fastrpc.fastrpc_release_async_job(desc.jobid) == 0

        desc = fastrpc.fastrpc_async_descriptor(fastrpc.FASTRPC_ASYNC_NO_SYNC)
        assert fastrpc.remote_handle64_invoke_async(calc.handle, desc, make(2, 3, 1), given) == 0
        for wrong in (fastrpc.fastrpc_async_descriptor(9), fastrpc.fastrpc_async_descriptor(1)):
            assert fastrpc.remote_handle64_invoke_async(calc.handle, wrong, 0, None) == Aee.AEE_EBADPARM
        outside = ctypes.create_string_buffer(2)
        given[3].buf.pv = ctypes.addressof(outside)
        assert fastrpc.remote_handle64_invoke_async(calc.handle, desc, make(2, 3, 1), given) == Aee.AEE_EBADPARM
        assert calc.call(plain.COUNT) == 2
        until(lambda: dsp_board.live_tasks() == 0)  # nobody waits for the one that never reports its end
    fastrpc.rpcmem_free(memory)


def test_an_asynchronous_invocation_that_is_refused_gives_its_message_back(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fastrpc.empty(4096)
    memory = whole.__array_interface__["data"][0]
    given = arguments((memory, 20), (memory + 128, 4), (memory + 128, 4), (memory + 256, 2))
    with Calc() as calc:
        here, checked = runtime(), []
        monkeypatch.setattr(here, "_submit", lambda _task: int(Status.HB_DSP_TASK_NUM_EXCEED_LIMIT))
        monkeypatch.setattr(here._messages, "end", lambda made, _opened: checked.append(made.buffer))
        desc = fastrpc.fastrpc_async_descriptor(fastrpc.FASTRPC_ASYNC_POLL)
        for number in (1, 2):
            refused = fastrpc.remote_handle64_invoke_async(calc.handle, desc, make(2, 3, 1), given)
            assert refused == Aee.AEE_EOUTOFHANDLES
            assert len(checked) == number
            assert checked[-1] in here._messages._spare
        monkeypatch.undo()


def test_a_program_is_told_of_its_domain(dsp_board_factory: Any) -> None:
    told: list[tuple[int | None, int, int, int]] = []

    @fastrpc.fastrpc_notif_fn  # type: ignore[untyped-decorator]
    def notify(context: int | None, domain: int, session: int, status: int) -> int:
        told.append((context, domain, session, status))
        return 0

    def control(req: int, data: ctypes.Structure) -> int:
        return fastrpc.remote_session_control(req, data, ctypes.sizeof(data))

    with dsp_board_factory(image=Path(__file__).parent / "images/plain.py", fresh=True):
        listening = types.remote_rpc_notif_register(7, 3 + 8, notify)
        assert control(types.FASTRPC_REGISTER_STATUS_NOTIFICATIONS, listening) == 0
        calc = Calc(session=1)
        assert control(types.FASTRPC_REMOTE_PROCESS_KILL, behavior.remote_rpc_domain(3 + 8)) == 0
        assert code_of(calc.call, plain.COUNT) == Aee.AEE_ECONNRESET
        until(lambda: len(told) == 3)
        calc.close()
        again = Calc(session=1)
        assert code_of(again.call, plain.CRASH) == Aee.AEE_ECONNRESET
        until(lambda: len(told) == 6)
        again.close()
        with Calc(session=1):
            pass
        assert [one[3] for one in told] == [0, 2, 4, 0, 3, 4, 0, 1]
        assert {one[:3] for one in told} == {(7, 3, 1)}
        assert control(types.FASTRPC_REMOTE_PROCESS_KILL, behavior.remote_rpc_domain(3)) == Aee.AEE_ENOSESSION
    until(nobody_listens)


class OtherCalc(Interface):
    """A handwritten stub of the image's other interface."""

    INTERFACE = "other_calc"


def test_the_cores_of_a_process_domain_crash_and_start_again_as_one(
    dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    @fastrpc.fastrpc_notif_fn  # type: ignore[untyped-decorator]
    def notify(context: int | None, domain: int, session: int, status: int) -> int:
        told.append(status)
        return 0

    monkeypatch.setenv("HBRT_PROFILE", "sd865")
    with dsp_board_factory(image=Path(__file__).parent / "images/plain.py", cores=4, fresh=True):
        listening = types.remote_rpc_notif_register(None, 3, notify)
        req = types.FASTRPC_REGISTER_STATUS_NOTIFICATIONS
        assert fastrpc.remote_session_control(req, listening, ctypes.sizeof(listening)) == 0
        first, second, apart = Calc(), OtherCalc(), Calc(session=1)
        masks = [runtime().opened(one.handle).mask for one in (first, second, apart)]
        assert masks == [1 << 0, 1 << 1, 1 << 2]
        assert code_of(second.call, plain.CRASH) == Aee.AEE_ECONNRESET
        until(lambda: len(told) == 3)
        for stale in (first, second):
            assert code_of(stale.call, plain.COUNT) == Aee.AEE_ECONNRESET
            stale.close()
        assert apart.call(plain.COUNT) == 0
        apart.close()
        with Calc() as again, OtherCalc() as other:
            assert (again.call(plain.FAR, 3), other.call(plain.FAR, 4)) == (6, 8)
        assert told == [0, 3, 4, 0, 1]
    until(nobody_listens)


def test_control_requests(dsp_board: Board) -> None:
    def session(req: int, data: Any) -> int:
        return fastrpc.remote_session_control(req, data, ctypes.sizeof(data))

    assert session(types.FASTRPC_THREAD_PARAMS, types.remote_rpc_thread_params(3, 1, 1 << 16)) == 0
    assert runtime().domains.of(3).priority == 253
    relative = types.remote_rpc_relative_thread_priority(3, 8)
    assert session(types.FASTRPC_RELATIVE_THREAD_PRIORITY, relative) == 0
    assert runtime().domains.of(3).priority == 255 - 200 < runtime().domains.of(4).priority == 255 - 192
    assert session(types.FASTRPC_THREAD_PARAMS, types.remote_rpc_thread_params(-1, 255, -1)) == 0
    assert runtime().domains.of(11).priority == 0
    assert session(types.FASTRPC_THREAD_PARAMS, types.remote_rpc_thread_params(3, 0, -1)) == Aee.AEE_EBADPARM
    assert session(types.FASTRPC_THREAD_PARAMS, types.remote_rpc_thread_params(3, 9, 1)) == Aee.AEE_EBADPARM
    assert session(types.FASTRPC_THREAD_PARAMS, behavior.remote_rpc_domain(3)) == Aee.AEE_EBADPARM
    assert session(3, behavior.remote_rpc_domain(3)) == Aee.AEE_EUNSUPPORTED
    assert session(types.DSPRPC_CONTROL_UNSIGNED_MODULE, types.remote_rpc_control_unsigned_module(3, 1)) == 0
    memory = types.remote_rpc_pd_initmem_size(3, 5 << 20)
    assert session(types.FASTRPC_PD_INITMEM_SIZE, memory) == Aee.AEE_EUNSUPPORTED
    calc = Calc()
    late = types.remote_rpc_control_unsigned_module(3, 0)
    assert session(types.DSPRPC_CONTROL_UNSIGNED_MODULE, late) == Aee.AEE_EBADSTATE
    question = types.remote_dsp_capability(3, 9)
    assert fastrpc.remote_handle64_control(calc.handle, 2, question, 12) == 0
    assert question.capability == 1
    question.attribute_ID = 99
    assert fastrpc.remote_handle_control(2, question, 12) == Aee.AEE_EBADPARM
    latency = types.remote_rpc_control_latency(3, 10_000)
    assert fastrpc.remote_handle64_control(calc.handle, 1, latency, 8) == Aee.AEE_EBADPARM
    assert fastrpc.remote_handle64_control(calc.handle, 1, types.remote_rpc_control_latency(1, 100), 8) == 0
    assert fastrpc.remote_handle64_control(0, 1, latency, 8) == Aee.AEE_EINVHANDLE
    assert session(types.FASTRPC_SESSION_CLOSE, behavior.remote_rpc_domain(3)) == 0
    assert code_of(calc.call, plain.COUNT) == Aee.AEE_EINVHANDLE


def test_a_forks_child_is_refused_and_its_parent_goes_on(dsp_board: Board) -> None:
    with Calc() as calc:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                calc.call(plain.FAR, 1)
            except AeeError as error:
                os.write(write_end, str(error.code).encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert int(os.read(read_end, 20)) == Aee.AEE_ECONNRESET
        os.close(read_end)
        os.close(write_end)
        assert calc.call(plain.FAR, 6) == 12


def test_a_repeated_call_goes_on_while_memory_and_messages_change(dsp_board: Board) -> None:
    def call(at: int) -> None:
        x, y = fastrpc.empty(64), fastrpc.empty(8)
        x[:] = at
        block = fastrpc.from_array(np.array([64, 64, 8, 0, 0], np.uint32))
        places = [(one.__array_interface__["data"][0], one.nbytes) for one in (block, x, x, y)]
        given = arguments(*places)
        for _ in range(150):
            y[:] = 255
            assert fastrpc.remote_handle64_invoke(calc.handle, make(2, 3, 1), given) == 0
            if y[0] != 128 * at % 256:
                wrong.append(at)

    wrong: list[int] = []
    with Calc() as calc:
        threads = [threading.Thread(target=call, args=(at,)) for at in (1, 3, 5)]
        for one in threads:
            one.start()
        while any(one.is_alive() for one in threads):
            address = fastrpc.rpcmem_alloc(25, 1, 4096)
            calc.call(plain.FAR, 1)
            fastrpc.rpcmem_free(address)
        for one in threads:
            one.join()
    assert wrong == []


def test_a_domain_has_the_memory_that_was_asked_for(dsp_board: Board) -> None:
    here = runtime()
    memory = types.remote_rpc_pd_initmem_size(3 + 8, 20 << 20)
    assert fastrpc.remote_session_control(types.FASTRPC_PD_INITMEM_SIZE, memory, ctypes.sizeof(memory)) == 0
    try:
        with Calc(session=1) as calc, Calc() as other:
            calc.call(plain.HOLD, 12 << 20)
            assert code_of(calc.call, plain.HOLD, 12 << 20) == DSP_ERROR + Aee.AEE_ENOMEMORY
            calc.call(plain.HOLD, 4 << 20)
            other.call(plain.HOLD, 40 << 20)
            assert calc.call(plain.FAR, 4) == 8
    finally:
        here.domains.of(3 + 8).initmem_bytes = 0


COUNTING = """
import ctypes, sys
import numpy as np
import fastrpc
from fastrpc import remote_arg, remote_handle64
from fastrpc.c_library import prepared
from hbrt.native.files import library

invoke = ctypes.CDLL(str(library("libcdsprpc.so"))).remote_handle64_invoke
invoke.argtypes = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
handle = remote_handle64()
assert fastrpc.remote_handle_open("calc", handle) == 0
block, x, y = fastrpc.from_array(np.array([4, 4, 2, 0, 0], np.uint32)), fastrpc.empty(4), fastrpc.empty(2)
given = (remote_arg * 4)()
for one, array in zip(given, (block, x, x, y)):
    one.buf.pv, one.buf.nLen = array.__array_interface__["data"][0], array.nbytes
for number in range(1, 20):
    assert invoke(handle.value, 0x02030100, ctypes.addressof(given)) == 0
    assert fastrpc.statistics()[:2] == (number, 4 * number)
more = fastrpc.empty(4)  # all messages are forgotten, and lent again
(lent,) = prepared._lent.values()
for number in range(5):
    assert invoke(handle.value, 0x02030100, ctypes.addressof(given)) == 0
    assert sum(one.calls for one in lent._places) == number
assert fastrpc.statistics().calls == 24
"""


def test_calls_of_the_library_are_counted_at_once(dsp_board: Board) -> None:
    paths = dsp_board.session.link.paths
    mine = {**os.environ, "HBRT_HOME": str(paths.path.parent), "HBRT_BOARD": paths.name}
    # In its own process: the library keeps its board to the end.
    subprocess.run([sys.executable, "-c", COUNTING], check=True, env=mine, timeout=PATIENCE_S)


def test_a_board_without_a_dsp_has_no_domain(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dsp_board.session.link, "core_count", 0)
    assert code_of(Calc) == Aee.AEE_ECONNREFUSED
    question = types.remote_dsp_capability(3, 0, 1)
    assert fastrpc.remote_handle_control(types.DSPRPC_GET_DSP_INFO, question, 12) == 0
    assert question.capability == 0
    question.attribute_ID = 9
    assert fastrpc.remote_handle_control(types.DSPRPC_GET_DSP_INFO, question, 12) == Aee.AEE_EBADPARM
