"""The acoustic model: a factorized time-delay network (TDNN-F), as a list of operations. Pure.

A layer is a product of two adjacent rows with a narrow matrix, a product of two adjacent rows of that with a wide one,
a bias, a ReLU, a normalization, and 0.66 times the layer's input. Each is one operation, and all forms of the network
walk the same list: in float32, in uint8 here, and in C on the DSP.

Source: Kaldi, steps/libs/nnet3/xconfig/composite_layers.py, for the layer,
https://github.com/kaldi-asr/kaldi/blob/master/egs/wsj/s5/steps/libs/nnet3/xconfig/composite_layers.py;
Youdao's account of speech recognition on a DSP, 4.1, for adjacent rows, https://segmentfault.com/a/1190000039169471
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from recognizer import matrix as qm
from recognizer.matrix import Matrix

BYPASS: Final = 0.66
SUM_DENOMINATOR: Final = 1 << 8
"""L of sums: the smallest, since their result is requantized, which loses whatever a larger one would keep."""
INPUT: Final = 0
"""Index of the tensor of features."""
TENSORS: Final = 4
RANGE: Final = ".range"
"""Suffix of a row's name in the file: the range of what the row is added to."""
Floats = NDArray[np.float32]
_Number = TypeVar("_Number", np.float32, np.uint8)


class Kind(IntEnum):
    """Kinds of operations."""

    PRODUCT = 0  # rows times a matrix; with a stride, each row next to the one that many rows below
    ADD_ROW = 1
    RELU = 2
    MULTIPLY_ROW = 3
    ADD_SCALED = 4  # another tensor times a factor, starting at the row given by stride


class Step(NamedTuple):
    """An operation.

    Attributes:
        kind: Its kind.
        layer: The layer that it belongs to.
        source: Index of the tensor that it reads.
        target: Index of the tensor that it writes, which no operation reads in between.
        weights: Name of the matrix, (k, m), or of the row, (1, m); "" for none.
        stride: Distance in rows between two rows that belong together; for ADD_SCALED the first row of ``other``.
        other: Index of the tensor that is scaled and added.
        factor: Its factor.
    """

    kind: Kind
    layer: int
    source: int
    target: int
    weights: str = ""
    stride: int = 0
    other: int = 0
    factor: float = 0.0


class Network(NamedTuple):
    """A trained network.

    Attributes:
        strides: Of the factorized layers, in order.
        weights: float32 matrices and rows by name; sizes are multiples of 128.
        sounds: Number of outputs that are used.
        priors: (sounds,) logarithms of each sound's frequency.
        ranges: For rows that are added, by name: the range of the numbers that they are added to.
    """

    strides: tuple[int, ...]
    weights: Mapping[str, Floats]
    sounds: int
    priors: Floats
    ranges: Mapping[str, float]

    @property
    def context(self) -> int:
        """Rows lost at each end."""
        return sum(self.strides)

    def steps(self) -> list[Step]:
        """The operations, in order."""
        found: list[Step] = []
        free = [1, 2, 3]  # one of the three holds the layer's input

        def add(
            kind: Kind, source: int, weights: str = "", stride: int = 0, other: int = 0, factor: float = 0.0
        ) -> int:
            target = next(one for one in free if one not in {source, kept})
            found.append(Step(kind, layer, source, target, weights, stride, other, factor))
            return target

        layer, kept = 0, INPUT
        now = add(Kind.PRODUCT, INPUT, "input.matrix")
        now = add(Kind.ADD_ROW, now, "input.bias")
        now = add(Kind.RELU, now)
        now = add(Kind.MULTIPLY_ROW, now, "input.scale")
        now = add(Kind.ADD_ROW, now, "input.offset")
        for layer, stride in enumerate(self.strides, 1):
            kept, name = now, f"layer{layer}"
            now = add(Kind.PRODUCT, now, f"{name}.linear", stride)
            now = add(Kind.PRODUCT, now, f"{name}.affine", stride)
            now = add(Kind.ADD_ROW, now, f"{name}.bias")
            now = add(Kind.RELU, now)
            now = add(Kind.MULTIPLY_ROW, now, f"{name}.scale")
            now = add(Kind.ADD_ROW, now, f"{name}.offset")
            now = add(Kind.ADD_SCALED, now, "", stride, kept, BYPASS)
        layer, kept = len(self.strides) + 1, now
        now = add(Kind.PRODUCT, now, "output.matrix")
        add(Kind.ADD_ROW, now, "output.bias")
        return found

    def scores(self, outputs: NDArray[np.floating]) -> NDArray[np.floating]:
        """(frames, sounds) for the decoder, from the last tensor: a constant per frame does not matter there."""
        return outputs[:, : self.sounds] - self.priors


def load_network(file: Path | None = None) -> Network:
    """Load a network from a file written by train.py; None takes the one next to this file."""
    with np.load(file or Path(__file__).with_name("tdnnf.npz")) as stored:
        priors = stored["priors"].astype(np.float32)
        strides = tuple(int(stride) for stride in stored["strides"])
        ranges = {name.removesuffix(RANGE): float(stored[name]) for name in stored.files if name.endswith(RANGE)}
        others = {name for name in stored.files if not name.endswith(RANGE)} - {"priors", "strides"}
        weights = {name: _padded(stored[name].astype(np.float32), name.endswith(".affine")) for name in sorted(others)}
    return Network(strides, weights, len(priors), priors, ranges)


def random_network(width: int = 1024, bottleneck: int = 128, layers: int = 12, sounds: int = 20) -> Network:
    """A network of random weights, for timing only: its outputs are meaningless.

    Args:
        width: Of a layer; a multiple of 128, like ``bottleneck``.
        bottleneck: Of a layer.
        layers: Factorised layers, the first with stride 1 and the others with 3.
        sounds: Number of outputs that are used.
    """
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> Floats:
        return random.normal(0, (2 / rows) ** 0.5, (rows, columns)).astype(np.float32)

    weights = {"input.matrix": matrix(qm.COLUMNS, width), "output.matrix": matrix(width, qm.COLUMNS)}
    for layer in range(1, layers + 1):
        weights[f"layer{layer}.linear"] = matrix(2 * width, bottleneck)
        weights[f"layer{layer}.affine"] = matrix(2 * bottleneck, width)
    for name in ("input", *(f"layer{layer}" for layer in range(1, layers + 1))):
        weights |= {f"{name}.bias": matrix(1, width), f"{name}.offset": matrix(1, width)}
        weights[f"{name}.scale"] = np.full((1, width), 0.7, np.float32)
    weights["output.bias"] = matrix(1, qm.COLUMNS)
    return Network((1, *[3] * (layers - 1)), weights, sounds, np.zeros(sounds, np.float32), {})


def _padded(weights: Floats, is_pair: bool) -> Floats:  # noqa: FBT001 - used only in this file
    """Zero-pad to sizes that are multiples of 128; the rows of each input of a pair separately."""
    rows, columns = weights.shape
    wide = np.pad(weights, ((0, 0), (0, -columns % qm.COLUMNS)))
    if rows == 1:
        return wide
    parts = np.split(wide, 2) if is_pair else [wide]
    return np.concatenate([np.pad(part, ((0, -len(part) % qm.COLUMNS), (0, 0))) for part in parts])


def walk(network: Network, rows: Floats) -> Iterator[tuple[Step, Floats, Floats]]:
    """Each operation in float32, with its inputs and its result.

    Args:
        network: Trained.
        rows: (frames + 2 context, 128) features.
    """
    tensors: dict[int, Floats] = {INPUT: rows}
    for step in network.steps():
        x, y = tensors[step.source], tensors[step.source]
        if step.kind is Kind.PRODUCT:
            y = _pairs(x, step.stride) @ network.weights[step.weights]
        elif step.kind is Kind.ADD_ROW:
            y = x + network.weights[step.weights]
        elif step.kind is Kind.MULTIPLY_ROW:
            y = x * network.weights[step.weights]
        elif step.kind is Kind.RELU:
            y = np.maximum(x, np.float32(0))
        else:
            y = x + np.float32(step.factor) * tensors[step.other][step.stride : step.stride + len(x)]
        yield step, x, y
        tensors[step.target] = y


def forward(network: Network, rows: Floats) -> Floats:
    """The network in float32: (frames, outputs). Arguments as for ``walk``."""
    *_, (_, _, last) = walk(network, rows)
    return last


def ranges_of(network: Network, utterances: Iterable[Floats]) -> dict[str, float]:
    """For each row that is added, the range of the values it is added to, averaged over utterances."""
    widths: dict[str, list[float]] = {}
    for rows in utterances:
        for step, x, _ in walk(network, rows):
            if step.kind is Kind.ADD_ROW:
                widths.setdefault(step.weights, []).append(float(x.max() - x.min()))
    return {name: float(np.mean(found)) for name, found in widths.items()}


def quantized_weights(network: Network) -> dict[str, Matrix]:
    """The weights as uint8, each matrix and row with its own scale.

    A row that is added has at least half the scale of what it is added to: if the scales are far apart, a sum in int32
    takes so many bits that none are left for the requantization's multiplier.
    """
    found = {}
    for name, values in network.weights.items():
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        wider = max(1.0, network.ranges.get(name, 0.0) / 2 / ((high - low) or 1.0))
        found[name] = qm.quantize(values, (low * wider, high * wider))
    return found


def forward_uint8(
    network: Network,
    weights: Mapping[str, Matrix],
    rows: Matrix,
    denominator: int = qm.MAX_L,
    *,
    is_exact: bool = False,
    is_blocked: bool = False,
) -> Matrix:
    """The network in uint8 throughout, in numpy: bit-identical to the DSP.

    Args:
        network: Trained.
        weights: From ``quantized_weights``.
        rows: (frames + 2 context, 128) features.
        denominator: L of requantization.
        is_exact: Whether scales follow the truncated multiplier.
        is_blocked: Whether products are computed in a DSP's blocks.

    Raises:
        ValueError: with this L, an operation loses its numbers.
    """
    product = qm.matmul_blocked if is_blocked else qm.matmul
    tensors: dict[int, Matrix] = {INPUT: rows}
    for step in network.steps():
        x = tensors[step.source]
        if step.kind is Kind.RELU:
            tensors[step.target] = qm.relu(x)
            continue
        if step.kind is Kind.PRODUCT:
            sums = product(x._replace(values=_pairs(x.values, step.stride)), weights[step.weights])
        elif step.kind is Kind.ADD_ROW:
            sums = qm.add(x, weights[step.weights], SUM_DENOMINATOR)
        elif step.kind is Kind.MULTIPLY_ROW:
            sums = qm.multiply(x, weights[step.weights])
        else:
            other = tensors[step.other]
            moved = other._replace(values=other.values[step.stride : step.stride + len(x.values)])
            sums = qm.add(x, qm.scaled(step.factor, moved), SUM_DENOMINATOR)
        tensors[step.target] = qm.requantize(sums, denominator, is_exact=is_exact)
    return tensors[network.steps()[-1].target]


def _pairs(x: NDArray[_Number], stride: int) -> NDArray[_Number]:
    """Each row and the one ``stride`` rows below it, side by side; the rows themselves for 0."""
    return np.concatenate([x[:-stride], x[stride:]], axis=1) if stride else x
