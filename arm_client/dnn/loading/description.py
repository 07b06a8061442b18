"""The description of a model: the records that description_file.py creates from a YAML file. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hbrt.dnn_types import hbDNNTensorLayout


@dataclass(frozen=True)
class InputDescription:
    """The description of one input.

    Attributes:
        type_rt: Format that the program provides: "nv12", "yuv444", "rgb", "bgr", "gray" or "featuremap".
        type_train: Format that the graph expects; same values as type_rt.
        layout_rt: Layout of the program's data; None for the graph's layout.
        layout_train: Layout that the graph expects; None if the file does not specify it.
        mean: (n,) float32, subtracted first; n is 1 or the number of channels.
        scale: (n,) float32: multiplied next.
        source: "ddr", "pyramid" or "resizer".
        shape: Shape to use when the graph leaves sizes open; None if the file does not specify it.
        video_range: NV12 uses the range 16..235 instead of 0..255.
    """

    type_rt: str = "featuremap"
    type_train: str = "featuremap"
    layout_rt: hbDNNTensorLayout | None = None
    layout_train: hbDNNTensorLayout | None = None
    mean: NDArray[np.float32] = field(default_factory=lambda: np.zeros(1, np.float32))
    scale: NDArray[np.float32] = field(default_factory=lambda: np.ones(1, np.float32))
    source: str = "ddr"
    shape: tuple[int, ...] | None = None
    video_range: bool = False

    @property
    def is_image(self) -> bool:
        """Whether the program provides a picture."""
        return self.type_rt != "featuremap"


@dataclass(frozen=True)
class Description:
    """What the description file says about a model; empty without a file.

    Attributes:
        name: output_model_file_prefix: the model's name on a board; None if the file does not specify it.
        inputs: Descriptions by name; an input without one is used as the graph defines it.
        batch: input_batch; None if the file does not specify it.
        prefers_shift: Whether the API reports power-of-two quantization as SHIFT.
    """

    name: str | None = None
    inputs: Mapping[str, InputDescription] = field(default_factory=dict)
    batch: int | None = None
    prefers_shift: bool = False
