"""Ray for a farm: a local instance for the farm's lifetime, or a running cluster."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from hbrt.errors import BoardError, WrongUseError
from hbrt_farm.temporary import temporary_directory

_PREFIX = "hbrt-ray-"
_LONGEST = 40  # Ray adds 65 bytes to it for its sockets, whose paths can have 107
_OBJECTS_BYTES = 512 << 20
_CONNECT_SECONDS = 10.0
# No usage reports, no metrics, workers only on demand; on this machine only its own address, with a token that no other
# user has.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_enable_pipe_based_agent_to_parent_health_check": "1",  # everything ends if this process is killed
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
}
# Read once, when Ray is loaded, so it stays; a process that loaded it earlier uses Ray's own, in the user's home.
_TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def carried(*more: str) -> dict[str, str]:
    """The settings in this environment that apply to a board on any machine, and those with these prefixes."""
    return {name: value for name, value in os.environ.items() if name.startswith(("HBRT_", "HB_", *more))}


@contextlib.contextmanager
def engine(boards: int, address: str | None) -> Iterator[Any]:
    """The module ``ray``, connected.

    A process that is already connected keeps its connection. Otherwise this starts a local instance that ends with the
    block or, with an address, connects to a cluster.

    Args:
        boards: How many boards to place.
        address: HOST:PORT of a cluster; None for this machine.

    Raises:
        WrongUseError: this process is connected to another cluster.
        BoardError: no cluster is there, its version differs, or Ray does not start here.
    """
    given = {**_QUIET, **({} if address else _LOCAL)}
    if not address and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(_TOKEN)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_restored(given))
        os.environ.update({name: value for name, value in given.items() if name not in os.environ})
        import ray

        if address:
            _check_there(address)
        if ray.is_initialized():
            if address not in {None, ray.get_runtime_context().gcs_address}:
                raise WrongUseError(
                    f"This process is connected to a Ray other than {address}; call ray.shutdown() first."
                )
            yield ray
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        if address:
            options["address"] = address
        else:
            options |= {
                "num_cpus": boards,
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": _OBJECTS_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": str(stack.enter_context(temporary_directory(_PREFIX, _short_place()))),
            }
        try:
            with _restored(["PYTHONBREAKPOINT"]):  # opened by breakpoint(): Ray sets its own debugger
                ray.init(**options)
        except (RuntimeError, ConnectionError, ValueError, OSError) as error:
            where = f"the cluster at {address}" if address else "Ray on this machine"
            first = str(error).strip().split("\n")[0].rstrip(".")
            raise BoardError(f"No farm started: {where} did not join: {first}.") from None
        stack.callback(ray.shutdown)
        # Otherwise it would print dead processes on standard output; the results list them.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001 - there is no option
        yield ray


@contextlib.contextmanager
def _restored(names: Iterable[str]) -> Iterator[None]:
    """Restore environment variables at the end, here and for processes started from here."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check_there(address: str) -> None:
    """Fail at once if nothing listens: Ray itself would try for a minute, and end the process."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise BoardError(f"Invalid address of a Ray cluster {address!r}: must be HOST:PORT, as printed by 'ray start'.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise BoardError(
            f"No Ray cluster answers at {address}: {why}. 'ray status' on its head node shows more."
        ) from None


def _short_place() -> str:
    """A directory whose path is short enough for Ray's sockets."""
    place = tempfile.gettempdir()
    return place if len(place) <= _LONGEST - len(_PREFIX) - 8 else "/tmp"  # noqa: S108 - the directory has its own mode
