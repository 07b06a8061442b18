"""No call of the vendor's names raises: each returns a code, or its value for a failure, and keeps a sentence."""

from __future__ import annotations

import ctypes
import inspect
import mmap
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastrpc
from arm_client.client import Board
from fastrpc import Aee, asynchronous, calls, control, memory_calls

pytestmark = pytest.mark.dsp_board("images/plain.py")


class Hostile:
    """Answers everything with an exception."""

    def __getattribute__(self, name: str) -> Any:
        raise ArithmeticError(name)

    def __repr__(self) -> str:
        raise ArithmeticError("repr")

    def __index__(self) -> int:
        raise ArithmeticError("index")

    def __eq__(self, other: object) -> bool:
        raise ArithmeticError("eq")

    def __hash__(self) -> int:
        raise ArithmeticError("hash")


THINGS = [None, True, 1.5, "x", b"x", bytearray(3), [1], {}, object(), Hostile(), int, len, np.float32(1), np.zeros(3)]
THINGS += [np.array("x", object), ctypes.c_int(7), ctypes.c_double(1), (ctypes.c_char * 4)(), 1 << 70]
NUMBERS = [-3, -1, 0, 1, 7, 4096]  # where data is read, an address would be a crash, as in C
CALLS = [
    one
    for module in (memory_calls, calls, control, asynchronous)
    for name, one in vars(module).items()
    if name.startswith(("remote_", "rpcmem_", "fastrpc_"))
    and inspect.isfunction(one)
    and inspect.signature(one).parameters
    if one is not fastrpc.rpcmem_free
]


@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.__name__)
def test_whatever_it_is_given(dsp_board: Board, call: Callable[..., Any]) -> None:
    chosen = random.Random(call.__name__)
    names = list(inspect.signature(call).parameters)
    for _ in range(100):
        given = [chosen.choice(THINGS if name == "data" else THINGS + NUMBERS) for name in names]
        answer = call(*given)
        assert type(answer) is int
        if call.__name__.startswith("rpcmem_alloc") and answer:
            fastrpc.rpcmem_free(answer)
        elif answer:
            assert fastrpc.last_error()


def test_no_memory_is_freed_for_what_is_no_address(dsp_board: Board) -> None:
    memory = fastrpc.rpcmem_alloc(25, 1, 4096)
    for one in THINGS:
        fastrpc.rpcmem_free(one)  # type: ignore[arg-type]
    assert fastrpc.rpcmem_to_fd(memory) >= 0
    fastrpc.rpcmem_free(memory)


def test_an_array_is_its_address(dsp_board: Board) -> None:
    fd = os.memfd_create("buffer")
    os.ftruncate(fd, mmap.PAGESIZE)
    array = np.frombuffer(mmap.mmap(fd, mmap.PAGESIZE), np.uint8)
    assert fastrpc.remote_register_buf(array, array.size, fd) == 0  # type: ignore[arg-type]
    assert fastrpc.remote_register_buf(array.ctypes.data, array.size, -1) == 0
    assert fastrpc.remote_register_buf("array", array.size, fd) == Aee.AEE_EBADPARM  # type: ignore[arg-type]
    assert fastrpc.last_error() == "buf is 'array'; pass a number."
    os.close(fd)
