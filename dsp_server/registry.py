"""Command number -> op. There is one dict; every registration, by macro or call, goes through ``register``.

Ranges (J5, DSP runtime API manual): 0x0000-0x03ff framework (0 is PING), 0x0400-0x07ff NN, 0x0800-0x0fff CV,
0x1000-0xffff custom, of which 0xffff (BUTT) is reserved for the list of commands. A user's op may take an NN or CV
number, as softmax does in the vendor's template; the later registration wins and logs that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, cast

from hbrt.borders.printable import printable
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_CV_B, HB_DSP_RPC_CMD_CV_E, HB_DSP_RPC_CMD_NN_B

Op: TypeAlias = Callable[[memoryview, memoryview, Any], int]


class RegistrationError(ValueError):
    """A registration breaks a rule; the message has the command, the op and the rule."""


class Registration:
    """One command: its op (or where to import it from on first use), its name, and its latency budget."""

    __slots__ = ("cmd", "last_ns", "latency_us", "name", "op", "runs", "source")

    def __init__(self, cmd: int, name: str, source: str, latency_us: int, op: Op | None) -> None:
        self.cmd = cmd
        self.name = name
        self.source = source
        self.latency_us = latency_us
        self.op = op
        self.last_ns = 0  # duration of its last run
        self.runs = 0  # how many times it has returned

    def resolve(self) -> Op:
        """Return the op, importing it on first use, so that heavy libraries load only in cores that need them."""
        if self.op is None:
            module, _, attribute = self.source.partition(":")
            self.op = cast("Op", getattr(import_module(module), attribute))
        return self.op


def range_name(cmd: int) -> str:
    """Return the owner of a command number: framework, nn, cv or custom."""
    if cmd < HB_DSP_RPC_CMD_NN_B:
        return "framework"
    if cmd < HB_DSP_RPC_CMD_CV_B:
        return "nn"
    return "cv" if cmd <= HB_DSP_RPC_CMD_CV_E else "custom"


class Registry:
    """One core's registered commands."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """``say`` receives a sentence when a registration replaces another."""
        self.by_cmd: dict[int, Registration] = {}
        self.on_put: Callable[[Registration], None] = lambda _: None  # set by a core that is already serving
        self._say = say

    def register(self, cmd: int, op: Op, latency_us: int = 0) -> None:
        """Register an op for a command number; the later registration wins.

        Args:
            cmd: 0x400..0xfffe.
            op: Callable that takes (input, output, tm) and returns an int.
            latency_us: Time budget for one run in microseconds; 0 for the board's default.

        Raises:
            RegistrationError: a reserved or invalid number, not callable, wrong arity, or invalid latency.
        """
        name = printable(str(getattr(op, "__name__", type(op).__name__)))
        _check_number(cmd, name)
        if not callable(op):
            raise RegistrationError(
                f"Command {cmd:#x} was given {op!r}, which is not callable. Pass the op itself: a function "
                "op(input, output, tm) -> int."
            )
        _check_arity(cmd, name, op)
        if type(latency_us) is not int or not 0 <= latency_us < 1 << 32:
            raise RegistrationError(
                f"Command {cmd:#x} ({name}) has the latency {latency_us!r}; it must be a whole number of microseconds, "
                "0 for the board's default."
            )
        self._put(Registration(int(cmd), name, _source_of(op), latency_us, op))

    def register_lazy(self, cmd: int, name: str, source: str, latency_us: int = 0) -> None:
        """Register an op as ``module:attribute``; it is imported when the command is first called."""
        _check_number(cmd, name)
        self._put(Registration(int(cmd), name, source, latency_us, None))

    def _put(self, new: Registration) -> None:
        old = self.by_cmd.get(new.cmd)
        if old is not None:
            self._say(f"Command {new.cmd:#x}: {new.name} ({new.source}) replaces {old.name} ({old.source}).")
        self.by_cmd[new.cmd] = new
        self.on_put(new)

    def get(self, cmd: int) -> Registration | None:
        """Return the registration of a command, or None."""
        return self.by_cmd.get(cmd)

    def listing(self) -> list[Registration]:
        """Return all registrations, sorted by command number."""
        return [self.by_cmd[cmd] for cmd in sorted(self.by_cmd)]


def _check_number(cmd: int, name: str) -> None:
    if isinstance(cmd, bool) or not isinstance(cmd, int):
        raise RegistrationError(f"The command of {name} is {cmd!r}; a command must be an integer, such as 0x1000.")
    if not 0 <= cmd <= HB_DSP_RPC_CMD_BUTT:
        raise RegistrationError(f"Command {cmd:#x} of {name} is outside 0x0..0xffff; custom ops take 0x1000..0xfffe.")
    if cmd < HB_DSP_RPC_CMD_NN_B:
        raise RegistrationError(
            f"Command {cmd:#x} of {name} is in the framework's reserved range 0x0..0x3ff; custom ops "
            "take 0x1000..0xfffe."
        )
    if cmd == HB_DSP_RPC_CMD_BUTT:
        raise RegistrationError(f"Command 0xffff of {name} is reserved for the list of commands. Use 0x1000..0xfffe.")


def _check_arity(cmd: int, name: str, op: Op) -> None:
    import inspect  # takes a few ms, which images without their own ops need not pay

    try:
        signature = inspect.signature(op)
    except (TypeError, ValueError):
        return  # a builtin without a signature: calling it will tell
    try:
        signature.bind(None, None, None)
    except TypeError as error:
        raise RegistrationError(
            f"Command {cmd:#x}: {name}{signature} cannot be called as op(input, output, tm): {error}."
        ) from None


def _source_of(op: Op) -> str:
    if isinstance(source := getattr(op, "source", None), str):
        return source
    while (wrapped := getattr(op, "__wrapped__", None)) is not None:
        op = wrapped
    code = getattr(op, "__code__", None)
    if code is None:
        return getattr(op, "__module__", None) or type(op).__name__
    return f"{code.co_filename}:{code.co_firstlineno}"
