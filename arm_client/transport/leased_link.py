"""The attachment to a board leased from a farm: like one on another machine, for the duration of the lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arm_client.cabi.say import warn
from arm_client.transport.remote_link import RemoteLink
from arm_client.transport.remote_memory import RemoteMemory
from hbrt.attach.link import program_name
from hbrt.board.paths import RemoteBoard
from hbrt.ddr.file import Ddr
from hbrt.errors import RefusedError
from hbrt.remote.lease import LAST_WORD_SECONDS, Lease


class LeasedLink(RemoteLink):
    """This process's attachment to a farm's board; waits until one is free.

    Args:
        farm: Its address.
        new_memory: As for ``RemoteLink``.

    Raises:
        BoardError: as for ``Lease`` and ``RemoteLink``.
    """

    def __init__(self, farm: RemoteBoard, new_memory: Callable[[Ddr, int], RemoteMemory] = RemoteMemory) -> None:
        self._granted = Lease(farm, program_name(), lambda sentence: warn("%s", sentence))
        try:
            super().__init__(self._granted.board, new_memory)
        except BaseException as error:
            try:
                if isinstance(error, RefusedError):
                    self._granted.hear(LAST_WORD_SECONDS)  # the farm may have taken the board back meanwhile
            finally:
                self._granted.close()
            raise
        self.paths = farm

    @property
    def address(self) -> str:
        """As for ``Link``: the farm would give a forked child another board."""
        return str(self._granted.board.path)

    def _watched(self) -> dict[Any, Callable[[], None]]:
        """The farm reports why it takes the board back before the board ends, which itself says less."""
        return dict.fromkeys(self._granted.sources, self._granted.hear)

    def _on_lost(self, status: int, why: str) -> None:
        """Return the useless lease; the farm knows why it took the board."""
        if not self.fault:
            try:
                self._granted.hear(LAST_WORD_SECONDS)
            except RefusedError as error:
                why = str(error)
            self._granted.close()
        super()._on_lost(status, why)

    def close(self) -> None:
        """Detach, and return the board to the farm."""
        super().close()
        self._granted.close()
