"""Which of a program's commands go to another board: the syntax of HBRT_ROUTE. Pure."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple, cast

from hbrt.board.paths import RemoteBoard, board_ref
from hbrt.errors import WrongUseError
from hbrt.settings import BadSettingError
from hbrt.types import HB_DSP_RPC_CMD_BUTT

_ENTRY = re.compile(r"(?P<first>0[xX][0-9a-fA-F]+|\d+)(?:-(?P<last>0[xX][0-9a-fA-F]+|\d+))?=(?P<board>.+)")
_HOW = (
    "write COMMAND=ADDRESS or FIRST-LAST=ADDRESS separated by commas, as in 0x1000-0x10ff=tcp://10.0.0.7:5557, and the "
    "word compare to run these tasks on both boards"
)


class Route(NamedTuple):
    """Commands ``first`` to ``last``, inclusive, and the board that runs them."""

    first: int
    last: int
    board: RemoteBoard

    def __str__(self) -> str:
        """Return it in HBRT_ROUTE syntax."""
        commands = f"{self.first:#x}" if self.first == self.last else f"{self.first:#x}-{self.last:#x}"
        return f"{commands}={self.board.name}"


Routes = tuple[Route, ...]
COMPARE = "compare"


class Routing(NamedTuple):
    """A program's routes, and whether their tasks run on both boards."""

    routes: Routes = ()
    compares: bool = False


def parse_routing(text: str) -> Routing:
    """Parse a value of HBRT_ROUTE: routes, as for ``routes_of``, and perhaps the word ``compare``.

    Raises:
        BadSettingError: as for ``routes_of``, or there is nothing to compare.
    """
    entries = [entry.strip() for entry in text.split(",")]
    routes = routes_of(",".join(entry for entry in entries if entry != COMPARE))
    if COMPARE in entries and not routes:
        raise BadSettingError(f"HBRT_ROUTE has {COMPARE!r} and no route; {_HOW}.")
    return Routing(routes, COMPARE in entries)


def routes_of(text: str) -> Routes:
    """Parse a value of HBRT_ROUTE into routes, by command.

    Args:
        text: Entries ``COMMAND=ADDRESS`` or ``FIRST-LAST=ADDRESS`` separated by commas; empty for none.

    Raises:
        BadSettingError: an entry is invalid, or two have the same command; names the value.
    """
    found = sorted(_route_of(entry.strip()) for entry in text.split(",") if entry.strip())
    for before, after in pairwise(found):
        if after.first <= before.last:
            raise BadSettingError(
                f"HBRT_ROUTE sends command {after.first:#x} to two boards: {before} and {after}; name a command once."
            )
    return tuple(found)


def route_of(cmd: int, routes: Routes) -> Route | None:
    """Return the route of a command; None if this board runs it."""
    return next((one for one in routes if one.first <= cmd <= one.last), None)


def _route_of(entry: str) -> Route:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise BadSettingError(f"HBRT_ROUTE has {entry!r}; {_HOW}.")
    first = int(match["first"], 0)
    last = int(match["last"] or match["first"], 0)
    if not first <= last < HB_DSP_RPC_CMD_BUTT:
        raise BadSettingError(
            f"HBRT_ROUTE has {entry!r}; commands must be 0 to {HB_DSP_RPC_CMD_BUTT - 1:#x}, the smaller one first."
        )
    name = match["board"]
    if not name.startswith(("tcp://", "farm://")):
        raise BadSettingError(
            f"HBRT_ROUTE has {entry!r}, whose board is not an address: write tcp://HOST:PORT or "
            "farm://HOST:PORT[/POOL]. A "
            "board on this machine has the address of its 'hbrt relay --listen tcp://127.0.0.1:PORT'."
        )
    try:
        return Route(first, last, cast("RemoteBoard", board_ref(name)))
    except WrongUseError as error:
        raise BadSettingError(f"HBRT_ROUTE has {entry!r}: {error}") from None
