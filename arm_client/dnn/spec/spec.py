"""What a model says of its tensors: the records that loading makes, and that every other part reads. Pure data."""

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
    """How an image that the caller gives becomes the numbers that the graph was trained on.

    Attributes:
        train_type: Color order of the graph's input: "bgr", "rgb", "yuv444", "gray"; as input_type_train.
        train_layout: NHWC or NCHW; as input_layout_train.
        mean: (1,) or (C,) float32, subtracted first; of zeros for none.
        scale: (1,) or (C,) float32, multiplied next; of ones for none.
        is_resizer: The source is "resizer": only hbDNNRoiInfer can run it.
        video_range: NV12 of 16..235 (input_space_and_range bt601_video); else of 0..255 (regular).
    """

    train_type: str
    train_layout: hbDNNTensorLayout
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    is_resizer: bool = False
    video_range: bool = False


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model, as hbDNNGetInputTensorProperties tells it.

    Attributes:
        name: As in the graph.
        tensor_type: What lies in memory.
        layout: Order of the dimensions.
        valid_shape: Sizes of the data; DYNAMIC where the data decides. At most 8.
        aligned_shape: Sizes as they lie in memory; equal to valid_shape where nothing is padded.
        stride: Bytes between neighbors along each dimension of valid_shape; all 0 for NV12 images and dynamic shapes.
        aligned_bytes: Bytes to allocate; for NV12_SEPARATE of both planes together; DYNAMIC when the data decides.
        quantization: None for real numbers and images.
        image: For images alone.
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
        """What fills an input of a board's model: a picture comes from the pyramid unless a resizer makes it."""
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
        """Whether the data decides a size."""
        return DYNAMIC in self.valid_shape
