"""Registrations: which are allowed, which rule each of the others breaks, and what the last one wins."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable
from typing import Any

import pytest

from dsp_server.registry import Registration, RegistrationError, Registry, range_name
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX
from tests.each import each


def op(input: memoryview, output: memoryview, tm: object) -> int:
    return 0


def two(input: memoryview, output: memoryview) -> int:
    return 0


def four(input: memoryview, output: memoryview, tm: object, more: object) -> int:
    return 0


def with_default(input: memoryview, output: memoryview, tm: object, more: int = 1) -> int:
    return more


def keyword_only(input: memoryview, output: memoryview, tm: object, *, more: int) -> int:
    return more


class Method:
    def run(self, input: memoryview, output: memoryview, tm: object) -> int:
        return len(input) + len(output) + bool(tm)

    __call__ = run


@functools.wraps(op)
def wrapper(*arguments: Any) -> int:
    return op(*arguments)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def registry(said: list[str]) -> Registry:
    return Registry(said.append)


@pytest.mark.parametrize("cmd", [0x400, 0x7FF, 0x800, 0xFFF, 0x1000, 0xFFFE, HB_DSP_RPC_CMD_NN_SOFTMAX])
def test_numbers_of_ops(registry: Registry, cmd: int) -> None:
    registry.register(cmd, op)
    found = registry.get(cmd)
    assert found is not None
    assert (found.cmd, found.name, found.latency_us, found.resolve()) == (cmd, "op", 0, op)
    assert type(found.cmd) is int


@pytest.mark.parametrize(
    "good",
    [
        op,
        with_default,
        Method().run,
        Method(),
        wrapper,
        lambda *arguments: len(arguments),
        functools.partial(four, more=1),
        max,
    ],
    ids=lambda good: getattr(good, "__name__", type(good).__name__),
)
def test_callables_that_take_three_arguments(registry: Registry, good: Callable[..., int]) -> None:
    registry.register(0x1000, good, 250)
    assert registry.listing()[0].latency_us == 250
    assert registry.listing()[0].source


BROKEN: tuple[tuple[object, object, object, str], ...] = (
    (0x0, op, 0, "Command 0x0 of op is in the framework's reserved range 0x0..0x3ff; custom ops take 0x1000..0xfffe."),
    (0x3FF, op, 0, "Command 0x3ff of op is in the framework's reserved range 0x0..0x3ff;"),
    (0xFFFF, op, 0, "Command 0xffff of op is reserved for the list of commands. Use 0x1000..0xfffe."),
    (0x10000, op, 0, "Command 0x10000 of op is outside 0x0..0xffff; custom ops take 0x1000..0xfffe."),
    (-1, op, 0, "Command -0x1 of op is outside 0x0..0xffff;"),
    ("0x1000", op, 0, "The command of op is '0x1000'; a command must be an integer, such as 0x1000."),
    (4096.0, op, 0, "The command of op is 4096.0; a command must be an integer, such as 0x1000."),
    (True, op, 0, "The command of op is True; a command must be an integer, such as 0x1000."),
    (0x1000, 5, 0, "Command 0x1000 was given 5, which is not callable. Pass the op itself: a function op(input, outp"),
    (0x1000, op(memoryview(b""), memoryview(b""), None), 0, "Command 0x1000 was given 0, which is not callable."),
    (0x1000, two, 0, "Command 0x1000: two(input: 'memoryview', output: 'memoryview') -> 'int' cannot be called as op("),
    (0x1000, four, 0, "Command 0x1000: four("),
    (0x1000, keyword_only, 0, "Command 0x1000: keyword_only("),
    (0x1000, Method.run, 0, "Command 0x1000: run(self, "),
    (
        0x1000,
        op,
        -1,
        "Command 0x1000 (op) has the latency -1; it must be a whole number of microseconds, 0 for the board's d",
    ),
    (0x1000, op, 1 << 32, "Command 0x1000 (op) has the latency 4294967296;"),
    (0x1000, op, 1.5, "Command 0x1000 (op) has the latency 1.5;"),
    (0x1000, op, True, "Command 0x1000 (op) has the latency True;"),
    (0x1000, op, None, "Command 0x1000 (op) has the latency None;"),
)


@pytest.mark.parametrize(("cmd", "function", "latency", "text"), BROKEN, ids=[row[3][:45] for row in BROKEN])
def test_registration_that_breaks_a_rule_names_it_and_registers_nothing(
    registry: Registry, cmd: Any, function: Any, latency: Any, text: str
) -> None:
    with pytest.raises(RegistrationError) as caught:
        registry.register(cmd, function, latency)
    assert str(caught.value).startswith(text)
    assert registry.listing() == []


def test_later_registration_wins_and_says_so(registry: Registry, said: list[str]) -> None:
    registry.register_lazy(0x400, "softmax", "dsp_server.ops.nn.softmax:softmax")
    assert said == []
    registry.register(0x400, op)
    found = registry.get(0x400)
    assert found is not None
    assert found.op is op
    assert said == [f"Command 0x400: op ({found.source}) replaces softmax (dsp_server.ops.nn.softmax:softmax)."]
    assert found.source.endswith(f"test_registry.py:{op.__code__.co_firstlineno}")


def test_wrapped_op_is_listed_where_it_is_written(registry: Registry) -> None:
    registry.register(0x1000, wrapper)
    assert registry.listing()[0].source.endswith(f":{op.__code__.co_firstlineno}")


def test_packaged_op_is_imported_when_it_is_first_called() -> None:
    lazy = Registration(0x1000, "join", "posixpath:join", 0, None)
    assert lazy.op is None
    resolved: object = lazy.resolve()
    assert resolved is posixpath.join
    assert lazy.op is resolved


def test_listing_is_by_number(registry: Registry) -> None:
    for cmd in (0x2000, 0x400, 0x1000):
        registry.register(cmd, op)
    assert [row.cmd for row in registry.listing()] == [0x400, 0x1000, 0x2000]
    assert registry.get(0x401) is None


@each(
    "cmd, name",
    [
        (0x0, "framework"),
        (0x3FF, "framework"),
        (0x400, "nn"),
        (0x7FF, "nn"),
        (0x800, "cv"),
        (0xFFF, "cv"),
        (0x1000, "custom"),
        (0xFFFF, "custom"),
    ],
)
def test_range_of_a_number(cmd: int, name: str) -> None:
    assert range_name(cmd) == name
