"""The claim lock while its holder does not release it: stopped, or dead with nobody that could take the lock back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hbrt.ddr import claim_lock
from hbrt.ddr.claim_lock import ClaimLock, ClaimLockBrokenError, ClaimLockError, ClaimLockHeldError
from hbrt.ddr.file import Ddr
from hbrt.ddr.lock_holder import Holder, holder
from hbrt.errors import RequestRefusedError
from tests.lock_holders import BREAK_ROBUST_LIST

HOLDER = """
import sys
from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.file import Ddr
ddr = Ddr(int(sys.argv[1]))
lock = ClaimLock(ddr.map)
with lock:
    print("held", flush=True)
    sys.stdin.readline()
"""
DYING = f"""
import os, sys
from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.file import Ddr
ddr = Ddr(int(sys.argv[1]))
ClaimLock(ddr.map).__enter__()
{BREAK_ROBUST_LIST}
print("held", flush=True)
os._exit(0)
"""


@pytest.fixture
def ddr() -> Iterator[Ddr]:
    made = Ddr.create(1 << 16, 1)
    yield made
    made.close()


@contextmanager
def holding(ddr: Ddr, program: str = HOLDER) -> Iterator[subprocess.Popen[str]]:
    os.set_inheritable(ddr.fd, True)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(ddr.fd)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[ddr.fd],
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_who_waits_for_a_stopped_holder_gives_up_and_is_told_who_it_is(ddr: Ddr) -> None:
    lock = ClaimLock(ddr.map)
    with holding(ddr) as process:
        assert lock.why_held() == ""  # whoever runs releases it soon
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        with pytest.raises(ClaimLockHeldError) as refused, lock:
            pass
        assert f"is held by process {process.pid} (python" in str(refused.value)
        assert "which is stopped by a signal (SIGSTOP) or a debugger" in str(refused.value)
        assert f"'kill -CONT {process.pid}' resumes it, 'kill -9 {process.pid}' ends it" in str(refused.value)
        assert lock.why_held() == str(refused.value)
        assert isinstance(refused.value, RequestRefusedError)
        answers = iter([False, False, True])
        with pytest.raises(ClaimLockHeldError):
            lock.acquire_slowly(lock.try_acquire(lock.handle), lambda: next(answers))
        assert list(answers) == []
    with lock:  # its holder was killed: the kernel gave the lock back
        assert lock.thread
    assert lock.thread == 0


def test_who_was_given_up_is_not_waited_for_again_until_a_while_has_passed(
    ddr: Ddr, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, slices = ClaimLock(ddr.map), []
    timed = claim_lock._patient.pthread_mutex_timedlock

    class Counted:
        def pthread_mutex_timedlock(self, *arguments: object) -> int:
            slices.append(arguments)
            code: int = timed(*arguments)
            return code

    monkeypatch.setattr(claim_lock, "_patient", Counted())
    monkeypatch.setattr(claim_lock, "GIVEN_UP_SECONDS", 3600.0)

    def refused() -> int:
        slices.clear()
        with pytest.raises(ClaimLockHeldError), lock:
            pass
        return len(slices)

    with holding(ddr) as process:
        os.kill(process.pid, signal.SIGSTOP)
        assert refused() > 1
        assert refused() == 0
        lock._given_up = (lock._given_up[0], 0.0)  # the while has passed
        assert refused() > 1


def test_a_lock_of_a_dead_holder_that_the_kernel_did_not_find_is_let_go(ddr: Ddr) -> None:
    lock = ClaimLock(ddr.map)
    with holding(ddr, DYING) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        gone = holder(lock.thread)
        assert gone.has_gone
        with pytest.raises(ClaimLockHeldError, match=f"held by thread {process.pid}, which has ended"), lock:
            pass
        assert "which has ended" in lock.why_held()

        def wait() -> int:
            lock.acquire_slowly(lock.try_acquire(lock.handle), lambda: False)
            code: int = lock.release(lock.handle)
            return code

        with ThreadPoolExecutor(2) as others:
            waiting = [others.submit(wait) for _ in range(2)]
            assert lock.disown(gone)
            assert [each.result() for each in waiting] == [0, 0]
        assert not lock.disown(gone)
    assert lock.thread == 0


def test_nothing_is_taken_from_a_holder_that_lives(ddr: Ddr) -> None:
    lock = ClaimLock(ddr.map)
    with holding(ddr) as process:
        assert not lock.disown(holder(process.pid))
        assert not lock.disown(Holder(1 << 22, 0, "", ""))  # another one
        assert lock.thread == process.pid
    with lock:
        pass
    assert not lock.disown(Holder(0, 0, "", ""))


def test_a_lock_that_cannot_be_recovered_is_an_error_of_the_family(ddr: Ddr) -> None:
    lock = ClaimLock(ddr.map)
    with holding(ddr):
        pass
    assert lock.try_acquire(lock.handle)  # inherited, and let go without having been made usable
    lock.release(lock.handle)
    with pytest.raises(ClaimLockBrokenError, match="restart the board") as refused, lock:
        pass
    assert isinstance(refused.value, ClaimLockError)


def test_signals_are_handled_while_it_is_waited_for(ddr: Ddr) -> None:
    lock = ClaimLock(ddr.map)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before: Callable[..., object] = signal.signal(signal.SIGALRM, interrupt)  # type: ignore[assignment]
    try:
        with holding(ddr):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                lock.acquire_slowly(lock.try_acquire(lock.handle), lambda: False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
