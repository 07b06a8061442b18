"""A session whose weights lie in a file that the processes of a board map: one prepares it, all share its pages.

The prepared model is what onnxruntime has made of the model on this machine, in the layout of its kernels.
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
"""Of a model's file; less is not worth two files more."""


def shared_session(
    file: Path, read: Callable[[], ModelProto], label: str, threads: int | None = None
) -> ort.InferenceSession:
    """The session of a model's file, beside which the prepared model lies.

    Args:
        file: The model; ``made_of`` names what is put beside it.
        read: Reads and checks it.
        label: What to call it in a message.
        threads: Of the session, as for ``session_options``.

    Raises:
        GraphError: as ``read`` and ``make_session``.
    """
    ready = file.with_name(f"{_PREFIX}{file.name}")
    try:
        if file.stat().st_size >= MIN_BYTES:
            if not ready.exists():
                _prepare(file, read, ready, label, threads)
            return open_saved(ready, label, threads)
    except (GraphError, OSError):
        pass  # no room, or a graph that onnxruntime cannot write: this process loads all of it
    return make_session(read(), label, threads)


def made_of(file: Path) -> list[Path]:
    """What lies beside a model's file for its sake."""
    return list(file.parent.glob(f"{_PREFIX}{file.stem}.*"))


def _prepare(file: Path, read: Callable[[], ModelProto], ready: Path, label: str, threads: int | None) -> None:
    """Write the prepared model, whole or not at all.

    Raises:
        GraphError: onnxruntime refuses the model, or cannot write it. OSError: no room, or the model has been closed.
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
            pass  # another process was quicker: its pages are shared
        if not file.exists():  # its last user has closed it meanwhile
            is_mine = False
            ready.unlink(missing_ok=True)
    finally:
        part.unlink(missing_ok=True)
        if not is_mine:
            weights.unlink(missing_ok=True)
        trim_heap()


def _keep_inputs(part: Path, names: set[str]) -> None:
    """Take out inputs that were constants: onnxruntime has folded the values away that they had."""
    proto = onnx.load(part, format="protobuf", load_external_data=False)
    inputs = [one for one in proto.graph.input if one.name in names]
    if len(inputs) < len(proto.graph.input):
        del proto.graph.input[:]
        proto.graph.input.extend(inputs)
        part.write_bytes(proto.SerializeToString())


def trim_heap() -> None:
    """Give back to the system what loading or preparing a model has used."""
    with contextlib.suppress(AttributeError, OSError):  # a C library that has no such call
        ctypes.CDLL(None).malloc_trim(0)
