"""Sparse weights: of 4 consecutive ones, 2 are zero (4:2), or of a tile of 4 by 4 all but 4 (16:4).

Source: RKNN SDK advanced guide (chapter 5), 5.11
Emulator: the weights with the smallest magnitude become zero, the first among equals; at 16:4 a tile keeps the 4
largest left by the first direction, at most 2 per row and column; config applies a mask without training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from onnx import ModelProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODES: Final = ("IC", "OC", "IC+OC", "OC+IC")
"""4:2 along the input channels, along the output channels, 16:4 in this order, and in the reverse order."""
_RUN: Final = 4
_CHANNELS: Final = 32  # Cin and Cout of a convolution that runs sparse must be multiples of it


class Sparse(NamedTuple):
    """A model with its masks; names of convolutions: already sparse, masked, or impossible to mask."""

    model: ModelProto
    already: list[str]
    masked: list[str]
    dense: list[str]


def kept(weights: NDArray[Any], mode: str) -> NDArray[np.bool_]:
    """Which weights are kept.

    Args:
        weights: [Cout, Cin, Kh, Kw].
        mode: One of MODES.
    """
    size = np.abs(weights).astype(np.float64)
    if mode in {"IC", "OC"}:
        return _two_of_four(size, 1 if mode == "IC" else 0)
    first = _two_of_four(size, 1 if mode == "IC+OC" else 0)
    rows, columns = (-(-count // _RUN) for count in weights.shape[:2])
    padded = np.full((rows * _RUN, columns * _RUN, *weights.shape[2:]), -1.0)
    padded[: weights.shape[0], : weights.shape[1]] = np.where(first, size, -1.0)
    tiles = padded.reshape(rows, _RUN, columns, _RUN, -1).transpose(0, 2, 4, 1, 3).reshape(-1, _RUN * _RUN)
    chosen = _four_of_sixteen(tiles).reshape(rows, columns, -1, _RUN, _RUN).transpose(0, 3, 1, 4, 2)
    found: NDArray[np.bool_] = chosen.reshape(padded.shape)[: weights.shape[0], : weights.shape[1]]
    return found


def _two_of_four(size: NDArray[Any], axis: int) -> NDArray[np.bool_]:
    last = np.moveaxis(size, axis, -1)
    runs = -(-last.shape[-1] // _RUN)
    padded = np.full((*last.shape[:-1], runs * _RUN), -1.0)
    padded[..., : last.shape[-1]] = last
    groups = padded.reshape(-1, _RUN)
    found = np.ones(groups.shape, bool)
    np.put_along_axis(found, np.argsort(groups, axis=1, kind="stable")[:, :2], values=False, axis=1)
    return np.moveaxis(found.reshape(padded.shape)[..., : last.shape[-1]], -1, axis)


def _four_of_sixteen(tiles: NDArray[Any]) -> NDArray[np.bool_]:
    """For each row of 16, as a tile of 4 by 4: the 4 largest nonnegative ones, at most 2 per row and column."""
    found, every = np.zeros(tiles.shape, bool), np.arange(len(tiles))
    rows, columns = (np.zeros((len(tiles), _RUN), int) for _ in range(2))
    # From the largest on, among equal ones from the last: the first become zero.
    for place in np.argsort(tiles, axis=1, kind="stable")[:, ::-1].T:
        row, column = place // _RUN, place % _RUN
        is_free = (found.sum(1) < _RUN) & (rows[every, row] < 2) & (columns[every, column] < 2)
        takes = is_free & (tiles[every, place] >= 0)
        found[every, place] |= takes
        rows[every, row] += takes
        columns[every, column] += takes
    return found


def is_sparse(weights: NDArray[Any]) -> bool:
    """Whether two of each four along one direction are zero."""
    return any(not weights[~_two_of_four(np.abs(weights).astype(np.float64), axis)].any() for axis in (0, 1))


def with_masks(model: ModelProto, mode: str) -> Sparse:
    """The model with masks on the convolutions that can run sparse.

    Args:
        model: Not changed.
        mode: One of MODES; "" masks nothing.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in copy.graph.initializer}
    found = Sparse(copy, [], [], [])
    for node in copy.graph.node:
        if node.op_type != "Conv":
            continue
        name, tensor = node.name or node.output[0], tensors.get(node.input[1])
        group = next((helper.get_attribute_value(one) for one in node.attribute if one.name == "group"), 1)
        can = tensor is not None and len(tensor.dims) == 4 and group == 1
        if tensor is None or not can or any(count % _CHANNELS for count in tensor.dims[:2]):
            found.dense.append(name)
            continue
        weights = numpy_helper.to_array(tensor)
        if is_sparse(weights):
            found.already.append(name)
        elif mode:
            tensor.CopyFrom(
                numpy_helper.from_array(np.where(kept(weights, mode), weights, 0).astype(weights.dtype), tensor.name)
            )
            found.masked.append(name)
        else:
            found.dense.append(name)
    return found
