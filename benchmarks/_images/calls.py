"""The image of the benchmark: an op that does nothing, and an interface whose method does nothing."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server.fastrpc import Skeleton
from fastrpc.wire.marshal import IN, ROUT, SEQUENCE, Method, Param

if TYPE_CHECKING:
    from dsp_server.fastrpc import Arguments

OP_CMD = 0x1000
PASS = Method(
    "take",
    2,
    *(Param(name, IN, SEQUENCE, ctypes.c_uint8) for name in ("first", "second")),
    Param("third", ROUT, SEQUENCE, ctypes.c_uint8),
)


class Bench(Skeleton):
    """Takes two sequences and gives one, with their block four buffers."""

    INTERFACE = "bench"
    METHODS: ClassVar[dict[int, Method]] = {2: PASS}

    def take(self, first: Any, second: Any, third: Any) -> None:
        """Nothing."""


class Raw:
    """The same without its arguments as arrays: as a skeleton in C takes them."""

    def invoke(self, word: int, arguments: Arguments) -> int:  # noqa: ARG002 - as a skeleton has them
        """Nothing."""
        return 0 if len(arguments) == 4 else 1

    def close(self) -> None:
        """Nothing."""


def nothing(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001 - an op's signature
    """Nothing."""
    return 0


def main() -> None:
    """Serve them."""
    from dsp_server.fastrpc import register_interface

    hb_dsp_env_init()
    hb_dsp_register_fn(OP_CMD, nothing)
    Bench.register()
    register_interface("raw_skel_handle_invoke", lambda _: Raw())
    hb_dsp_start()
