"""A private board for what runs while a context lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hbrt import settings
from hbrt.board.launch import DaemonConfig, end_private, launch
from hbrt.board.paths import BoardPaths, private_directory
from hbrt.profiles.profile import active


@contextmanager
def private_daemon(image: str | Path | None = None, *, cores: int | None = None) -> Iterator[BoardPaths]:
    """A board that no other program finds by its name; it ends with the context, or with this process.

    Args:
        image: File of the image; None for the packaged ops.
        cores: How many; None for what the profile and HBRT_CORES say.

    Raises:
        BoardError: it does not start. BadSettingError: a setting is wrong.
    """
    directory = private_directory()
    config = DaemonConfig(
        directory=str(directory),
        image=str(Path(image).absolute()) if image else None,
        cores=active().dsp_cores() if cores is None else cores,
        ddr_bytes=settings.size_bytes("HBRT_DDR"),
        is_private=True,
    )
    daemon = launch(config)
    try:
        yield daemon.paths
    finally:
        end_private(daemon)
