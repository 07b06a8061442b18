"""An image with an interface that is written by hand."""

import ctypes
import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsp_server import hb_dsp_env_init, hb_dsp_start
from dsp_server.fastrpc import DspQueue, Skeleton
from fastrpc.wire.aee import AeeError
from fastrpc.wire.marshal import IN, INROUT, ROUT, SEQUENCE, STRING, VALUE, Method, Param

FORWARD = Method(
    "forward",
    2,
    Param("input_buf", IN, SEQUENCE, ctypes.c_uint8),
    Param("weight_buf", IN, SEQUENCE, ctypes.c_uint8),
    Param("output_buf", ROUT, SEQUENCE, ctypes.c_uint8),
    Param("svd_unit", IN, VALUE, ctypes.c_int32),
    Param("hidden_unit", IN, VALUE, ctypes.c_int32),
)
COUNT = Method("count", 3, Param("calls", ROUT, VALUE, ctypes.c_int64))
GREET = Method("greet", 4, Param("name", IN, STRING), Param("text", ROUT, STRING))
SCALE = Method(
    "scale", 5, Param("values", INROUT, SEQUENCE, ctypes.c_float), Param("factor", INROUT, VALUE, ctypes.c_float)
)
FAIL = Method("fail", 6, Param("code", IN, VALUE, ctypes.c_int32))
FAR = Method("far", 40, Param("value", IN, VALUE, ctypes.c_int32), Param("twice", ROUT, VALUE, ctypes.c_int32))
CRASH = Method("crash", 7)
QUEUE = Method("queue", 8, Param("number", IN, VALUE, ctypes.c_uint64))
HOLD = Method("hold", 9, Param("size_bytes", IN, VALUE, ctypes.c_uint32))
CLOSE_ALL = Method("close_all", 10)
METHODS = {one.number: one for one in (FORWARD, COUNT, GREET, SCALE, FAIL, FAR, CRASH, QUEUE, HOLD, CLOSE_ALL)}


class Calc(Skeleton):
    """All forms of parameters."""

    INTERFACE = "calc"
    METHODS: ClassVar[dict[int, Method]] = METHODS

    def __init__(self) -> None:
        self.calls = 0
        self.held: list[bytearray] = []

    def forward(
        self,
        input_buf: NDArray[Any],
        weight_buf: NDArray[Any],
        output_buf: NDArray[Any],
        svd_unit: int,
        hidden_unit: int,
    ) -> None:
        self.calls += 1
        total = int(input_buf.sum()) + int(weight_buf.sum())
        output_buf[:] = np.arange(len(output_buf)) + total + svd_unit * hidden_unit

    def count(self) -> int:
        return self.calls

    def greet(self, name: str) -> str:
        return f"Hello, {name}"

    def scale(self, values: NDArray[Any], factor: float) -> float:
        values *= factor
        return factor + 1

    def fail(self, code: int) -> None:
        if code == 99:
            raise ValueError("a mistake of the method")
        raise AeeError(code, f"asked to fail with {code}")

    def far(self, value: int) -> int:
        return 2 * value

    def crash(self) -> None:
        os.abort()

    def close_all(self) -> None:
        os.closerange(0, 64)

    def hold(self, size_bytes: int) -> None:
        self.held.append(bytearray(size_bytes))

    def queue(self, number: int) -> None:
        DspQueue(number, echo)


class Other(Calc):
    """Another interface of the same process domain."""

    INTERFACE = "other_calc"


def echo(queue: DspQueue, message: bytes, buffers: list[memoryview]) -> None:
    if message == b"crash":
        os.abort()
    for one in buffers:
        one[0] += 1
    queue.write(message[::-1])


def main() -> None:
    hb_dsp_env_init()
    Calc.register()
    Other.register()
    hb_dsp_start()
