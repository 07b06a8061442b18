"""One matrix product: its sizes, its layouts, and the board memory of A, B and C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from arm_client.accelerator.on_board import Schedule
from rknn_api.capi import matrices
from rknn_api.capi.matrices import KINDS, PLAIN, MatmulTypes, Sizes
from rknn_api.capi.product_graph import SUMS, constants, product_graph
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.python_types import DTYPES
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner
from rknn_api.types import rknn_mem_sync_mode, rknn_tensor_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rknn_api.capi.memory import Held, RknnMemory
    from rknn_api.types import rknn_matmul_info, rknn_matmul_io_attr, rknn_matmul_tensor_attr, rknn_tensor_mem

NORM, NATIVE, TURNED = 0, 1, 2
PER_GROUP: Final = (4, 5)  # from rknn_matmul_quant_type
NAMES: Final = ("A", "B", "C")
_TYPES: Final = {
    **DTYPES,
    "int4": rknn_tensor_type.RKNN_TENSOR_INT4,
    "bfloat16": rknn_tensor_type.RKNN_TENSOR_BFLOAT16,
}


class Matmul:
    """One product: its sizes, its layouts, and the memory of A, B and C."""

    def __init__(
        self, info: rknn_matmul_info, shapes: list[Sizes], chip: str, memory: RknnMemory, priority: int
    ) -> None:
        self.kind: MatmulTypes = KINDS[info.type]
        self.layout = {"A": info.AC_layout, "B": info.B_layout, "C": info.AC_layout}
        self.shapes, self.sizes = shapes, shapes[0]
        self.chip, self.memory = chip, memory
        self.group_size = info.group_size if info.B_quant_type in PER_GROUP else 0
        self.quantized = dict.fromkeys(NAMES, PLAIN)
        self.bound: dict[str, Held] = {}
        self.schedule = Schedule(priority=priority)
        self._runners: dict[Sizes, GraphRunner] = {}

    def dims(self, which: str, sizes: Sizes) -> tuple[int, ...]:
        """Dimensions of a matrix in memory."""
        if self.layout[which] == NATIVE:
            return matrices.native_dims(which, self.kind, sizes, self.chip)
        plain = matrices.plain_dims(which, sizes)
        return plain[::-1] if which == "B" and self.layout[which] == TURNED else plain

    def dtype(self, which: str) -> str:
        """Type of a matrix."""
        return self.kind[NAMES.index(which)]

    def describe(self, attrs: rknn_matmul_io_attr, sizes: Sizes) -> None:
        """Describe A, B and C."""
        for which in NAMES:
            attr: rknn_matmul_tensor_attr = getattr(attrs, which)
            dims = self.dims(which, sizes)
            attr.name, attr.n_dims = which.encode(), len(dims)
            attr.dims[: len(dims)] = dims
            if (size := matrices.size_of(dims, self.dtype(which))) >= 1 << 32:
                raise invalid_parameter(f"{which} has {size} bytes; a matrix must have less than 4 GiB.")
            attr.size = size
            attr.type = _TYPES[self.dtype(which)]

    def bind(self, mem: rknn_tensor_mem, which: str) -> None:
        """Place a matrix in memory."""
        held, needed = self.memory.of(mem), matrices.size_of(self.dims(which, self.sizes), self.dtype(which))
        if held.size < needed:
            raise invalid_parameter(f"The memory has {held.size} bytes, but {which} needs {needed}.")
        self.bound[which] = held

    def run(self) -> None:
        """Multiply, on an NPU core of the board.

        Raises:
            RknnError: RKNN_ERR_FAIL: a matrix has no memory, or the core failed; the message says why.
        """
        if missing := [which for which in NAMES if which not in self.bound or not self.bound[which].is_live]:
            raise RknnError(
                RknnStatus.RKNN_ERR_FAIL, f"{missing[0]} has no memory: call rknn_matmul_set_io_mem for it."
            )
        feeds = {which: np.ascontiguousarray(self._read(which)) for which in ("A", "B")}
        of = self.quantized
        numbers = {"a_zero": of["A"].zero[None]}
        numbers |= {"b_zero": self._along_b(of["B"].zero), "b_scale": self._along_b(of["B"].scale)}
        work = np.float32 if self.kind.a == "float16" else np.float64
        feeds |= {name: numbers[name].astype(work) for name in constants(self.kind)}
        made = matrices.in_type(self.kind, self._runner().run(feeds, self.schedule)[SUMS], of)
        dims = self.dims("C", self.sizes)
        if self.layout["C"] == NATIVE:
            made = matrices.to_native("C", made, dims)
        held = self.bound["C"]
        held.device()[: made.nbytes] = np.ascontiguousarray(made).reshape(-1).view(np.uint8).data
        self.memory.sync(held, rknn_mem_sync_mode.RKNN_MEMORY_SYNC_FROM_DEVICE)

    def close(self) -> None:
        """Release the graphs."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()

    def counts(self, which: str) -> set[int]:
        """How many scales or zero points a matrix may have: one, one per column, or one per group of a column."""
        if which == "A":
            return {1}
        groups = self.sizes.k // self.group_size if self.group_size and which == "B" else 1
        return {1, self.sizes.n, self.sizes.n * groups}

    def _along_b(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Numbers in a shape that broadcasts over B."""
        if numbers.size in {1, self.sizes.n}:
            return numbers[None]
        return np.repeat(numbers.reshape(self.sizes.n, -1), self.group_size, axis=1).T

    def _runner(self) -> GraphRunner:
        if (found := self._runners.get(self.sizes)) is None:
            graph = product_graph(self.kind, self.sizes)
            found = GraphRunner(graph, "the matrix product", CustomOps(), is_on_board=True)
            self._runners[self.sizes] = found
        return found

    def _read(self, which: str) -> Any:
        held = self.bound[which]
        self.memory.sync(held, rknn_mem_sync_mode.RKNN_MEMORY_SYNC_TO_DEVICE)
        found = matrices.unpacked(held.device(), self.dims(which, self.sizes), self.dtype(which))
        if self.layout[which] == NATIVE:
            shape = matrices.plain_dims(which, self.sizes)
            return matrices.from_native(which, found, shape)
        return found.T if which == "B" and self.layout[which] == TURNED else found
