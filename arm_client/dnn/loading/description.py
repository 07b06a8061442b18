"""What a description says of a model: the records that description_file.py makes of a YAML file. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hbrt.dnn_types import hbDNNTensorLayout


@dataclass(frozen=True)
class InputDescription:
    """What a description says of one input.

    Attributes:
        type_rt: What the program gives: "nv12", "yuv444", "rgb", "bgr", "gray" or "featuremap".
        type_train: What the graph takes, in the same words.
        layout_rt: Layout of what the program gives; None for that of the graph.
        layout_train: Layout of what the graph takes; None when the file does not say.
        mean: (n,) float32, n being 1 or the number of channels: subtracted first.
        scale: (n,) float32: multiplied next.
        source: "ddr", "pyramid" or "resizer".
        shape: The graph's shape, for a graph that leaves sizes open; None when the file does not say.
        video_range: NV12 has 16..235 instead of 0..255.
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
        """Whether the program gives a picture."""
        return self.type_rt != "featuremap"


@dataclass(frozen=True)
class Description:
    """What a file says of a model; without one, nothing.

    Attributes:
        name: output_model_file_prefix: the model's name on a board; None when the file does not say.
        inputs: By name; inputs that are not described are what the graph says.
        batch: input_batch; None when the file does not say.
        prefers_shift: Whether the API reports a quantization that is a shift as SHIFT.
    """

    name: str | None = None
    inputs: Mapping[str, InputDescription] = field(default_factory=dict)
    batch: int | None = None
    prefers_shift: bool = False
