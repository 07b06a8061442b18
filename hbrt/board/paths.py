"""Which board is meant, and where its files are. board_files.py defines what may be done with them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hbrt import settings
from hbrt.errors import WrongUseError

ATTACH = "attach.sock"
CONTROL = "control.sock"
LOCK = "lock"
RELAY = "relay.sock"
RELAY_TASKS = "relay-tasks.sock"
RELAY_LOCK = "relay.lock"
LOG = "log"
TRACE = "trace"
SOCKET_PATH_MAX = 100  # sun_path holds 108 bytes, of which ZeroMQ needs a few
PRIVATE, OF_A_TEST = "private-", "test-"  # name prefix of boards that end with the process that started them
RUN = "_HBRT_RUN"
"""Environment variable with the file of the run that a process belongs to; see run_record.py."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REMOTE = re.compile(r"(tcp|farm):/+")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


class BoardPaths(NamedTuple):
    """Files of one board; ``path`` is its directory."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the board: the last part of its directory."""
        return self.path.name

    @property
    def attach(self) -> Path:
        """Socket that passes file descriptors; its connection is a client's lease."""
        return self.path / ATTACH

    @property
    def control(self) -> Path:
        """ZeroMQ socket for everything else."""
        return self.path / CONTROL

    @property
    def hidden_control(self) -> Path:
        """Path of the control socket while the daemon accepts no more connections."""
        return self.path / f"{CONTROL}.full"

    @property
    def lock(self) -> Path:
        """Lock of the daemon, with its process id as text."""
        return self.path / LOCK

    @property
    def log(self) -> Path:
        """Log of the daemon and its cores."""
        return self.path / LOG

    @property
    def trace(self) -> Path:
        """Directory for what the board's processes record while it is traced."""
        return self.path / TRACE

    @property
    def trace_switch(self) -> Path:
        """File that exists while the board is traced; see hbrt/trace/switch.py."""
        return self.path / f"{TRACE}.json"

    @property
    def relay(self) -> Path:
        """ZeroMQ socket of the board's relay."""
        return self.path / RELAY

    @property
    def relay_tasks(self) -> Path:
        """Socket of the relay for tasks only."""
        return self.path / RELAY_TASKS

    @property
    def relay_lock(self) -> Path:
        """Lock of the relay, with its process id as text."""
        return self.path / RELAY_LOCK

    @property
    def relay_endpoint(self) -> str:
        """ZeroMQ address of the relay's socket."""
        return _ipc(self.relay)

    @property
    def control_endpoint(self) -> str:
        """ZeroMQ address of the control socket."""
        return _ipc(self.control)

    @property
    def attach_address(self) -> str:
        """Address of the attach socket."""
        return socket_path(self.attach)


class RemoteBoard(NamedTuple):
    """A board on another machine, by the address of its relay, or of the farm that leases it; has no files here.

    ``path`` is ``tcp:/HOST:PORT`` or ``farm:/HOST:PORT[/POOL]``, used wherever a board's directory would be.
    """

    path: Path

    @property
    def name(self) -> str:
        """Address of its relay, or of its farm."""
        scheme, *place = self.path.parts
        return f"{scheme}//{'/'.join(place)}"

    @property
    def is_leased(self) -> bool:
        """Whether a farm chooses the board, a different one for each program."""
        return self.path.parts[0] == "farm:"

    @property
    def pool(self) -> str:
        """Pool of the farm; empty for its first."""
        return self.path.name if len(self.path.parts) > 2 else ""

    @property
    def server(self) -> str:
        """What listens at the address, for messages."""
        return f"{'farm' if self.is_leased else 'relay'} at {self.name}"

    @property
    def endpoint(self) -> str:
        """ZeroMQ address."""
        return f"tcp://{self.path.parts[1]}"

    @property
    def host(self) -> str:
        """Its relay's host, a name or an address."""
        return self.path.parts[1].rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """TCP port of its relay."""
        return int(self.path.parts[1].rpartition(":")[2])


BoardRef: TypeAlias = BoardPaths | RemoteBoard
"""A board on this machine or another."""


def socket_path(path: Path) -> str:
    """Return a path to the same socket that fits the kernel's 108 bytes, through an open directory if necessary.

    Each directory stays open for the life of the process, since ZeroMQ's threads use the path again later.
    """
    return str(path) if len(os.fsencode(path)) <= SOCKET_PATH_MAX else _through_directory(path)


def _ipc(path: Path) -> str:
    """Return a socket's ZeroMQ address, which pyzmq encodes as UTF-8, whatever the locale's encoding for paths."""
    raw = os.fsencode(socket_path(path))
    try:
        return f"ipc://{raw.decode()}"
    except UnicodeDecodeError:
        return f"ipc://{_through_directory(path)}"


def _through_directory(path: Path) -> str:
    fd = _directories.get(path.parent)
    if fd is None or not os.path.samestat(os.fstat(fd), path.parent.stat()):
        fd = _directories[path.parent] = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{fd}/{path.name}"


_directories: dict[Path, int] = {}


def home() -> Path:
    """Return the directory of this user's boards: HBRT_HOME, else the runtime directory, else /tmp."""
    configured = settings.text("HBRT_HOME")
    if configured:
        return Path(configured).absolute()
    return default_home()


def default_home() -> Path:
    """Home of the boards if HBRT_HOME is not set."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime).absolute() / "hbrt"
    return Path(f"/tmp/hbrt-{os.getuid()}")  # noqa: S108 - the directory is refused unless it is ours and 0700


def private_directory(prefix: str = PRIVATE) -> Path:
    """Return a new name for a private board, which ends with this process; creates nothing."""
    return home() / f"{prefix}{os.getpid()}-{os.urandom(4).hex()}"


def is_private_name(name: str) -> bool:
    """Whether a board has a private board's name."""
    return name.startswith((PRIVATE, OF_A_TEST))


def board_ref(name: str | None = None) -> BoardRef:
    """Return a board by name (default: HBRT_BOARD), or by directory if the name contains a slash.

    ``tcp://HOST:PORT`` is a relay's board, ``farm://HOST:PORT[/POOL]`` one leased from a farm.

    Raises:
        WrongUseError: invalid name, or its directory's name is not valid text.
    """
    name = name or settings.text("HBRT_BOARD")
    if found := _REMOTE.match(name):
        scheme, place = found[1], name[found.end() :]
        address, slash, pool = place.partition("/")
        if (
            not _ADDRESS.fullmatch(address)
            or not 0 < int(address.rpartition(":")[2]) < 1 << 16
            or (slash and (scheme == "tcp" or not _NAME.fullmatch(pool)))
        ):
            raise WrongUseError(
                f"{name!r} is not a relay address: write tcp://HOST:PORT, as in tcp://10.0.0.7:5557."
                if scheme == "tcp"
                else f"{name!r} is not a farm address: write farm://HOST:PORT, as in farm://10.0.0.7:5600, or "
                "farm://HOST:PORT/POOL."
            )
        return RemoteBoard(Path(f"{scheme}:/{place}"))
    if "/" in name:
        path = Path(name).absolute()
    elif _NAME.fullmatch(name):
        path = home() / name
    else:
        raise WrongUseError(f"{name!r} is not a board name: use up to 64 letters, digits, '.', '_' and '-'.")
    if not is_text(path):
        raise WrongUseError(
            f"The board's directory {str(path)!r} is not valid text in this locale, so messages cannot name it: choose "
            "another with HBRT_HOME, or set LC_ALL=C.UTF-8."
        )
    return BoardPaths(path)


def is_text(path: Path) -> bool:
    """Whether a path is valid text: bytes invalid in this locale's encoding appear as lone surrogates."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
