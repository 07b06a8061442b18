"""Table of docs/hrt-model-exec.md: every flag, from the commands themselves."""

from __future__ import annotations

from collections.abc import Callable

import click

from arm_client.commands.model_exec.command import group
from tools.markdown import table

# Flags that the J5's tool does not have.
_LATER = "S series"
_OURS = "emulator"
_ORIGINS = {
    "perf_time_in_seconds": _LATER,
    "enable_warmup": _LATER,
    "statistic_cycle": _LATER,
    "input_valid_shape": _LATER,
    "task_priority": _LATER,
    "task_timeout": _LATER,
    "dump_path": _OURS,
    "json": _OURS,
    **dict.fromkeys(("sweep_threads", "sweep_rates", "until_spread", "all_models"), _OURS),
    **dict.fromkeys(("against", "cosine", "largest_error"), _OURS),
}


def flags() -> str:
    """Every flag once, with the subcommands that take it."""
    takers: dict[str, list[str]] = {}
    options: dict[str, click.Option] = {}
    for name, command in group.commands.items():
        for option in command.params:
            if isinstance(option, click.Option):
                long = option.opts[-1].removeprefix("--")
                takers.setdefault(long, []).append(name)
                options.setdefault(long, option)
    rows = []
    for name, option in options.items():
        defaults = {_default(command, name) for command in takers[name]}
        default = ", ".join(sorted(f"`{value}`" for value in defaults if value)) or "-"
        subcommands = "all" if len(takers[name]) == len(group.commands) else ", ".join(takers[name])
        rows.append((f"`{name}`", subcommands, default, _ORIGINS.get(name, "J5"), option.help))
    return table(("flag", "subcommands", "default", "known from", "meaning"), rows)


def _default(command: str, name: str) -> str:
    """A flag's default in one subcommand; empty when there is none to speak of."""
    for option in group.commands[command].params:
        if isinstance(option, click.Option) and f"--{name}" in option.opts and option.show_default:
            return str(option.default)
    return ""


PARTS: dict[str, Callable[[], str]] = {"model-exec-flags": flags}
