"""How a server's process begins: a fork or a new interpreter, its descriptors, their limit, and its title."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import NoReturn

MAX_FDS = 65536  # each client takes some of a server's
_KEEP_ENVIRONMENT = "SPT_NOENV"  # setproctitle's: the title takes the place of the arguments alone


def fork_detached(life: Callable[[int], int], log: int) -> tuple[int, int]:
    """Fork a process without this terminal and this process's descriptors.

    Args:
        life: Its work, ``life(ready)``, which writes into that descriptor what this process waits for, and closes it;
            returns its exit code.
        log: Descriptor of the log, which becomes its standard output and error; closed here.

    Returns:
        Its id, and the descriptor to read what it writes.
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
        live(detached)  # which never returns into this process's stack
    os.close(ready_write)
    os.close(log)
    return pid, ready_read


def live(life: Callable[[], int]) -> NoReturn:
    """Run all that a process is for, and end it at once: taking an interpreter down costs a tenth of a board's start.

    Args:
        life: The work; returns the exit code. An error of it is logged.
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
    """Close every descriptor of this process but these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
                os.close(int(entry.name))


def start_interpreter(
    module: str, places: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> int:
    """Start a process that calls ``main()`` of a module; returns its id.

    Args:
        module: Name of the module.
        places: Its descriptors 0, 1, 2 and so on; none of them may have one of these numbers here.
        arguments: Its ``sys.argv`` after the program's name.
        environment: Variables beside those of this process.

    Raises:
        OSError: no process can be started.
    """
    root = str(Path(__file__).resolve().parents[2])
    find = f"import sys; {root!r} in sys.path or sys.path.append({root!r})"
    argv = [sys.executable, "-P", "-u", "-c", f"{find}; from {module} import main; main()", *arguments]
    actions = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(places)]
    # A process group of its own: only the daemon handles the terminal's Ctrl-C.
    return os.posix_spawn(
        sys.executable, argv, {**os.environ, **(environment or {})}, file_actions=actions, setpgroup=0
    )


def raise_descriptor_limit() -> None:
    """Raise this process's limit, which those that it starts inherit, as far as it may go and is of use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def set_title(role: str, board: str) -> None:
    """Call this process ``hbrt <role> of board <board>``: ``hbrt daemon``, ``hbrt core 0``, ``hbrt relay``."""
    os.environ[_KEEP_ENVIRONMENT] = "1"
    try:
        _setter()(f"hbrt {role} of board {board}")
    finally:
        del os.environ[_KEEP_ENVIRONMENT]


@cache
def _setter() -> Callable[[str], object]:
    """The C function of setproctitle: its package loads logging, a twentieth of a board's start in each process."""
    package = find_spec("setproctitle")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("setproctitle._setproctitle", folders) if folders else None
    if spec is None or spec.loader is None:
        return lambda title: title  # where it is not compiled, its package sets no title either
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    setter: Callable[[str], object] = module.setproctitle
    return setter
