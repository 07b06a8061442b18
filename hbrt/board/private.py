"""A private board for the duration of a context."""

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
    """Start a board that other programs cannot find by name; it ends with the context or this process.

    Args:
        image: Image file; None for the packaged ops.
        cores: Number of cores; None for that of the profile and HBRT_CORES.

    Raises:
        BoardError: it fails to start. BadSettingError: a setting is invalid.
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
