"""A fresh board of a farm, with a relay that admits only the holder of the lease."""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from typing import NamedTuple

from hbrt import settings
from hbrt.board.launch import DaemonConfig, end_private, launch
from hbrt.board.paths import BoardPaths, private_directory
from hbrt.board.private_files import open_file
from hbrt.control.ask import ask
from hbrt.profiles.profile import active, find
from hbrt.remote.keys import CLIENTS, SERVER
from hbrt_farm.leases.pools import Pool
from hbrt_farm.temporary import temporary_directory

LISTEN_SECONDS = 40.0  # the daemon gives up on a relay earlier
END_SECONDS = 5.0
ASK_SECONDS = 2.0
KEYS_PREFIX = "hbrt-lease-"


class RelayKeys(NamedTuple):
    """A relay's own key files, as bytes: the secret one and the public one."""

    secret: bytes
    public: bytes


class Activity(NamedTuple):
    """A board's activity, which shows whether it is in use: tasks that ended, and tasks that are waiting or running."""

    ended: int
    under_way: int


class HostedBoard:
    """A board that runs until ``end`` or the end of this process.

    Args:
        pool: The configuration of the board.
        host: Where its relay listens: an address, or ``*``.
        keys: Keys of the relay; None for a relay without keys, which accepts only loopback addresses.

    Raises:
        BoardError: it does not start, or its relay cannot listen. BadSettingError: the profile or a setting is invalid.
    """

    def __init__(self, pool: Pool, host: str, keys: RelayKeys | None) -> None:
        profile = find(pool.profile) if pool.profile else active()
        self._paths = BoardPaths(private_directory())
        self._daemon = launch(
            DaemonConfig(
                directory=str(self._paths.path),
                image=pool.image or None,
                cores=profile.dsp_cores(),
                ddr_bytes=settings.size_bytes("HBRT_DDR"),
                is_private=True,
                profile=pool.profile,
            )
        )
        self._pidfd = os.pidfd_open(self._daemon.pid)
        self._files = contextlib.ExitStack()
        self._keys: Path | None = None
        try:
            if keys is not None:
                self._keys = self._files.enter_context(temporary_directory(KEYS_PREFIX))
                _fill(self._keys, keys)
            chosen = {} if self._keys is None else {"keys": str(self._keys)}
            relay = ask(self._paths, "listen", LISTEN_SECONDS, endpoint=f"tcp://{host}:0", **chosen)
        except BaseException:
            self.end()
            raise
        self.name = self._paths.name
        self.port = int(relay["endpoint"].rpartition(":")[2])

    def admit(self, name: str, key: bytes) -> None:
        """Admit the program with this public key, and no other."""
        if self._keys is not None:
            _write(self._keys / CLIENTS / f"{name}.key", key)

    def is_alive(self) -> bool:
        """Whether its daemon runs."""
        return not select.select([self._pidfd], [], [], 0)[0]

    def activity(self) -> Activity:
        """Its activity.

        Raises:
            BoardError: its daemon does not answer, or has ended.
        """
        status = ask(self._paths, "status", ASK_SECONDS)
        return Activity(sum(core["tasks"] for core in status["cores"]), sum(status["tasks"].values()))

    def end(self) -> None:
        """Stop it, whatever its cores are doing, and remove its files."""
        os.close(self._pidfd)
        end_private(self._daemon, END_SECONDS)
        self._files.close()


def _fill(directory: Path, keys: RelayKeys) -> None:
    (directory / CLIENTS).mkdir(mode=0o700)
    _write(directory / f"{SERVER}.key_secret", keys.secret)
    _write(directory / f"{SERVER}.key", keys.public)


def _write(path: Path, content: bytes) -> None:
    with open(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(content)
