"""A session whose weights are in a file mapped by the board's processes: one prepares it, all share its pages.

The prepared model is the model optimized by onnxruntime for this machine, in its kernels' layout.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from hbrt.models.errors import GraphError
from hbrt.models.run.ort_session import Saving, make_session, open_saved

if TYPE_CHECKING:
    import onnxruntime as ort
    from onnx import ModelProto

_PREFIX = "prepared-"
MIN_BYTES = 1 << 20
"""Minimum size of a model file; smaller ones are not worth two more files."""


def shared_session(
    file: Path, read: Callable[[], ModelProto], label: str, threads: int | None = None
) -> ort.InferenceSession:
    """Create the session of a model file, with the prepared model next to it.

    Args:
        file: The model; ``made_of`` names the files next to it.
        read: Function that reads and checks it.
        label: Its name in error messages.
        threads: Threads of the session, as for ``session_options``.

    Raises:
        GraphError: as for ``read`` and ``make_session``.
    """
    ready = file.with_name(f"{_PREFIX}{file.name}")
    try:
        if file.stat().st_size >= MIN_BYTES:
            if not ready.exists():
                _prepare(file, read, ready, label, threads)
            return open_saved(ready, label, threads)
    except (GraphError, OSError):
        pass  # no room, or onnxruntime cannot write the graph: this process loads all of it
    return make_session(read(), label, threads)


def made_of(file: Path) -> list[Path]:
    """Files belonging to a model file, next to it."""
    return list(file.parent.glob(f"{_PREFIX}{file.stem}.*"))


def _prepare(file: Path, read: Callable[[], ModelProto], ready: Path, label: str, threads: int | None) -> None:
    """Write the prepared model atomically.

    Raises:
        GraphError: onnxruntime refuses the model, or cannot write it. OSError: no room, or the model was closed.
    """
    mark = os.urandom(4).hex()
    part, weights = ready.with_suffix(f".{mark}.part"), ready.with_suffix(f".{mark}.weights")
    is_mine = False
    try:
        session = make_session(read(), label, threads, Saving(part, weights.name))
        _keep_inputs(part, {one.name for one in session.get_inputs()})
        del session
        try:
            os.link(part, ready)
            is_mine = True
        except FileExistsError:
            pass  # another process was faster: share its pages
        if not file.exists():  # its last user closed it meanwhile
            is_mine = False
            ready.unlink(missing_ok=True)
    finally:
        part.unlink(missing_ok=True)
        if not is_mine:
            weights.unlink(missing_ok=True)
        trim_heap()


def _keep_inputs(part: Path, names: set[str]) -> None:
    """Remove inputs that were constants, whose values onnxruntime has folded."""
    proto = onnx.load(part, format="protobuf", load_external_data=False)
    inputs = [one for one in proto.graph.input if one.name in names]
    if len(inputs) < len(proto.graph.input):
        del proto.graph.input[:]
        proto.graph.input.extend(inputs)
        part.write_bytes(proto.SerializeToString())


def trim_heap() -> None:
    """Return memory used for loading or preparing a model to the system."""
    with contextlib.suppress(AttributeError, OSError):  # a C library without this call
        ctypes.CDLL(None).malloc_trim(0)
