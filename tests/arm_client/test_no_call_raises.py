"""No C name raises whatever it is given: each answers with an int (the two that describe, with a text)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import arm_client as hb

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip
    from tests.shared import Shell

pytestmark = pytest.mark.dsp_board(image="images/ops.py")


class Hostile:
    """Answers everything with an exception."""

    def __getattribute__(self, name: str) -> Any:
        raise ArithmeticError(name)

    def __repr__(self) -> str:
        raise ArithmeticError("repr")

    def __index__(self) -> int:
        raise ArithmeticError("index")

    def __float__(self) -> float:
        raise ArithmeticError("float")

    def __eq__(self, other: object) -> bool:
        raise ArithmeticError("eq")

    def __hash__(self) -> int:
        raise ArithmeticError("hash")


SMALL = st.integers(-3, 4096)  # never an address: writing there would be a crash, as in C
ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=40),
    st.builds(bytearray, st.binary(max_size=40)),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.integers(), st.none(), max_size=1),
    st.builds(object),
    st.builds(Hostile),
    st.sampled_from([int, len, hb, ..., np.float32(1), np.zeros(3), np.zeros((2, 0)), np.array("x", object), 1j]),
    st.sampled_from([hb.Status.HB_DSP_TIMEOUT, hb.HB_DSP_CORE_1, hb.hbSysMem, ctypes.c_int(7), ctypes.c_double(1)]),
    st.builds(hb.hbSysMem),
    st.builds(hb.hbSysMem, st.integers(0, 2**64 - 1), st.none(), st.integers(0, 2**32 - 1)),
    st.builds(hb.hbDSPTask_t, st.integers(0, 2**64 - 1)),
    st.builds(hb.hbDSPRpcCtrlParam, *[st.integers(-(2**31), 2**31 - 1)] * 6),
    st.builds(ctypes.POINTER(hb.hbSysMem)),
    st.builds(lambda: ctypes.pointer(hb.hbSysMem())),
    st.builds(lambda: ctypes.byref(hb.hbDSPTask_t())),
    st.builds(hb.hbSysMem * 0),
    st.builds(ctypes.c_void_p),
)


def has_bounds(buffer: object) -> bool:
    """Not a pointer: how many bytes are behind one, only the caller knows, and these have few."""
    return type(buffer).__name__ not in {"CArgObject", "LP_hbSysMem"}


NUMBERS = st.integers() | SMALL
CALLS: dict[Callable[..., Any], tuple[st.SearchStrategy[Any], ...]] = {
    hb.hbSysAllocMem: (ANYTHING, ANYTHING | SMALL),
    hb.hbSysAllocCachedMem: (ANYTHING, ANYTHING | SMALL),
    hb.hbSysFlushMem: (ANYTHING, ANYTHING | NUMBERS),
    hb.hbSysFreeMem: (ANYTHING,),
    hb.hbSysWriteMem: (ANYTHING, ANYTHING.filter(has_bounds), ANYTHING | NUMBERS),
    hb.hbSysReadMem: (ANYTHING.filter(has_bounds), ANYTHING, ANYTHING | NUMBERS),
    hb.hbSysRegisterMem: (ANYTHING,),
    hb.hbSysUnregisterMem: (ANYTHING,),
    hb.hbDSPRpc: (ANYTHING, ANYTHING, ANYTHING, ANYTHING),
    hb.hbDSPWaitTaskDone: (ANYTHING | NUMBERS, ANYTHING | NUMBERS),
    hb.hbDSPReleaseTask: (ANYTHING | NUMBERS,),
    hb.hbDSPSetTaskDoneCb: (ANYTHING | NUMBERS, ANYTHING, ANYTHING),
}


@pytest.fixture
def made(chip: Chip) -> Iterator[Callable[[Any], None]]:
    """Takes what a call was given, and frees or releases what it was made into."""

    def clean(given: Any) -> None:
        if type(given) is hb.hbSysMem and given.virAddr:
            assert hb.hbSysFreeMem(given) == 0
        elif type(given) is hb.hbDSPTask_t and given.value:
            hb.hbDSPReleaseTask(given)

    yield clean
    for block in chip.board.session.blocks.owned():  # those behind pointers, which nobody can reach any more
        chip.board.session.blocks.free(block.phy_addr)
    for handle in chip.board.session.tasks.live_handles():
        chip.board.session.tasks.release(handle)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_with_a_status(
    chip: Chip, made: Callable[[Any], None], call: Callable[..., int], data: st.DataObject
) -> None:
    arguments = data.draw(st.tuples(*CALLS[call]))
    status = call(*arguments)
    assert type(status) is int
    if status:
        assert hb.last_error()
        assert hb.hbDSPGetErrorDesc(status)
    for argument in arguments:
        made(argument)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_wrong_argument_among_right_ones(
    chip: Chip, made: Callable[[Any], None], call: Callable[..., int], data: st.DataObject
) -> None:
    mem, task = chip.mem(64), chip.rpc(hb.HB_DSP_RPC_CMD_PING)
    right: dict[Callable[..., Any], list[Any]] = {
        hb.hbSysAllocMem: [hb.hbSysMem(), 64],
        hb.hbSysAllocCachedMem: [hb.hbSysMem(), 64],
        hb.hbSysFlushMem: [mem, 2],
        hb.hbSysFreeMem: [mem],
        hb.hbSysWriteMem: [mem, bytearray(64), 64],
        hb.hbSysReadMem: [bytearray(64), mem, 64],
        hb.hbSysRegisterMem: [mem],
        hb.hbSysUnregisterMem: [mem],
        hb.hbDSPRpc: [hb.hbDSPTask_t(), mem, mem, chip.ctrl(hb.HB_DSP_RPC_CMD_PING)],
        hb.hbDSPWaitTaskDone: [task, 1000],
        hb.hbDSPReleaseTask: [task],
        hb.hbDSPSetTaskDoneCb: [task, lambda *_: None, None],
    }
    arguments = right[call]
    place = data.draw(st.integers(0, len(arguments) - 1))
    arguments[place] = data.draw(CALLS[call][place])
    assert type(call(*arguments)) is int
    for argument in arguments:
        if argument is not mem:
            made(argument)
    hb.hbDSPReleaseTask(task)
    if mem.virAddr:
        assert hb.hbSysFreeMem(mem) == 0


@given(code=ANYTHING | NUMBERS)
def test_descriptions_are_texts(code: Any) -> None:
    assert isinstance(hb.hbDSPGetErrorDesc(code), str)
    assert isinstance(hb.hbDSPGetVersion(), str)
    assert hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(code) is None  # type: ignore[func-returns-value]


ATTACH = """
import resource, sys
import arm_client as hb
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
mem, task, ctrl = hb.hbSysMem(), hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
print(hb.hbSysAllocMem(mem, 8) == hb.HB_SYS_NOT_RUNNING, hb.last_error())
print(hb.hbDSPRpc(task, None, None, ctrl) == hb.HB_DSP_NOT_RUNNING, hb.last_error())
"""


@pytest.mark.parametrize(
    ("home", "limit", "why"),
    [
        ("a file", 0, "Cannot read board {home}/default: Not a directory."),
        (
            "a directory",
            40,
            "A board needs at least 128 file descriptors per process, but this process may have 40: ",
        ),
        ("a directory", 5, ""),
    ],
)
def test_a_board_that_cannot_be_attached_to_is_a_status(shell: Shell, home: str, limit: int, why: str) -> None:
    place = shell.cwd / "home"
    place.touch() if home == "a file" else place.mkdir()
    shell.environment["HBRT_HOME"] = str(place)
    answer = shell.python("-c", ATTACH, limit)
    assert answer.stderr == ""
    lines = answer.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"True {why.format(home=place)}") and len(line) > 20 for line in lines)
