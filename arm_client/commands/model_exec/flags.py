"""The manner of gflags for a click command: ``--flag=value``, ``-flag value``, ``--bool``, ``--nobool``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
_WORDS |= {"false": False, "f": False, "no": False, "n": False, "0": False}

_S_SERIES = {
    "enable_mem_lru": "no memory is kept for models that do not run",
    "input_stride": "a picture's stride follows from its width",
    "input_img_properties": "an NV12 picture is one input, not one for Y and one for UV",
    "log_level": "set HB_DNN_LOG_LEVEL",
}
"""Flags of the board's tool on the S series that have no counterpart on a J5, and why."""


def as_click(arguments: list[str], booleans: Collection[str]) -> list[str]:
    """Arguments as gflags takes them, in the form that click takes.

    One dash before a long name becomes two, ``--noname`` of a boolean becomes ``--name=false``, and a boolean without a
    value becomes ``--name=true``. Anything other than a flag is left unchanged.

    Args:
        arguments: After the subcommand.
        booleans: Names of the boolean flags.
    """
    result: list[str] = []
    for at, argument in enumerate(arguments):
        if argument == "--":
            return result + arguments[at:]
        name, equals, value = argument.lstrip("-").partition("=")
        if not argument.startswith("-") or len(name) < 2 or name[0].isdigit():
            result.append(argument)
        elif name in booleans and not equals:
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            result.append(f"--{name}" if following.lower() in _WORDS else f"--{name}=true")
        elif not equals and name.startswith("no") and name[2:] in booleans:
            result.append(f"--{name[2:]}=false")
        else:
            result.append(f"--{name}{equals}{value}")
    return result


class BooleanOption(click.Option):
    """An option that is true or false."""


def _to_bool(_ctx: click.Context, _param: click.Parameter, value: Any) -> bool:
    word = value if isinstance(value, bool) else _WORDS.get(str(value).lower())
    if word is None:
        raise click.BadParameter(f"Invalid boolean {value!r}: expected true or false.")
    return word


class FlagCommand(click.Command):
    """A command whose flags follow gflags syntax. The last of several wins, as there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Translate, then parse."""
        booleans = {param.name for param in self.params if isinstance(param, BooleanOption) and param.name}
        try:
            return super().parse_args(ctx, as_click(args, booleans))
        except click.NoSuchOption as error:
            why = _S_SERIES.get(error.option_name.lstrip("-"))
            if why is None:
                raise
            message = f"{error.option_name} is a flag of the S series, and this is a J5: {why}. Leave the flag out."
            raise click.UsageError(message, ctx) from None


def flag(name: str, type: Any, default: Any, text: str, **more: Any) -> Callable[[F], F]:
    """An option ``--name`` that shows its default, if it has one; the function gets ``name``."""
    if default is not None:  # click takes a None for a value that was given
        more |= {"default": default, "show_default": default != ""}
    return click.option(f"--{name}", name, type=type, help=text, **more)


def boolean_flag(name: str, text: str, *, default: bool = False) -> Callable[[F], F]:
    """An option that is true or false."""
    word = "true" if default else "false"
    return flag(name, str, word, text, cls=BooleanOption, callback=_to_bool, metavar="[true|false]")


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Positive numbers separated by commas.

    Args:
        kind: int or float.
        most: The largest.
    """

    name = "numbers"

    def __init__(self, kind: type[int | float], most: float) -> None:
        self._kind, self._most = kind, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """The numbers, in their order."""
        if isinstance(value, list):
            return value
        try:
            numbers = [self._kind(word) for word in value.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not all(0 < number <= self._most for number in numbers):
            what = "integers" if self._kind is int else "numbers"
            self.fail(f"{value!r}: write {what} above 0, up to {self._most:,}, separated by commas.", param, ctx)
        return numbers
