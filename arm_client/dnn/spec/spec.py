"""Specs of a model's tensors, created when it is loaded and read by everything else. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hbrt.dnn_types import hbDNNDataType, hbDNNInputSource, hbDNNTensorLayout
from hbrt.models.spec.spec import DYNAMIC, Quantization

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ImageSpec:
    """How the caller's image is converted to the numbers that the graph was trained on.

    Attributes:
        train_type: Color order of the graph's input: "bgr", "rgb", "yuv444", "gray"; as input_type_train.
        train_layout: NHWC or NCHW; as input_layout_train.
        mean: (1,) or (C,) float32, subtracted first; zeros for none.
        scale: (1,) or (C,) float32, multiplied next; ones for none.
        is_resizer: The source is "resizer": only hbDNNRoiInfer can run it.
        video_range: NV12 range 16..235 (input_space_and_range bt601_video); else 0..255 (regular).
    """

    train_type: str
    train_layout: hbDNNTensorLayout
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    is_resizer: bool = False
    video_range: bool = False


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model, as hbDNNGetInputTensorProperties reports it.

    Attributes:
        name: As in the graph.
        tensor_type: Type of the data in memory.
        layout: Order of the dimensions.
        valid_shape: Sizes of the data, at most 8; DYNAMIC where open.
        aligned_shape: Sizes in memory; equal to valid_shape without padding.
        stride: Bytes between neighbors along each dimension of valid_shape; all 0 for NV12 images and dynamic shapes.
        aligned_bytes: Bytes to allocate; for NV12_SEPARATE, both planes together; DYNAMIC if a size is open.
        quantization: None for real numbers and images.
        image: Set for images only.
        graph_dtype: Type of the graph's own tensor, after conversion.
        graph_shape: Shape of the graph's own tensor, DYNAMIC where it is open.
    """

    name: str
    tensor_type: hbDNNDataType
    layout: hbDNNTensorLayout
    valid_shape: tuple[int, ...]
    aligned_shape: tuple[int, ...]
    stride: tuple[int, ...]
    aligned_bytes: int
    graph_dtype: np.dtype[Any]
    graph_shape: tuple[int, ...]
    quantization: Quantization | None = None
    image: ImageSpec | None = None

    @property
    def source(self) -> hbDNNInputSource:
        """Source of a board model's input: the resizer if the model uses it, else the pyramid for pictures."""
        if self.image is None:
            return hbDNNInputSource.HB_DNN_INPUT_FROM_DDR
        if self.image.is_resizer:
            return hbDNNInputSource.HB_DNN_INPUT_FROM_RESIZER
        return hbDNNInputSource.HB_DNN_INPUT_FROM_PYRAMID

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of an image input."""
        _, *inner = self.valid_shape
        height, width = inner[1:] if self.layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW else inner[:2]
        return height, width

    @property
    def is_dynamic(self) -> bool:
        """Whether any size is open."""
        return DYNAMIC in self.valid_shape
