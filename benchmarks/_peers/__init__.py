"""The ways of calling another process that ``rpc.py`` compares, each with its own server and client.

A peer's module has two functions::

    serve(place: Place) -> None       # runs until SIGTERM; calls place.ready() once it listens
    connect(place: Place) -> Client

All carry the same: a request of 64 bytes, and a reply of the same 64 bytes. A peer's module is imported only
in the processes that run it.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

PAYLOAD = bytes(range(64))
DEPTH = 32
"""Calls that a pipelined client keeps under way."""
ICEORYX2_FLAGS = "ICEORYX2_FLAGS"
"""An environment variable: what a compiler needs to know to find and link iceoryx2's C binding."""


@dataclass(frozen=True)
class Place:
    """Where a process of a peer stands."""

    directory: Path
    """For sockets and files, one for each peer and run."""
    role: str
    """Which of the peer's servers it is, or ``client``."""
    index: int
    """Tells the clients of one server apart: 0, 1, ..."""
    ready: Callable[[], None]
    """A server calls it when clients may come."""

    @property
    def socket(self) -> str:
        """The path of the Unix socket that clients connect to."""
        return str(self.directory / "socket")


class Client(Protocol):
    """The calling side of a peer."""

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""

    def close(self) -> None:
        """Release everything, so that nothing remains in /dev/shm or on disk."""


@runtime_checkable
class PipelinedClient(Client, Protocol):
    """A client that may have several calls under way."""

    def send(self, payload: bytes) -> None:
        """Begin a call."""

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""


@runtime_checkable
class MeasuringClient(Protocol):
    """A client that makes and measures its calls itself, in another language."""

    is_pipelined: bool

    def measure(self, what: str, start_ns: int, end_ns: int) -> tuple[int, bytes | int]:
        """Do what the benchmark asks for: ``warm``, ``sync`` or ``in_flight``."""

    def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True)
class Peer:
    """One way of calling another process."""

    name: str
    title: str
    module: str
    needs: tuple[str, ...]
    """Top-level packages that must be importable."""
    roles: tuple[str, ...] = ("server",)
    """Its server processes, in the order in which they are started."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment of its servers and its clients; ``{directory}`` stands for the peer's own directory."""
    variables: tuple[str, ...] = ()
    """Environment variables that the user must have set."""

    def environment(self, directory: Path) -> dict[str, str]:
        """Return the environment for a run whose sockets and files lie in ``directory``."""
        return {name: value.format(directory=directory) for name, value in self.settings.items()}

    def missing(self) -> list[str]:
        """Return the packages that are not installed, and the environment variables that are not set."""
        packages = [package for package in self.needs if importlib.util.find_spec(package) is None]
        return packages + [f"${variable}" for variable in self.variables if not os.environ.get(variable)]


def _ours(
    name: str,
    title: str,
    *,
    cores: int = 1,
    spin_us: int | None = None,
    mode: str = "direct",
    op_in: str | None = None,
) -> Peer:
    settings = {"HBRT_HOME": "{directory}", "HBRT_BOARD": "bench", "HBRT_AUTOSTART": "0", "HB_DSP_RPC_MODE": mode}
    if spin_us is not None:
        settings["HBRT_SPIN_US"] = str(spin_us)
    needs = ("arm_client", "dsp_server", "hbrt")
    if op_in:
        return Peer(name, title, "benchmarks._peers.c_program", needs, (f"board-{op_in}",), settings)
    return Peer(name, title, "benchmarks._peers.emulator", needs, (f"board-{cores}",), settings)


PEERS = (
    _ours("hbrt", "hbrt, 1 core", cores=1),
    _ours("hbrt-2", "hbrt, 2 cores", cores=2),
    _ours("hbrt-spin0", "hbrt, 1 core, spin 0", cores=1, spin_us=0),
    _ours("hbrt-2-spin0", "hbrt, 2 cores, spin 0", cores=2, spin_us=0),
    _ours("hbrt-relay", "hbrt, 1 core, by a relay", cores=1, mode="relay"),
    _ours("c", "hbrt, caller in C", op_in="py"),
    _ours("c-c", "hbrt, caller and op in C", op_in="c"),
    Peer("eventfd", "bare eventfd echo", "benchmarks._peers.eventfd_echo", ()),
    Peer("eventfd-c", "bare eventfd echo in C", "benchmarks._peers.c_program", (), ("echo",)),
    Peer("zmq-reqrep", "pyzmq REQ/REP", "benchmarks._peers.zmq_reqrep", ("zmq",)),
    Peer("zmq-router", "pyzmq DEALER/ROUTER", "benchmarks._peers.zmq_router", ("zmq",)),
    Peer("zmq-worker", "DEALER/ROUTER + worker", "benchmarks._peers.zmq_worker", ("zmq",), ("broker", "worker")),
    Peer("pipe", "multiprocessing.connection", "benchmarks._peers.pipe", ()),
    Peer("iceoryx2", "iceoryx2, event", "benchmarks._peers.iox", ("iceoryx2",)),
    Peer("iceoryx2-c", "iceoryx2, event in C", "benchmarks._peers.iox_c", (), variables=(ICEORYX2_FLAGS,)),
    Peer("rpyc", "rpyc", "benchmarks._peers.rpyc_unix", ("rpyc",)),
    Peer("grpc", "gRPC", "benchmarks._peers.grpc_unix", ("grpc",)),
)
