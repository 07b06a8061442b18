"""iceoryx2's events from its C binding, with a page that carries the bytes (``c/iceoryx2_echo.c``).

The package on PyPI has no C library: ``ICEORYX2_FLAGS`` names the user's, as flags of a compiler.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from benchmarks._peers import ICEORYX2_FLAGS, Place
from benchmarks._peers.c_program import CC, ProgramClient, built, serve_by


def _command(place: Place) -> tuple[str | Path, ...]:
    flags = shlex.split(os.environ[ICEORYX2_FLAGS])
    program = built(place.directory, "iceoryx2_echo", *CC, libraries=flags)
    # Not the prefix of the peer in Python, whose services have the same names.
    return program, str(place.directory), f"{place.directory.parent.name}_c_"


def serve(place: Place) -> None:
    """Send every request back, and wake its sender."""
    serve_by(place, *_command(place))


def connect(place: Place) -> ProgramClient:
    """Return a client of the server at ``place``."""
    return ProgramClient(*_command(place), str(place.index), is_pipelined=False)
