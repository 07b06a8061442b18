"""Asking a board, of this machine or of another one, without being its client: what most verbs lean on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.control.daemon import REQUEST_SECONDS, Daemon
from hbrt.errors import WrongUseError

if TYPE_CHECKING:
    from hbrt.control.observer import Observer


def look_at(paths: BoardRef) -> Daemon | Observer:
    """What to ask of a board of this machine, or, over its relay and without changing anything, of another one.

    Raises:
        NotRunningError: no daemon runs. RefusedError: no relay answers, or it does not let this program in.
        WrongUseError: a farm's address names no board.
    """
    if not isinstance(paths, RemoteBoard):
        return Daemon(paths)
    from hbrt.control.observer import Observer

    return Observer(paths)


def ask(paths: BoardRef, verb: str, timeout_s: float = REQUEST_SECONDS, **args: Any) -> Any:
    """One request to a board's daemon; returns the answer's data.

    Raises:
        NotRunningError: no daemon runs. RefusedError: as for ``Daemon.request``.
    """
    with look_at(paths) as daemon:
        return daemon.request(verb, timeout_s, **args)


def farm_status(farm: BoardRef) -> Any:
    """Boards, lessees and queue of a farm, as plain data.

    Raises:
        WrongUseError: it is not a farm's address. RefusedError: no farm answers, or it does not let this program in.
    """
    if not (isinstance(farm, RemoteBoard) and farm.is_leased):
        raise WrongUseError(f"{farm.name} is not a farm: name one as farm://HOST:PORT, or in HBRT_BOARD.")
    from hbrt.remote.lease import status_of

    return status_of(farm)
