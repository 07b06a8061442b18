"""Convert a program's inputs for the graph: layouts, shapes, types, images of a batch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rknn_api.container import Metadata, TensorInfo
from rknn_api.errors import RknnError, RknnStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAYOUTS = ("nhwc", "nchw")
TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)

Shape = tuple[int, ...]


def layouts_of(data_format: str | Sequence[str | None] | None, count: int) -> list[str]:
    """The layout of each of a program's inputs: nhwc by default.

    Raises:
        RknnError: RKNN_ERR_INPUT_INVALID: unknown layout, or their number differs from the number of inputs.
    """
    given = list(data_format) if isinstance(data_format, (list, tuple)) else [data_format] * count
    found = ["nhwc" if one is None else str(one).lower() for one in given]
    if len(found) != count or not set(found) <= set(LAYOUTS):
        raise _refused(
            f"Invalid data_format {data_format!r}: must be 'nhwc' or 'nchw', or a list with one for each of the "
            f"{count} inputs."
        )
    return found


def as_list(inputs: Any) -> Any:
    """A program's values for all inputs; a single array is the value of the only input."""
    return [inputs] if isinstance(inputs, np.ndarray) and inputs.dtype != object else inputs


def shape_sets(metadata: Metadata) -> list[tuple[Shape, ...]]:
    """The sets of shapes supported for the inputs, in the graph's layout, with the images of a batch."""
    sets = metadata.dynamic_input or (tuple(one.shape for one in metadata.inputs),)
    batch = metadata.rknn_batch_size
    return [tuple(batched(shape, batch) for shape in one) for one in sets]


def batched(shape: Shape, batch: int) -> Shape:
    """A shape with the images of a batch along its first dimension."""
    return (shape[0] * batch, *shape[1:]) if shape and batch > 1 else shape


def graph_views(metadata: Metadata, inputs: Sequence[Any], layouts: Sequence[str]) -> list[NDArray[Any]]:
    """A program's checked inputs as views in the graph's layout, without copies; ``typed`` converts them to feeds.

    Args:
        metadata: Of the model.
        inputs: Arrays as passed by the program.
        layouts: Layout of each.

    Returns:
        Arrays in the graph's layout, with all images of a batch; of any type that ``typed`` takes.

    Raises:
        RknnError: RKNN_ERR_INPUT_INVALID: an input does not fit; the message says which, and what would fit.
    """
    infos, inputs = metadata.inputs, as_list(inputs)
    if not isinstance(inputs, (list, tuple)):
        raise _refused(f"inputs is {type(inputs).__name__}; pass a list with an array for each input.")
    if len(inputs) != len(infos):
        raise _refused(f"{len(inputs)} inputs were given, but the model has {len(infos)}; pass an array for each.")
    sets = shape_sets(metadata)
    arrays = [_array(given, info) for given, info in zip(inputs, infos, strict=True)]
    for at, (info, array, layout) in enumerate(zip(infos, arrays, layouts, strict=True)):
        allowed = list(dict.fromkeys(_as_given(one[at], info, layout) for one in sets))
        if array.shape not in allowed:
            said = " or ".join(str(list(shape)) for shape in allowed)
            what = f" in {layout.upper()}" if info.layout != "UNDEFINED" else ""
            count = len(info.shape)  # the first sentence is the vendor's
            dims = f"The input[{at}] need {count}dims input, but {array.ndim}dims input buffer feed. "
            raise _refused(
                f"{dims if array.ndim != count else ''}"
                f"The input {info.name!r} has the shape {list(array.shape)}; it must have {said}{what}."
            )
    turned = [_turned(array, info, layout) for array, info, layout in zip(arrays, infos, layouts, strict=True)]
    if tuple(array.shape for array in turned) not in sets:
        raise _refused(
            f"The inputs have the shapes {[list(array.shape) for array in arrays]}, from different sets of "
            "dynamic_input; all shapes must be from one set."
        )
    for array, info in zip(turned, infos, strict=True):
        wanted = np.dtype(info.dtype)
        if array.dtype != wanted and not converts(array.dtype, wanted):
            raise _refused(f"The input {info.name!r} is of {array.dtype}; the model takes {wanted}.")
    return turned


def typed(array: NDArray[Any], info: TensorInfo) -> NDArray[Any]:
    """A C-contiguous array of the graph's type from a view or from one image of it."""
    with np.errstate(over="ignore"):  # infinity, as in C
        # Pixels are transposed as bytes. A scalar stays one.
        return np.ascontiguousarray(array).astype(info.dtype, copy=False).reshape(array.shape)


def _array(given: Any, info: TensorInfo) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty((), object)
    if array.dtype.kind in "OUS" and array is not given:
        raise _refused(f"The input {info.name!r} is {type(given).__name__}; pass an array of numbers.")
    return array


def _as_given(shape: Shape, info: TensorInfo, layout: str) -> Shape:
    is_turned = info.layout == "NCHW" and layout == "nhwc"
    return tuple(shape[at] for at in TO_NHWC) if is_turned else shape


def _turned(array: NDArray[Any], info: TensorInfo, layout: str) -> NDArray[Any]:
    return array.transpose(TO_NCHW) if info.layout == "NCHW" and layout == "nhwc" else array


def converts(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether numbers of a type are converted to another for a program: all except real numbers to integers."""
    return given.kind in "biuf" and not (wanted.kind in "iub" and given.kind == "f")


def _refused(sentence: str) -> RknnError:
    return RknnError(RknnStatus.RKNN_ERR_INPUT_INVALID, sentence)
