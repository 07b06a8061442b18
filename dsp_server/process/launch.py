"""How a server process starts: as a fork or a new interpreter; its descriptors, their limit, and its title."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NoReturn

MAX_FDS = 65536  # each client uses some of a server's descriptors
_KEEP_ENVIRONMENT = "SPT_NOENV"  # for setproctitle: overwrite only the arguments with the title


def fork_detached(life: Callable[[int], int], log: int) -> tuple[int, int]:
    """Fork a process without this process's terminal and descriptors.

    Args:
        life: Its work, ``life(ready)``; it writes what this process waits for to that descriptor, closes it, and
        returns the exit code.
        log: Descriptor of the log, which becomes the child's standard output and error; it is closed here.

    Returns:
        The child's process id, and a descriptor from which to read what it writes.
    """
    ready_read, ready_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()

    def detached() -> int:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, standard in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, standard)
        close_all_but(0, 1, 2, ready_write)
        return life(ready_write)

    if pid == 0:
        live(detached)  # never returns to this process's stack
    os.close(ready_write)
    os.close(log)
    return pid, ready_read


def live(life: Callable[[], int]) -> NoReturn:
    """Do a process's work, then exit at once: shutting an interpreter down costs a tenth of a board's start.

    Args:
        life: The work; returns the exit code. Its exceptions are logged.
    """
    code = 3
    try:
        code = life()
    except BaseException:  # noqa: BLE001 - the log gets any error, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def close_all_but(*kept: int) -> None:
    """Close all descriptors of this process except these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of this directory listing is already closed
                os.close(int(entry.name))


def start_interpreter(
    module: str, places: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> int:
    """Start a process that calls a module's ``main()``; return its id.

    Args:
        module: Name of the module.
        places: Descriptors to become 1, 2, 3 and so on; its standard input is empty.
        arguments: Its ``sys.argv`` after the program name.
        environment: Environment variables to add to this process's own.

    Raises:
        OSError: no process could be started.
    """
    root = str(Path(__file__).resolve().parents[2])
    find = f"import sys; {root!r} in sys.path or sys.path.append({root!r})"
    argv = [sys.executable, "-P", "-u", "-c", f"{find}; from {module} import main; main()", *arguments]
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    with contextlib.ExitStack() as copies:
        for place, fd in enumerate(places, 1):
            copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(places) + 1)  # above all places
            copies.callback(os.close, copy)
            actions.append((os.POSIX_SPAWN_DUP2, copy, place))
        # In its own process group: only the daemon handles Ctrl-C from the terminal.
        return os.posix_spawn(
            sys.executable, argv, {**os.environ, **(environment or {})}, file_actions=actions, setpgroup=0
        )


def raise_descriptor_limit() -> None:
    """Raise this process's descriptor limit, which its children inherit, as far as permitted and useful."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def set_title(role: str, board: str) -> None:
    """Title this process ``hbrt <role> of board <board>``: ``hbrt daemon``, ``hbrt core 0``, ``hbrt relay``."""
    os.environ[_KEEP_ENVIRONMENT] = "1"
    try:
        _setter()(f"hbrt {role} of board {board}")
    finally:
        del os.environ[_KEEP_ENVIRONMENT]


@cache
def _setter() -> Callable[[str], object]:
    """Load setproctitle's C function; its package imports logging, a twentieth of a board's start per process."""
    package = find_spec("setproctitle")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("setproctitle._setproctitle", folders) if folders else None
    if spec is None or spec.loader is None:
        return lambda title: title  # if it is not compiled, its package cannot set a title either
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    setter: Callable[[str], object] = module.setproctitle
    return setter
