"""Names and lines of addresses in C code, as frames of a traceback. Also a program of its own, which imports no hbrt.

As a program, which a crashing core starts: ``symbolize.py HEADLINE [FILE OFFSET]...`` prints the headline and frames.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

MOST_SHOWN = 24
SECONDS = 20.0
_SYSTEM = ("/lib", "/usr/lib")
_RUNTIME = "libhbrt_dsp.so"
Address = tuple[str, str]
"""A file of machine code, and an offset in it, as text with 0x."""
Line = tuple[str, int, str]
"""A file of source code, a line, a function; line 0 when there is no debug information."""


def lines_of(addresses: Sequence[Address]) -> list[Line]:
    """Source lines of addresses, the innermost first; a call that was inlined is a line of its own."""
    found: list[Line] = []
    for file, group in groupby(addresses, key=lambda one: one[0]):
        offsets = [offset for _, offset in group]
        found += _ask(file, offsets) or [(file, 0, offset) for offset in offsets]
    return found


def _ask(file: str, offsets: Sequence[str]) -> list[Line]:
    # A sanitizer's library or a user's would be loaded into addr2line, too.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["addr2line", "-e", file, "-afiC", *offsets]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found, address, function = [], "", ""
    for text in asked.stdout.splitlines():
        if text.startswith("0x") and not function:
            address = text
        elif not function:
            function = text
        else:
            source, _, number = text.rpartition(":")
            line = number.partition(" ")[0]
            is_known = line.isdigit() and source != "??"
            name = function if function != "??" else address
            found.append((source, int(line), name) if is_known else (file, 0, name))
            function = ""
    return found


def shown(headline: str, addresses: Sequence[Address]) -> str:
    """A headline and frames below it, as faulthandler writes them; frames of the system's libraries are left out."""
    inside = [one for one in addresses if not one[0].startswith(_SYSTEM) and Path(one[0]).name != _RUNTIME]
    lines = lines_of(inside or addresses)
    text = []
    for frame, again in groupby(f'  File "{file}", line {line} in {function}' for file, line, function in lines):
        text.append(frame)
        if (count := sum(1 for _ in again)) > 1:
            text.append(f"  (so {count} times)")
    if len(text) > MOST_SHOWN:
        text[MOST_SHOWN:] = [f"  and {len(text) - MOST_SHOWN} lines more"]
    return "\n".join([headline.rstrip("\n"), *text, ""])


def command() -> list[str]:
    """The command of this file as a program."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve())]


if __name__ == "__main__":
    _, _headline, *_places = sys.argv
    sys.stdout.write(shown(_headline, list(zip(_places[::2], _places[1::2], strict=True))))
