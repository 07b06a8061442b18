"""How a board processes an item: with an op, a model or a program. A farm calls these as functions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.commands.run.program import command_of
from hbrt_farm import Compared

if TYPE_CHECKING:
    from arm_client.client import Board

_TAIL = 2000


class Against(NamedTuple):
    """The reference that outputs are compared with.

    Attributes:
        function: Takes the arrays of an item and returns the expected outputs.
        tolerance: Largest absolute difference that still passes; None for no limit.
        keeps: Whether the result has the arrays of both.
    """

    function: Callable[..., Any]
    tolerance: float | None = None
    keeps: bool = False


def input_of(item: str) -> Any:
    """A file as an op's input block: an array from .npy, bytes from any other file.

    Raises:
        ValueError: it is empty. OSError: it cannot be read.
    """
    data = np.load(item, allow_pickle=False) if item.endswith(".npy") else np.fromfile(item, np.uint8)
    if not data.size:
        raise ValueError(f"{item} is empty; an input block must have at least 1 byte.")
    return data


class OpWork:
    """Call an op with a file's content as its input block.

    Args:
        cmd: Its command number.
        output_bytes: Size of the output block; None for the input's size.
        seconds: Time limit of a call.
        against: A function that returns the expected output block for the file's array.
    """

    def __init__(self, cmd: int, output_bytes: int | None, seconds: float, against: Against | None = None) -> None:
        self._cmd, self._output_bytes, self._seconds, self.against = cmd, output_bytes, seconds, against

    def __call__(self, board: Board, item: str) -> Compared:
        """Call it for a file."""
        data = input_of(item)
        given = board.from_array(data)
        output = board.empty(data.nbytes if self._output_bytes is None else self._output_bytes, np.uint8)
        board.call(self._cmd, given, output, timeout=self._seconds, keep=(given, output))
        made = np.array(output)
        if self.against is None:
            return Compared((made,))
        wanted = np.asarray(self.against.function(data))
        if wanted.nbytes > made.nbytes:
            raise ValueError(f"The reference returned {wanted.nbytes} bytes, but the output block has {made.nbytes}.")
        typed = made[: wanted.nbytes].view(wanted.dtype).reshape(wanted.shape)
        return compared([typed], [wanted], [made], self.against)


class ModelWork:
    """Run a model of one input or more on a file: .npy, .npz with one array per input, or a picture.

    Args:
        model: Its file.
        against: A function that returns the expected outputs for the arrays, as real numbers.
    """

    def __init__(self, model: str, against: Against | None = None) -> None:
        self._model, self.against = model, against
        self._on: Any = None
        self._loaded: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on": None, "_loaded": None}

    def __call__(self, board: Board, item: str) -> Compared:
        """Run it for a file. Real numbers are quantized if the model is; integers are stored values."""
        from arm_client import dnn

        if self._on is not board:  # a new board has no models
            (self._loaded,), self._on = dnn.load(self._model), board
        model = self._loaded
        arrays = _arrays(model, Path(item))
        outputs = model.forward(arrays)
        stored = [output.buffer for output in outputs]
        if self.against is None:
            return Compared(tuple(stored))
        wanted = self.against.function(*arrays)
        wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
        return compared([output.dequantize() for output in outputs], wanted, stored, self.against)


class ProgramWork:
    """Run a program with the item's path as its last argument, on the board.

    Args:
        program: A Python file, or an executable file.
        arguments: The arguments before the path.
        seconds: Its time limit.
    """

    def __init__(self, program: str, arguments: tuple[str, ...], seconds: float) -> None:
        self._command, self._seconds = command_of(program, arguments), seconds
        self.against = None

    def __call__(self, board: Board, item: str) -> Compared:
        """Run it for an item; an exit code other than 0 is a failure."""
        environment = {**os.environ, "HBRT_BOARD": str(board.path)}
        done = subprocess.run(
            [*self._command, item],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=self._seconds,
            check=False,
            env=environment,
        )
        failure = ""
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-_TAIL:]
            failure = f"The program exited with code {done.returncode}. {said}".rstrip()
        return Compared((done.stdout,), failure=failure)


def compared(made: list[Any], wanted: list[Any], stored: list[Any], against: Against) -> Compared:
    """The largest absolute difference from the expected outputs; infinite if only one of the two is NaN.

    Args:
        made: The outputs.
        wanted: The reference's.
        stored: The arrays to digest.
        against: The reference.

    Raises:
        ValueError: the number of outputs or a shape differs.
    """
    if [one.shape for one in made] != [np.shape(one) for one in wanted]:
        raise ValueError(
            f"The reference returned the shapes {[list(np.shape(one)) for one in wanted]}, but the outputs have "
            f"{[list(one.shape) for one in made]}."
        )
    error = 0.0
    for one, other in zip(made, wanted, strict=True):
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        with np.errstate(invalid="ignore"):
            differences = np.abs(a - b)
        differences[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        error = max(error, float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0)))
    failure = ""
    if against.tolerance is not None and error > against.tolerance:
        failure = f"It differs from the reference by {error:g}; the tolerance is {against.tolerance:g}."
    return Compared(tuple(stored), error, failure, (made, wanted) if against.keeps else None)


def _arrays(model: Any, path: Path) -> list[Any]:
    """The values of a file for the model's inputs, as ``forward`` takes them."""
    from arm_client.commands.model_exec.inputs import value_of

    if path.suffix.lower() != ".npz":
        if len(model.inputs) != 1:
            raise ValueError(f"The model has {len(model.inputs)} inputs; pass an .npz with one array for each.")
        return [value_of(path, model.inputs[0])]
    with np.load(path, allow_pickle=False) as held:
        found = [held.get(tensor.name) for tensor in model.inputs]
    if missing := [tensor.name for tensor, one in zip(model.inputs, found, strict=True) if one is None]:
        raise ValueError(f"{path} lacks the model's inputs {', '.join(missing)}.")
    return [
        tensor.quantize(one) if np.issubdtype(one.dtype, np.floating) and not tensor.spec.image else one
        for tensor, one in zip(model.inputs, found, strict=True)
        if one is not None
    ]
