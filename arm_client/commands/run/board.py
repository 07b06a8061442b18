"""The board that samples run on, and the mode of their tasks."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import click

from hbrt import settings
from hbrt.board.files import daemon_pid, lock_holder
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard
from hbrt.errors import BoardError, NotRunningError
from hbrt.samples_dir import samples_dir

RELAY_SECONDS = 5.0
MODES = ("relay", "direct")
_PROFILES = {"asr": "sd865", "rknn": "rk3588"}
"""Of groups whose samples follow another board than the default one."""
_DIRECT = {"rknn"}
"""Groups whose vendor has no relay, which reaches DSP cores alone."""
_IMAGES = {"asr": "tdnnf_image.c", "fastrpc": "fastrpc_image.py"}
"""Of groups whose ops are not among the packaged ones; in samples/dsp."""
INLINE = "inline"
"""The mode under HBRT_INLINE: each program is the core of its own board."""


@contextmanager
def running_board(board: BoardRef, group: str, *, must_run: bool) -> Iterator[tuple[str, bool]]:
    """Directory of a board that runs while the samples of a group run, and whether it is private.

    A private board has the image of HBRT_IMAGE or, if unset, the one that the group needs.

    Raises:
        BoardError: it does not run, cannot be reached, or does not start. BadSettingError: a setting is wrong.
    """
    settings.check()  # once, before each sample and its relay would report the same mistake
    if settings.flag("HBRT_INLINE"):
        if must_run:
            raise click.UsageError(f"--board {board.name} has no effect under HBRT_INLINE: unset one of the two.")
        with image_of(group):
            yield "", True
        return
    if isinstance(board, RemoteBoard):
        from arm_client.client import connect

        attached = connect(board.name)  # an unreachable board is reported once, not by each sample
        try:
            address = attached.session.link.address
            if not board.is_leased:
                attached.close()
            yield address, False  # one lease is that of all samples
        finally:
            attached.close()
        return
    if daemon_pid(board) is not None:
        yield str(board.path), False
        return
    if must_run:
        from hbrt.control.ask import why_not_running

        raise NotRunningError(why_not_running(board))
    from hbrt.board.private import private_daemon

    relay = None
    try:
        with (
            profile_of(group),
            image_of(group),
            private_daemon(settings.text("HBRT_IMAGE")) as private,
        ):
            try:
                yield str(private.path), True
            finally:
                relay = _relay_of(private)
    finally:
        if relay is not None:  # it ends with its board, a little later
            select.select([relay], [], [], RELAY_SECONDS)
            os.close(relay)


def profile_of(group: str) -> AbstractContextManager[None]:
    """Make the daemon and the samples of a group model the group's board unless HBRT_PROFILE is set."""
    is_ours = group in _PROFILES and not os.environ.get("HBRT_PROFILE")
    return settings.set_to("HBRT_PROFILE", _PROFILES[group]) if is_ours else nullcontext()


@contextmanager
def image_of(group: str) -> Iterator[None]:
    """While the samples of a group run, have their private board use the group's image, unless HBRT_IMAGE names one.

    Raises:
        BoardError: the image is in C, and does not compile.
    """
    if group not in _IMAGES or settings.text("HBRT_IMAGE"):
        yield
        return
    image = samples_dir() / "dsp" / _IMAGES[group]
    with tempfile.TemporaryDirectory(prefix="hbrt-") as folder:
        if image.suffix == ".c":
            line = [sys.executable, "-m", "hbrt", "cc", "--dsp", "-o", f"{folder}/{image.stem}.so", str(image)]
            done = subprocess.run(line, check=False, capture_output=True, text=True)
            if done.returncode:
                raise BoardError(f"Cannot compile {image}:\n{done.stderr.rstrip()}")
            image = Path(folder, f"{image.stem}.so")
        with settings.set_to("HBRT_IMAGE", str(image)):
            yield


def board_to_trace(board: BoardRef) -> BoardRef | None:
    """A running board, local or remote; None if each program has a private one."""
    return board if isinstance(board, RemoteBoard) else running_here(board)


def running_here(board: BoardRef) -> BoardPaths | None:
    """A running local board that programs share; None if each has a private one, or the board is remote."""
    if isinstance(board, RemoteBoard) or settings.flag("HBRT_INLINE") or daemon_pid(board) is None:
        return None
    return board


def _relay_of(board: BoardPaths) -> int | None:
    """A descriptor that is readable once the board's relay has ended; None if there is no relay."""
    try:
        pid = lock_holder(board.relay_lock)
        return None if pid is None else os.pidfd_open(pid)
    except (BoardError, ProcessLookupError):
        return None


def mode_of(board: BoardRef, asked: str | None, group: str = "") -> str:
    """Relay, unless the group, an option or a setting has another mode; a board of another machine has this one alone.

    Raises:
        click.UsageError: a mode was given, but with HBRT_INLINE the programs run their ops themselves.
    """
    if settings.flag("HBRT_INLINE"):
        if asked is not None:
            raise click.UsageError(f"--mode {asked} has no effect under HBRT_INLINE: unset one of the two.")
        return INLINE
    if isinstance(board, RemoteBoard):
        return "relay"
    if asked is None and any(os.environ.get(name) for name in ("HB_DSP_RPC_MODE", "HB_UCP_ENABLE_RELAY_MODE")):
        return "relay" if settings.is_relayed() else "direct"
    return asked or ("direct" if group in _DIRECT else "relay")
