"""The tables of docs/cycles.md, the constants of j5, and of docs/profiles.md, all packaged profiles."""

from __future__ import annotations

from collections.abc import Callable

from hbrt.profiles.keys import KEYS
from hbrt.profiles.profile import Constant, find, packaged
from hbrt.settings import rounded
from tools.markdown import table

_OF_A_CHIP = ("cores.", "sram.", "npu.", "priority.", "limits.", "tcm.", "ddr.base")
_HEX = ("ddr.base", "sram.base")


def constants() -> str:
    """Every constant of j5: value, range, where it is from."""
    known = find("j5").constants
    rows = (
        (
            f"`{key}`",
            rule.help,
            f"{_value(key, known[key].value)} {rule.unit}".rstrip(),
            f"{_value(key, known[key].low)} to {_value(key, known[key].high)}" if known[key].is_assumed else "",
            f"assumed: {known[key].why}" if known[key].is_assumed else known[key].source,
        )
        for key, rule in KEYS.items()
        if key in known
    )
    return table(("constant", "what it is", "value", "range", "source"), rows)


def profiles() -> str:
    """A line each: name, cores, what it is."""
    known = [find(name) for name in packaged()]
    return table(
        ("profile", "board", "cores", "status names"),
        (
            (
                f"`{one.name}`",
                one.title,
                ", ".join(map(str, one.cores.values())),
                f"{min(one.codes).partition('_')[0]}, {len(one.codes)} of them" if one.codes else "HB",
            )
            for one in known
        ),
    )


def chips() -> str:
    """What differs between the chips: a line a constant, a column a profile; a question mark at what is assumed."""
    known = [find(name) for name in packaged()]
    rows = (
        (
            f"`{key}`",
            f"{rule.help}{f', in {rule.unit}' if rule.unit else ''}",
            *(_cell(key, one.constants.get(key)) if rule.of in {"", *one.cores} else "" for one in known),
        )
        for key, rule in KEYS.items()
        if key.startswith(_OF_A_CHIP)
    )
    return table(("constant", "what it is", *(one.name for one in known)), rows)


def _cell(key: str, one: Constant | None) -> str:
    return "" if one is None else f"{_value(key, one.value)}{' ?' if one.is_assumed else ''}"


def _value(key: str, value: float) -> str:
    return f"{int(value):#x}" if key in _HEX else rounded(value, 12)


PARTS: dict[str, Callable[[], str]] = {"profile": constants, "profiles": profiles, "chips": chips}
