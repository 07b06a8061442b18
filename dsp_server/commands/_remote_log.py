"""``hbrt log`` of a board on another machine, over its relay."""

from __future__ import annotations

import time
from collections.abc import Callable

from hbrt.board.paths import RemoteBoard
from hbrt.cli.tables import show_text
from hbrt.control.observer import LogPart, Observer
from hbrt.errors import RefusedError
from hbrt.status import Status

LOOK_SECONDS = 0.5


def tail(board: RemoteBoard, lines: int) -> LogPart:
    """The last lines of its log; older ones that one answer does not hold are left out, and that is said.

    Raises:
        RefusedError: no relay answers, or it does not let this program in.
    """
    with Observer(board) as observer:
        return _tail(observer, board, lines)


def follow(board: RemoteBoard, lines: int, write: Callable[[bytes], None]) -> None:
    """Write the last lines, then what comes, until the board is offline.

    Raises:
        RefusedError: as ``tail``, or the relay is gone and the board need not have.
    """
    with Observer(board) as observer:
        part = _tail(observer, board, lines)
        write(part.raw)
        try:
            while True:
                part = observer.log(0, part.end)
                write(part.raw)
                if not part.raw:
                    time.sleep(LOOK_SECONDS)
        except RefusedError as error:
            if error.status != Status.HB_DSP_BOARD_LOST:
                raise
            show_text(f"Board {board.name} is offline; the end of its log is on its own machine.", err=True)


def _tail(observer: Observer, board: RemoteBoard, lines: int) -> LogPart:
    part = observer.log(lines)
    if part.is_cut:
        why = (
            f"One answer of the relay at {board.name} holds {len(part.raw)} bytes of its log; older lines are left out."
        )
        show_text(why, err=True)
    return part
