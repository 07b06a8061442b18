"""A program that is short of file descriptors: ``python -m tests.arm_client.session.few_descriptors LIMIT...``.

For each limit of open files, its own process calls the C names and the Python ones; then once more with room, and
once more with the board in hand and not one descriptor left. Prints a line for each, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator

import arm_client as hb

SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
Refused = list[tuple[str, int, str]]


@contextlib.contextmanager
def limit(most: int) -> Iterator[None]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, HARD))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))


def none_left() -> contextlib.AbstractContextManager[None]:
    lowest = os.dup(0)
    os.close(lowest)
    return limit(lowest)


def c_names() -> Refused:
    """What refuses of the C names that a program calls."""
    refused: Refused = []

    def good(call: Callable[..., int], *args: object) -> bool:
        status = call(*args)
        if status:
            refused.append((call.__name__, status, hb.last_error()))
        return not status

    mem, ctrl, task = hb.hbSysMem(), hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
    submitted = good(hb.hbDSPRpc, task, None, None, ctrl)
    if good(hb.hbSysAllocCachedMem, mem, 64):
        again = hb.hbSysMem(mem.phyAddr, None, 64)
        if good(hb.hbSysRegisterMem, again):
            good(hb.hbSysUnregisterMem, again)
        good(hb.hbSysFlushMem, mem, hb.HB_SYS_MEM_CACHE_CLEAN)
        good(hb.hbSysFlushMem, mem, hb.HB_SYS_MEM_CACHE_INVALIDATE)
        good(hb.hbSysFreeMem, mem)
    if submitted:
        good(hb.hbDSPSetTaskDoneCb, task, lambda *_: None)
        good(hb.hbDSPWaitTaskDone, task, 0)
        good(hb.hbDSPReleaseTask, task)
    return refused


def python_names() -> Refused:
    """What the first Python name raises that does not go; what is no exception of hbrt's own gets through."""
    try:
        from arm_client import connect
    except ImportError as error:  # of a module of hbrt that cannot be opened
        return [("import", 0, str(error))]
    from arm_client.errors import BoardError, HbrtError

    try:
        with connect() as board:
            board.call(hb.HB_DSP_RPC_CMD_PING)
            board.empty(4)
            board.status()
    except (BoardError, HbrtError) as error:
        return [("connect", 0, str(error))]
    return []


def main(limits: list[int]) -> None:
    for most in limits:
        if os.fork():
            _, status = os.wait()
            if status:
                print(json.dumps({"most": most, "status": status}), flush=True)
            continue
        with limit(most):
            refused = c_names() + python_names()
        left = c_names() + python_names()
        hb.hbSysAllocMem(hb.hbSysMem(), 64)  # keeps the board in hand
        c_names()
        with none_left():
            left += c_names()
        print(json.dumps({"most": most, "refused": refused, "left": left}), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main([int(most) for most in sys.argv[1:]])
