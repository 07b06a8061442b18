"""Image inputs of one run: pictures in device memory, converted in the worker's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.dnn.tensors.pictures import Picture, pictures_of, type_given
from arm_client.dnn.tensors.resizer import Region, check_region, resize
from arm_client.dnn.tensors.tensor_memory import check_range, view_of
from hbrt.dnn_types import hbDNNTensor
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbrt.ddr.file import Ddr

Make = Callable[[], "NDArray[Any]"]


def whole_pictures(spec: TensorSpec, tensor: hbDNNTensor, ddr: Ddr) -> Make:
    """Return the pictures in a caller's tensor as the graph's input.

    Raises:
        ModelError: INVALID_ARGUMENT: names the broken rule; API_USE_ERROR for a resizer input.
    """
    if spec.image is not None and spec.image.is_resizer:
        raise ModelError(
            Status.HB_DNN_API_USE_ERROR,
            f"The source of the input {spec.name!r} is the resizer; run the model with hbDNNRoiInfer.",
        )
    view = view_of(bytes(tensor))
    if view.valid != spec.valid_shape:
        raise bad_argument(
            f"The image input {spec.name!r} has the validShape {list(view.valid)}; the model takes "
            f"{list(spec.valid_shape)}: leave it as hbDNNGetInputTensorProperties filled it."
        )
    tensor_type = type_given(spec.name, spec.tensor_type, view.tensor_type)
    pictures = pictures_of(spec.name, tensor_type, spec.layout, view.valid, view.aligned, view.mems)
    planes = [planes_of(spec.name, picture, ddr) for picture in pictures]

    def make() -> NDArray[Any]:
        from arm_client.dnn.tensors.images import graph_input

        return graph_input(spec, planes, tensor_type)

    return make


def region_of_picture(spec: TensorSpec, tensor: hbDNNTensor, region: Region, ddr: Ddr) -> Make:
    """Return a region of the picture in a caller's tensor, scaled to the model's size.

    Args:
        spec: Spec of an input of batch 1 whose source is the resizer.
        tensor: Its validShape has the picture's size, and W of its alignedShape is the stride. If validShape is the
            model's own, the picture's size is that of alignedShape.
        region: The part to use.
        ddr: The memory that contains the picture.

    Raises:
        ModelError: INVALID_ARGUMENT: names the broken rule or limit.
    """
    from arm_client.dnn.tensors.images import graph_input

    view = view_of(bytes(tensor))
    tensor_type = type_given(spec.name, spec.tensor_type, view.tensor_type)
    is_as_told = view.valid[1:] == spec.valid_shape[1:]
    valid = view.aligned if is_as_told and view.aligned[:1] == (1,) else view.valid
    if valid[:1] != (1,):
        raise bad_argument(
            f"The resizer input {spec.name!r} has the validShape {list(view.valid)}; each tensor of hbDNNRoiInfer "
            "holds one picture: set its first size to 1."
        )
    (picture,) = pictures_of(spec.name, tensor_type, spec.layout, valid, view.aligned, view.mems)
    check_region(spec.name, region, picture, spec.sides)
    planes = planes_of(spec.name, picture, ddr)
    return lambda: graph_input(spec, [resize(planes, region, spec.sides)], tensor_type)


def planes_of(name: str, picture: Picture, ddr: Ddr) -> tuple[NDArray[np.uint8], ...]:
    """Return views of a picture's planes in device memory: (rows, bytes per row).

    Raises:
        ModelError: INVALID_ARGUMENT: it is not in live memory of this process.
    """
    for plane in picture.planes:
        check_range(f"The picture {name!r}", plane.phy_addr, plane.size_bytes, ddr)
    return tuple(
        np.ndarray(
            (plane.rows, plane.row_bytes),
            np.uint8,
            *ddr.bytes_with(ddr.offset_of(plane.phy_addr), plane.size_bytes),
            (plane.stride, 1),
        )
        for plane in picture.planes
    )
