"""The configuration of a farm's pool, and its command-line syntax.

Pure, except that it checks whether the image exists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hbrt.errors import WrongUseError

MAX_BOARDS = 64
DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class Pool(NamedTuple):
    """Identically configured boards.

    Attributes:
        name: As in ``farm://HOST:PORT/NAME``.
        boards: Number of boards.
        image: File of their image; empty for the packaged ops.
        profile: Of each board; empty for HBRT_PROFILE.
    """

    name: str
    boards: int
    image: str = ""
    profile: str = ""


def parse_pool(text: str) -> Pool:
    """A pool from ``NAME=BOARDS[,image=FILE][,profile=NAME]``.

    Raises:
        WrongUseError: the syntax is wrong; names the part.
    """

    def refused(part: str, why: str) -> WrongUseError:
        return WrongUseError(f"{part!r} of the pool {text!r} {why}: write NAME=BOARDS[,image=FILE][,profile=NAME].")

    head, *options = text.split(",")
    name, _, count = head.partition("=")
    if not _NAME.fullmatch(name):
        raise refused(name, "is not a valid pool name")
    if not re.fullmatch(r"[0-9]{1,4}", count) or not 0 < int(count) <= MAX_BOARDS:
        raise refused(count, f"is not a number of boards from 1 to {MAX_BOARDS}")
    found: dict[str, str] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in {"image", "profile"} or not value or key in found:
            raise refused(option, "is not an option of a pool")
        found[key] = value
    if "image" in found:
        if not Path(found["image"]).is_file():
            raise refused(found["image"], "is not a file")
        found["image"] = str(Path(found["image"]).absolute())
    return Pool(name, int(count), **found)
