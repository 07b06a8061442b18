"""The names of the vector intrinsics, from the comments ``//!`` of the headers that define them.

A line is ``//! NAME(arguments) | meaning | source``. Braces in a name stand for alternatives (``{U,}``), for a range
(``{1..31}``) or for a set named by a line ``//! each: SET = a,b,c``. ``//! family: TITLE`` begins a table of
docs/ivp.md, and any other line is a sentence above it.

native/build.py runs this file, for the header that defines each name as a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

HEADERS = Path(__file__).resolve().parent / "include" / "dsp"
NAMES_H = HEADERS / "hbrt" / "ivp" / "names.h"
_BRACES = re.compile(r"\{([^{}]*)\}")


class Line(NamedTuple):
    """One line of a header: a name pattern, the arguments, the meaning, and the source."""

    family: str
    pattern: str
    arguments: str
    meaning: str
    source: str
    names: tuple[str, ...]


class Reference(NamedTuple):
    """Everything stated in the headers: lines in order, and the sentences above each family."""

    lines: tuple[Line, ...]
    sentences: dict[str, list[str]]

    @property
    def names(self) -> list[str]:
        """Every name, in order."""
        return [name for line in self.lines for name in line.names]


def headers() -> list[Path]:
    """The parts of <xtensa/tie/xt_ivpn.h>, in include order."""
    included = re.findall(r"#include <(hbrt/ivp/\w+\.h)>", (HEADERS / "xtensa/tie/xt_ivpn.h").read_text("utf-8"))
    return [HEADERS / name for name in included if not name.endswith("/names.h")]


def expanded(pattern: str) -> tuple[str, ...]:
    """Every name of a pattern, in order.

    Raises:
        ValueError: two names are the same, because an upper-case word in braces is not a set named by a line.
    """
    pieces = _BRACES.split(pattern)  # text, alternatives, text, ...
    choices = [[piece] if index % 2 == 0 else list(_alternatives(piece)) for index, piece in enumerate(pieces)]
    names = tuple("".join(name) for name in product(*choices))
    if len(set(names)) != len(names):
        raise ValueError(f"{pattern!r} names something twice.")
    return names


def _alternatives(piece: str) -> Iterator[str]:
    for choice in piece.split(","):
        first, dots, last = choice.partition("..")
        if dots:
            yield from (str(number) for number in range(int(first), int(last) + 1))
        else:
            yield choice


def read(paths: list[Path] | None = None) -> Reference:
    """Read the headers.

    Raises:
        ValueError: a line does not have three parts, or two lines define the same name.
    """
    sets: dict[str, str] = {}
    lines: list[Line] = []
    sentences: dict[str, list[str]] = {}
    family = ""
    for path in paths or headers():
        for comment in re.findall(r"^//! (.+)$", path.read_text("utf-8"), re.MULTILINE):
            if comment.startswith("family: "):
                family = comment.removeprefix("family: ")
                sentences.setdefault(family, [])
            elif comment.startswith("each: "):
                name, _, members = comment.removeprefix("each: ").partition(" = ")
                sets[name] = members
            elif " | " not in comment:
                sentences[family].append(comment)
            else:
                lines.append(_line(family, comment, sets))
    names = [name for line in lines for name in line.names]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"Defined twice: {', '.join(sorted(twice))}.")
    return Reference(tuple(lines), sentences)


def _line(family: str, comment: str, sets: dict[str, str]) -> Line:
    parts = comment.split(" | ")
    if len(parts) != 3:
        raise ValueError(f"{comment!r} is not «name | meaning | source».")
    pattern, bracket, arguments = parts[0].partition("(")
    pattern = _BRACES.sub(
        lambda found: "{" + ",".join(sets.get(word, word) for word in found[1].split(",")) + "}", pattern
    )
    return Line(family, pattern, bracket + arguments, parts[1], parts[2], expanded(pattern))


def write_names(target: Path = NAMES_H) -> None:
    """Write names.h if it differs from the headers: a macro for each name, which expands to itself.

    Raises:
        OSError: the folder cannot be written.
    """
    lines = "".join(f"#define {name} {name}\n" for name in read().names if name.startswith("IVP_"))
    text = f"/* Each name as a macro of itself, for `#ifdef IVP_...`. native/build.py writes this file. */\n{lines}"
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
