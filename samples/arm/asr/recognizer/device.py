"""The acoustic model on the DSP: its weights and tensors in device memory, and the calls of a forward pass.

The image is samples/dsp/tdnnf_image.c. A call runs a range of the network's operations, so one image serves a pass in
one call, in one call per layer and in one call per operation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arm_client.errors import CallerError, UnknownCommandError
from hbrt.samples_dir import samples_dir
from hbrt.status import Status
from hbrt.structures import CStructure, float64_t, structure, uint32_t, uint64_t
from recognizer import matrix as qm
from recognizer.features import INPUTS
from recognizer.matrix import BLOCK_COLUMNS, Bytes, Matrix
from recognizer.network import INPUT, TENSORS, Floats, Network, Step, quantized_weights
from recognizer.offload import CallCost

if TYPE_CHECKING:
    from arm_client.client import Board
    from arm_client.future import Task

CMD_UINT8: Final = 0x1200
CMD_FLOAT: Final = 0x1201
ALIGN: Final = 128
VECTOR_UNITS: Final = 2
"""Vector units of the account's DSP: its four threads take columns of each product, and share the units."""
MAX_FRAMES: Final = 500
"""Per forward pass: five seconds."""


class Per(StrEnum):
    """The granularity of calls."""

    FORWARD = "forward"
    LAYER = "layer"
    OPERATION = "operation"


@structure
class TensorHead(CStructure):
    """A tensor in the block of tensors, as the op knows it."""

    scale: float64_t
    zero_point: uint32_t
    rows: uint32_t
    columns: uint32_t
    offset: uint32_t


@structure
class StepRecord(CStructure):
    """An operation in the block of operations."""

    kind: uint32_t
    source: uint32_t
    target: uint32_t
    other: uint32_t
    stride: uint32_t
    terms: uint32_t
    columns: uint32_t
    zero_point: uint32_t
    scale: float64_t
    weights: uint64_t


@structure
class ForwardParam(CStructure):
    """The op's input block; addresses are physical."""

    steps: uint64_t
    weights: uint64_t
    tensors: uint64_t
    weights_bytes: uint32_t
    tensors_bytes: uint32_t
    first: uint32_t
    count: uint32_t
    sums: uint32_t
    denominator: uint32_t
    is_exact: uint32_t
    output_bytes: uint32_t


@structure
class OutputHead(CStructure):
    """The start of the op's output block."""

    tensor: TensorHead
    least_multiplier: uint32_t
    maps: uint32_t


class Pass(NamedTuple):
    """A forward pass.

    Attributes:
        scores: (frames, outputs) float32.
        stored: The same as stored by the DSP; None in float.
        least_multiplier: The smallest L1 of its requantizations.
        maps: Ranges of DDR that its calls mapped.
        tasks: Its calls.
    """

    scores: Floats
    stored: Matrix | None
    least_multiplier: int
    maps: int
    tasks: list[Task]


class Packed(NamedTuple):
    """A network in the op's format.

    Attributes:
        parts: Its weights by name, uint8.
        weights: All of them in one array, each at a multiple of 128.
        steps: Its operations, with offsets into ``weights``.
    """

    parts: Mapping[str, Bytes]
    weights: Bytes
    steps: Bytes


class Modeled(NamedTuple):
    """Milliseconds of calls on the board: overhead of the calls, and the DSP's computing time."""

    calls: float
    operations: float

    @property
    def share(self) -> float:
        """The calls' share."""
        return self.calls / (self.calls + self.operations)


class DeviceNetwork:
    """A network in device memory, for one pass at a time."""

    def __init__(
        self,
        board: Board,
        network: Network,
        *,
        is_float: bool = False,
        is_one_block: bool = True,
        most_frames: int = MAX_FRAMES,
        denominator: int = qm.MAX_L,
        is_exact: bool = False,
    ) -> None:
        """Put a network into device memory; nothing is allocated afterwards.

        Args:
            board: Its image must have the op.
            network: Trained.
            is_float: Whether it computes in float32, instead of uint8.
            is_one_block: Whether all weights are in one block, found by offsets, instead of a block each.
            most_frames: Maximum per pass.
            denominator: L of requantization.
            is_exact: Whether scales follow the truncated multiplier.

        Raises:
            OutOfMemoryError: not enough memory.
        """
        self._cmd = CMD_FLOAT if is_float else CMD_UINT8
        self.board, self.network, self.is_float = board, network, is_float
        self.steps = network.steps()
        self.most_rows = most_frames + 2 * network.context
        packed = pack(network, is_float=is_float)
        self.weights_bytes = packed.weights.nbytes
        parts = [packed.weights] if is_one_block else list(packed.parts.values())
        self._blocks = [board.from_array(part) for part in parts]
        self._steps = board.from_array(packed.steps)
        if not is_one_block:
            places = {name: block.phy_addr for name, block in zip(packed.parts, self._blocks, strict=True)}
            for record, step in zip(
                (StepRecord * len(self.steps)).from_buffer(self._steps.data), self.steps, strict=True
            ):
                record.weights = places.get(step.weights, 0)
        size, widest = (
            (4 if is_float else 1),
            max(network.weights[step.weights].shape[1] for step in self.steps if step.weights),
        )
        first = ALIGN + TENSORS * widest * self.most_rows * size
        self._tensors = board.empty(first + 4 * widest * self.most_rows, np.uint8)
        self._heads = (TensorHead * TENSORS).from_buffer(self._tensors.data)
        for index, head in enumerate(self._heads):
            head.offset = ALIGN + index * widest * self.most_rows * size
        self._output = board.empty(ctypes.sizeof(OutputHead) + widest * most_frames * size, np.uint8)
        self._param = ForwardParam(
            steps=self._steps.phy_addr,
            weights=self._blocks[0].phy_addr if is_one_block else 0,
            tensors=self._tensors.phy_addr,
            weights_bytes=self.weights_bytes,
            tensors_bytes=self._tensors.nbytes,
            sums=first,
            denominator=denominator,
            is_exact=is_exact,
        )

    @property
    def buffers(self) -> int:
        """A call's blocks: parameters, operations, tensors, output, and those of the weights."""
        return 4 + len(self._blocks)

    def modeled(self, *passes: Pass) -> Modeled:
        """Time of passes on the board, by the rule of ``hbrt estimate``; the operations use both vector units."""
        profile = self.board.profile
        call = CallCost(profile.number("rpc.call_us"), profile.number("rpc.buffer_us")).of(self.buffers)
        tasks = [task for one in passes for task in one.tasks]
        moved = sum(ctypes.sizeof(ForwardParam) + self._output.nbytes + task.work.mapped_bytes for task in tasks)
        calls_us = len(tasks) * call + moved / profile.number("rpc.flush_bytes_per_us")
        return Modeled(calls_us / 1000, profile.us(sum(task.cost.cycles for task in tasks)) / VECTOR_UNITS / 1000)

    def __call__(self, rows: Floats, per: Per = Per.FORWARD) -> Pass:
        """A forward pass.

        Args:
            rows: (frames + 2 context, 128) features.
            per: The granularity of calls.

        Raises:
            CallerError: features of another shape, more frames than were allocated, or an image without the op;
                the message says what to do.
            OpFailedError: an operation failed; the message names it.
        """
        self._take(rows)
        tasks, maps, least, head = [], 0, 1 << 31, OutputHead()
        for first, count in self._calls(per):
            is_last = first + count == len(self.steps)
            self._param.first, self._param.count = first, count
            self._param.output_bytes = self._output.nbytes if is_last else ctypes.sizeof(OutputHead)
            task = self.board.submit(self._cmd, self._param, self._output)
            try:
                task.result()
            except UnknownCommandError as error:
                raise CallerError(Status.HB_DSP_UNKNOWN_COMMAND, f"{error.text} {self._advice}") from None
            head = OutputHead.from_buffer_copy(self._output.data)
            tasks.append(task)
            maps += head.maps
            least = min(least, head.least_multiplier)
        if self.is_float:
            shape = (head.tensor.rows, head.tensor.columns)
            data = self._output[ctypes.sizeof(OutputHead) :].view(np.float32)
            return Pass(np.array(data[: shape[0] * shape[1]].reshape(shape)), None, 0, maps, tasks)
        stored = stored_output(self._output)
        return Pass(stored.real(), stored, least, maps, tasks)

    @property
    def _advice(self) -> str:
        source = samples_dir() / "dsp" / "tdnnf_image.c"
        return (
            f"The forward pass needs its own image: 'hbrt cc --dsp -o tdnnf.so {source}', then 'hbrt restart "
            "--image tdnnf.so', or HBRT_IMAGE=tdnnf.so for a private board."
        )

    def _take(self, rows: Floats) -> None:
        if len(rows) > self.most_rows:
            raise CallerError(
                Status.HB_DSP_INVALID_ARGUMENT,
                f"{len(rows)} rows of features exceed the {self.most_rows} that were allocated; split the "
                "recording, or allocate with a larger most_frames.",
            )
        rows = np.ascontiguousarray(rows, np.float32)
        if rows.ndim != 2 or rows.shape[1] != INPUTS:
            raise CallerError(
                Status.HB_DSP_INVALID_ARGUMENT,
                f"Invalid shape of features {rows.shape}: a row must have {INPUTS} numbers, as from rows_of().",
            )
        head = self._heads[INPUT]
        head.rows, head.columns = rows.shape
        if self.is_float:
            head.scale, head.zero_point, values = 1.0, 0, rows.view(np.uint8)
        else:
            stored = qm.quantize(rows)
            head.scale, head.zero_point, values = stored.scale, stored.zero_point, stored.values
        self._tensors[head.offset : head.offset + values.size] = values.reshape(-1)

    def _calls(self, per: Per) -> Iterator[tuple[int, int]]:
        if per is Per.FORWARD:
            yield 0, len(self.steps)
        elif per is Per.OPERATION:
            yield from ((at, 1) for at in range(len(self.steps)))
        else:
            first = 0
            for _, layer in groupby(self.steps, lambda step: step.layer):
                count = len(list(layer))
                yield first, count
                first += count


def pack(network: Network, *, is_float: bool = False) -> Packed:
    """The weights in the op's format: matrices as panels of 32 columns, in uint8 with their sums."""
    stored = {} if is_float else quantized_weights(network)
    parts: dict[str, Bytes] = {}
    for name, values in network.weights.items():
        if name not in stored:
            parts[name] = np.ascontiguousarray(_panels(values)).view(np.uint8).reshape(-1)
        elif len(values) == 1:
            parts[name] = stored[name].values.reshape(-1)
        else:
            panels = _panels(stored[name].values)
            sums = panels.sum(1, dtype=np.int32).view(np.uint8)
            parts[name] = np.concatenate([panels.reshape(len(panels), -1), sums], axis=1).reshape(-1)
    offsets = [0, *np.cumsum([-(-len(part) // ALIGN) * ALIGN for part in parts.values()])]
    weights = np.zeros(offsets[-1], np.uint8)
    places = dict(zip(parts, map(int, offsets), strict=False))
    for name, part in parts.items():
        weights[places[name] : places[name] + len(part)] = part
    steps = network.steps()
    records = (StepRecord * len(steps))(*(_record(step, network, stored, places) for step in steps))
    return Packed(parts, weights, np.frombuffer(bytes(records), np.uint8))


def stored_output(block: NDArray[np.uint8]) -> Matrix:
    """The tensor in an output block of a pass in uint8."""
    head = OutputHead.from_buffer_copy(block.data)
    rows, columns = head.tensor.rows, head.tensor.columns
    values = block[ctypes.sizeof(OutputHead) :][: rows * columns]
    return Matrix(np.array(values).reshape(rows, columns), head.tensor.scale, head.tensor.zero_point)


def _panels(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """(panels, rows, 32) from (rows, columns)."""
    return values.reshape(len(values), -1, BLOCK_COLUMNS).transpose(1, 0, 2)


def _record(step: Step, network: Network, stored: Mapping[str, Matrix], places: Mapping[str, int]) -> StepRecord:
    record = StepRecord(step.kind, step.source, step.target, step.other, step.stride)
    if not step.weights:
        record.scale = step.factor
        return record
    record.terms, record.columns = network.weights[step.weights].shape
    record.weights, record.scale = places[step.weights], 1.0
    if step.weights in stored:
        record.scale, record.zero_point = stored[step.weights].scale, stored[step.weights].zero_point
    return record
