"""Write tensors for ``hrt_model_exec infer``: as bytes, or as numbers in text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from arm_client.dnn.python.buffers import TensorBuffer


def as_text(values: NDArray[Any], axis: int, precision: int) -> str:
    """Numbers as text, a blank between two.

    Args:
        values: Any shape.
        axis: Where lines break: numbers that differ only in dimensions from ``axis`` on share a line. 0 puts all of
            them on one line; the number of dimensions or more puts each on its own line.
        precision: Decimals of real numbers.
    """
    lines = values.reshape(int(np.prod(values.shape[:axis])), -1) if values.size else values.reshape(0, 0)
    is_real = np.issubdtype(values.dtype, np.floating)
    form = f"%.{precision}f" if is_real else "%d"
    numbers = lines.astype(np.float64) if is_real else lines.astype(object)  # of any width, 64 bits without a sign too
    return "".join(" ".join(form % number for number in line) + "\n" for line in numbers.tolist())


def real_values(buffer: TensorBuffer) -> NDArray[Any]:
    """An output's values as real numbers."""
    from hbrt.models.spec import quantization

    stored = buffer.get()
    rule = buffer.spec.quantization
    return stored if rule is None else quantization.dequantize(stored, rule)


def file_name(*parts: object) -> str:
    """Parts joined to a file's name; characters that may trouble a file system or a shell become ``_``."""
    return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "_", str(part)).strip("_") for part in parts)


def write_text(file: Path, values: NDArray[Any], axis: int, precision: int) -> None:
    """Write numbers as text; see as_text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(as_text(values, axis, precision), encoding="utf-8")


def write_bytes(file: Path, data: bytes) -> None:
    """Write a tensor's bytes as they are in memory."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


class Dumps(NamedTuple):
    """The outputs to write and their format: flags of ``infer``."""

    enable_dump: bool
    dump_intermediate: int
    dump_format: str
    dump_precision: int
    dump_txt_axis: int
    hybrid_dequantize_process: bool
    dump_path: Path
