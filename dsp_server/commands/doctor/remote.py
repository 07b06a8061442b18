"""The check of ``hbrt doctor`` for a program whose board is on another machine."""

from __future__ import annotations

from collections.abc import Iterator

from dsp_server.commands.doctor.checks import Check, Level
from hbrt.board.paths import RemoteBoard, board_ref
from hbrt.errors import RequestRefusedError, WrongUseError


def remote_board() -> Iterator[Check]:
    """Whether the relay that HBRT_BOARD names answers, and whether there are the keys that it wants; else nothing."""
    try:
        board = board_ref()
    except WrongUseError as error:
        yield Check("HBRT_BOARD", Level.FAIL, str(error))
        return
    if not isinstance(board, RemoteBoard):
        return
    from hbrt.remote.keys import KeysError, default_directory, program_keys
    from hbrt.remote.probe import mechanism

    try:
        has_keys = mechanism(board) == "CURVE"
        if has_keys:
            program_keys(default_directory())
    except (RequestRefusedError, KeysError) as error:
        yield Check("HBRT_BOARD", Level.FAIL, f"{board.name} cannot be used: {str(error).rstrip('.')}")
        return
    how = f"with keys, as there are in {default_directory()}" if has_keys else "without keys"
    kind, verb = (
        ("farm", "hbrt farm status' lists its boards")
        if board.is_leased
        else ("relay", "hbrt status' looks at its board")
    )
    found = f"a {kind} answers at {board.name}, {how}; '{verb}"
    yield Check("HBRT_BOARD", Level.OK, found)
