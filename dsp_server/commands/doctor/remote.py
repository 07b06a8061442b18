"""The checks of ``hbrt doctor`` for a program that uses boards on other machines."""

from __future__ import annotations

from collections.abc import Iterator

from dsp_server.commands.doctor.checks import Check, Level
from hbrt import settings
from hbrt.board.paths import RemoteBoard, board_ref
from hbrt.board.routes import routes_of
from hbrt.errors import RequestRefusedError, WrongUseError


def remote_board() -> Iterator[Check]:
    """Whether the boards that HBRT_BOARD and HBRT_ROUTE name on other machines can be used; nothing without any."""
    try:
        board = board_ref()
    except WrongUseError as error:
        yield Check("HBRT_BOARD", Level.FAIL, str(error))
        return
    if isinstance(board, RemoteBoard):
        yield _answering("HBRT_BOARD", board)
    try:
        routes = routes_of(settings.text("HBRT_ROUTE"))
    except settings.BadSettingError as error:
        yield Check("HBRT_ROUTE", Level.FAIL, str(error))
        return
    for there in dict.fromkeys(route.board for route in routes):
        yield _answering("HBRT_ROUTE", there)


def _answering(setting: str, board: RemoteBoard) -> Check:
    """Whether the relay or the farm at an address answers, and whether there are the keys that it wants."""
    from hbrt.remote.keys import KeysError, default_directory, program_keys
    from hbrt.remote.probe import mechanism

    try:
        has_keys = mechanism(board) == "CURVE"
        if has_keys:
            program_keys(default_directory())
    except (RequestRefusedError, KeysError) as error:
        return Check(setting, Level.FAIL, f"{board.name} cannot be used: {str(error).rstrip('.')}")
    how = f"with keys, as there are in {default_directory()}" if has_keys else "without keys"
    kind, verb = (
        ("farm", "hbrt farm status' lists its boards")
        if board.is_leased
        else ("relay", "hbrt status' looks at its board")
    )
    return Check(setting, Level.OK, f"a {kind} answers at {board.name}, {how}; '{verb}")
