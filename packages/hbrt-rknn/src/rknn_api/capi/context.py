"""A context: the API that its program uses, its inputs and outputs, and a run. Every misuse gets a message.

Emulator: calls in the wrong order return RKNN_ERR_FAIL; the reference specifies no code for it.
"""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from math import prod
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from arm_client.accelerator.on_board import Schedule
from arm_client.cabi.arguments import bytes_of
from rknn_api import layouts, python_types, types
from rknn_api.capi.attributes import Side, View, dims_in, layout_of
from rknn_api.capi.feeding import Form, from_graph, in_place, size_of, to_graph
from rknn_api.capi.op_memory import OpMemory
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.sram import Region
from rknn_api.types import RknnFlag, rknn_input, rknn_output, rknn_tensor_attr, rknn_tensor_mem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rknn_api.capi.memory import Held, RknnMemory
    from rknn_api.capi.model import RknnModel

_LAYOUTS: Final = {int(one): one.name.removeprefix("RKNN_TENSOR_") for one in types.rknn_tensor_format}
ASYNC: Final = int(RknnFlag.RKNN_FLAG_ASYNC_MASK)
_OUTSIDE: Final = int(RknnFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE)  # plain numbers: an enum's "&" takes microseconds
_INTERNAL: Final = int(RknnFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
_INFO_ONLY: Final = int(RknnFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY)


class Way(Enum):
    """The API that a context's program uses."""

    GENERAL = "the general API (rknn_inputs_set, rknn_outputs_get)"
    ZERO_COPY = "the zero-copy API (rknn_set_io_mem)"


class Bound(NamedTuple):
    """Memory set by rknn_set_io_mem for a tensor."""

    held: Held
    form: Form


class Context:
    """One context.

    Args:
        model: Its model, in use until the context is closed.
        memory: Board memory.
        flags: Flags of rknn_init.
        cores: Number of NPU cores on the board.
        priority: Of its tasks in the mailbox.
    """

    def __init__(self, model: RknnModel, memory: RknnMemory, flags: int, cores: int, priority: int) -> None:
        self.model, self.memory, self.flags = model, memory, flags
        self.lock = threading.RLock()
        self._cleans = not flags & int(RknnFlag.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE)
        self._invalidates = not flags & int(RknnFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE)
        self.set: int | None = None if model.sets else 0
        self.run_us: int | None = None
        self.workers = cores
        self.schedule = Schedule(priority=priority)
        self.sram = Region(0, 0)
        self.kept: list[Any] = []  # targets of pointers in a query's result
        self._way: Way | None = None
        self._feeds: dict[int, NDArray[Any]] = {}
        self._results: list[NDArray[Any]] | None = None
        self._before: tuple[int, list[NDArray[Any]]] | None = None  # the previous frame, with RKNN_FLAG_ASYNC_MASK
        self.frame = 0  # the number of the latest run
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[tuple[list[NDArray[Any]], int]] | None = None
        self._given: dict[int, Any] = {}  # buffers of rknn_outputs_get, by address
        self._bound: dict[tuple[bool, int], Bound] = {}
        self._staging = OpMemory(memory)  # the graph's arrays, for tensors that the program has in another form
        self._staged: dict[tuple[bool, int], NDArray[Any]] = {}
        self._outside: dict[str, Held] = {}
        model.users += 1

    # -- shapes

    @property
    def shape_set(self) -> int:
        """The current set of shapes, or the largest before one was chosen."""
        return self.set or 0

    def sides(self, *, is_input: bool) -> list[Side]:
        """The inputs or outputs at the current shapes."""
        return self.model.sides(self.shape_set, is_input=is_input)

    def side(self, index: int, *, is_input: bool) -> Side:
        """One of them.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the index is out of range.
        """
        sides, what = self.sides(is_input=is_input), "input" if is_input else "output"
        if not 0 <= index < len(sides):
            raise invalid_parameter(f"index {index} is out of range; the model has the {what}s 0 to {len(sides) - 1}.")
        return sides[index]

    def choose_shapes(self, attrs: Sequence[rknn_tensor_attr]) -> None:
        """Switch to a set of shapes; inputs and memory must be set again.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the model has no such set, or an attribute does not name an input.
        """
        count = len(self.model.metadata.inputs)
        if len(attrs) != count:
            raise invalid_parameter(f"n_inputs is {len(attrs)}; the model has {count} inputs, and needs all at once.")
        wanted: dict[int, tuple[int, ...]] = {}
        for attr in attrs:
            side = self.side(attr.index, is_input=True)
            layout = _layout(attr.fmt, "fmt")
            want = "NHWC" if side.is_picture else "UNDEFINED"
            if layout != want:
                raise invalid_parameter(f"fmt of the input {side.info.name!r} is {layout}; it must be {want} here.")
            wanted[attr.index] = attr.shape
        found = [
            at
            for at in range(max(1, self.model.sets))
            if all(
                wanted.get(index) == dims_in(side, "NHWC" if side.is_picture else "UNDEFINED", 0)
                for index, side in enumerate(self.model.sides(at, is_input=True))
            )
        ]
        if not found:
            raise invalid_parameter(
                f"The shapes are {[list(one) for _, one in sorted(wanted.items())]}; the model has only the "
                f"{self.model.sets or 1} listed by RKNN_QUERY_INPUT_DYNAMIC_RANGE, each for all inputs at once."
            )
        self.settle()
        self.set = found[0]
        self._feeds, self._results, self._before = {}, None, None
        self._unbind()

    # -- the general API

    def set_inputs(self, inputs: Sequence[rknn_input]) -> None:
        """Copy and convert inputs.

        Raises:
            RknnError: RKNN_ERR_INPUT_INVALID: an input does not fit. RKNN_ERR_FAIL: the context uses the other API.
        """
        self._takes(Way.GENERAL)
        feeds = {}
        for given in inputs:
            sides = self.sides(is_input=True)
            if not 0 <= given.index < len(sides):
                raise _bad_input(
                    f"index {given.index} is out of range; the model has the inputs 0 to {len(sides) - 1}."
                )
            feeds[given.index] = self._fed(sides[given.index], given)
        self._feeds |= feeds

    def _fed(self, side: Side, given: rknn_input) -> NDArray[Any]:
        name = side.info.name
        if given.pass_through:
            layout = layout_of(side, View.NATIVE, self.model.rules)
            stride = (
                layouts.stride_of(side.nchw[3], side.nchw[1], self.model.rules.width_align) if layout == "NHWC" else 0
            )
            form = Form(side.info.stored, layout, stride, 0, is_stored=True, c2=self._c2(side))
            if given.size < size_of(side, form):
                form = form._replace(w_stride=0)
        else:
            dtype = python_types.DTYPE_OF.get(given.type)
            layout = _LAYOUTS.get(given.fmt, "")
            allowed = ("NHWC", "NCHW") if side.is_picture else ("UNDEFINED", "NHWC", "NCHW")
            if dtype is None or layout not in allowed:
                raise _bad_input(
                    f"The input {name!r} has type {given.type} and fmt {given.fmt}; give a type of RKNN_TENSOR_* with "
                    f"whole bytes, and {' or '.join(f'RKNN_TENSOR_{one}' for one in allowed)}."
                )
            if np.dtype(dtype).kind == "f" and np.dtype(side.info.dtype).kind in "iub":
                raise _bad_input(f"The input {name!r} is of {dtype}; the model takes {side.info.dtype}.")
            form = Form(dtype, layout if side.is_picture else "UNDEFINED")
        wanted = size_of(side, form)
        if given.size < wanted:
            raise _bad_input(
                f"The input {name!r} has {given.size} bytes; {form.dtype} {form.layout} of "
                f"{list(dims_in(side, form.layout, form.c2))} has {wanted}."
            )
        if not given.buf:
            raise _bad_input(f"buf of the input {name!r} is NULL.")
        data, kept = bytes_of(given.buf, wanted), np.dtype(side.info.dtype)
        if kept.kind in "iu" and not form.is_stored and not np.can_cast(form.dtype, kept):
            values = np.frombuffer(data, form.dtype)
            low, high = int(values.min(initial=0)), int(values.max(initial=0))
            if low < np.iinfo(kept).min or high > np.iinfo(kept).max:
                raise _bad_input(f"The input {name!r} has the values {low} to {high}; the model takes {kept}.")
        return to_graph(data, side, form)

    @property
    def lags(self) -> bool:
        """Whether the previous frame's outputs are returned: with RKNN_FLAG_ASYNC_MASK, after the first frame."""
        return self._before is not None

    def get_outputs(self, outputs: Sequence[rknn_output]) -> int:
        """Convert and copy outputs.

        Returns:
            The number of the run that produced them.

        Raises:
            RknnError: RKNN_ERR_OUTPUT_INVALID: an output does not fit. RKNN_ERR_FAIL: the model has not been run, or
                the context uses the other API.
        """
        self._takes(Way.GENERAL)
        if self._before is None:
            self.settle()
        frame, results = self._before or (self.frame, self._results)
        if results is None:
            raise _out_of_order("No output yet: call rknn_run after rknn_inputs_set.")
        sides, made = self.sides(is_input=False), []
        is_by_place = len(outputs) > 1 and not any(wanted.index for wanted in outputs)  # index was omitted
        for place, wanted in enumerate(outputs):
            index = place if is_by_place else wanted.index
            if not 0 <= index < len(sides):
                raise _bad_output(f"index {index} is out of range; the model has the outputs 0 to {len(sides) - 1}.")
            side = sides[index]
            form = Form("float32" if wanted.want_float else side.info.stored, side.info.layout)
            result = results[index]
            array = from_graph(result, side, form)
            if not wanted.is_prealloc and np.may_share_memory(array, result):
                array = array.copy()  # the program may write there, and request the output again
            if wanted.is_prealloc and (not wanted.buf or wanted.size < array.nbytes):
                raise _bad_output(
                    f"The output {side.info.name!r} has {array.nbytes} bytes, but the buffer at {wanted.buf or 0:#x} "
                    f"has {wanted.size}; use one of that size, or is_prealloc = 0."
                )
            made.append((wanted, array))
        for wanted, array in made:
            if wanted.is_prealloc:
                ctypes.memmove(wanted.buf or 0, array.ctypes.data, array.nbytes)
            else:
                self._given[array.ctypes.data] = array
                wanted.buf = array.ctypes.data
            wanted.size = array.nbytes
        return frame

    def release_outputs(self, outputs: Sequence[rknn_output]) -> None:
        """Free the buffers that get_outputs allocated.

        Raises:
            RknnError: RKNN_ERR_OUTPUT_INVALID: a buffer was not allocated by it, or was already released.
        """
        for output in outputs:
            if output.is_prealloc:
                continue
            if self._given.pop(output.buf or 0, None) is None:
                raise _bad_output(
                    f"The buffer at {output.buf or 0:#x} was not allocated by rknn_outputs_get, or was released."
                )
            output.buf = None

    # -- the zero-copy API

    def bind(self, mem: rknn_tensor_mem, attr: rknn_tensor_attr) -> None:
        """Place a tensor in board memory.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the attribute does not match a tensor, or has a change that is not
                permitted, or the memory is too small. RKNN_ERR_FAIL: the context uses the other API.
        """
        held = self.memory.of(mem)
        is_input, index = self._named(attr)
        side = self.side(index, is_input=is_input)
        form = self._form(side, attr)
        wanted = size_of(side, form)
        if held.size < wanted:
            raise invalid_parameter(
                f"The memory at {held.phy_addr:#x} has {held.size} bytes, but {side.info.name!r} needs {wanted}: "
                "allocate size_with_stride, or size if the type was changed."
            )
        self._takes(Way.ZERO_COPY)
        self._bound[is_input, index] = Bound(held, form)

    def _named(self, attr: rknn_tensor_attr) -> tuple[bool, int]:
        """Whether an attribute belongs to an input, and its index: by name, as both kinds count from 0."""
        for is_input in (True, False):
            for index, side in enumerate(self.sides(is_input=is_input)):
                if attr.index == index and attr.name == side.info.name.encode()[: types.RKNN_MAX_NAME_LEN - 1]:
                    return is_input, index
        raise invalid_parameter(
            f"The attribute has index {attr.index} and name {attr.name.decode(errors='replace')!r}, which is not a "
            "tensor "
            "of the model: take it from rknn_query."
        )

    def _form(self, side: Side, attr: rknn_tensor_attr) -> Form:
        name, dtype = side.info.name, python_types.DTYPE_OF.get(attr.type, "")
        layout = _layout(attr.fmt, f"fmt of {name!r}")
        if not side.is_input and not side.is_picture and layout == "NCHW":
            layout = "UNDEFINED"  # the guide's sample sets NCHW on each output
        edits = (layouts.INPUT_EDITS if side.is_input else self.model.rules.output_edits).get(
            side.info.stored, (side.info.stored,)
        )
        if dtype not in edits:
            raise invalid_parameter(
                f"The type of {name!r} is {dtype or attr.type}; the model's is {side.info.stored}; it may be "
                f"{' or '.join(edits)} here."
            )
        views = (View.PLAIN, View.NATIVE, View.NATIVE_NHWC, View.CURRENT)
        told = {layout_of(side, view, self.model.rules) for view in views}
        permitted = told if side.is_input else {one for had in told for one in layouts.OUTPUT_LAYOUTS[had]}
        if side.is_input and side.is_picture:
            permitted |= {"NHWC"}
        if layout not in permitted:
            raise invalid_parameter(
                f"fmt of {name!r} is {layout}; it must be {' or '.join(sorted(permitted))} on this chip."
            )
        c2 = self._c2(side)
        dims = dims_in(side, layout, c2)
        is_nhwc = side.is_input and layout == "NHWC"
        # As in the guide's sample: the program normalizes and quantizes int8, the NPU uint8.
        is_stored = bool(attr.pass_through) or (dtype == side.info.stored and dtype in {"int8", "int16"})
        form = Form(
            dtype,
            # By the guide, an NC1HWC2 input is stored as NHWC unless it passes through.
            "NHWC" if side.is_input and layout == "NC1HWC2" and not attr.pass_through else layout,
            attr.w_stride if is_nhwc else 0,
            attr.h_stride if is_nhwc else 0,
            is_stored=is_stored,
            c2=c2,
        )
        if is_nhwc and (0 < form.w_stride < dims[2] or 0 < form.h_stride < dims[1]):
            raise invalid_parameter(
                f"{name!r} has w_stride {form.w_stride} and h_stride {form.h_stride}, less than its {dims[2]} columns "
                f"and {dims[1]} rows."
            )
        # The guide's text changes the size with the type; its samples keep the queried one.
        edited, element = prod(dims) * np.dtype(dtype).itemsize, np.dtype(side.info.stored).itemsize
        if attr.size not in {edited, *(prod(dims_in(side, one, c2)) * element for one in told)}:
            raise invalid_parameter(
                f"size of {name!r} is {attr.size}; {list(dims)} of {dtype} has {edited} bytes: set that, or keep "
                "the size from rknn_query."
            )
        return form

    def _c2(self, side: Side) -> int:
        return self.model.rules.c2.get(side.info.stored, 0)

    def set_outside(self, what: str, mem: rknn_tensor_mem, needed: int) -> None:
        """Use the program's memory for weights or internal tensors.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: it is too small. RKNN_ERR_FAIL: rknn_init did not request it, or the
                context has already run.
        """
        held = self.memory.of(mem)
        flags = (_OUTSIDE | _INTERNAL) if what == "internal" else _OUTSIDE
        if not self.flags & flags:
            raise _out_of_order(
                f"The context has its own {what} memory: pass RKNN_FLAG_MEM_ALLOC_OUTSIDE"
                f"{' or RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE' if what == 'internal' else ''} to rknn_init."
            )
        if self.run_us is not None:
            raise _out_of_order(f"The context has run: set its {what} memory before the first rknn_run.")
        if held.size < needed:
            raise invalid_parameter(
                f"The {what} memory has {held.size} bytes; {needed} are needed, see RKNN_QUERY_MEM_SIZE."
            )
        self._outside[what] = held

    # -- a run

    def run(self, *, is_waited: bool = True) -> int:
        """Run once with the inputs that were set.

        Args:
            is_waited: Return once the outputs are ready. Otherwise, a run of the general API continues in the
                background and ``settle`` waits for it; a run of the zero-copy API always blocks, since nothing would
                report its end.

        Returns:
            The number of the run, from 1.

        Raises:
            RknnError: RKNN_ERR_FAIL: an input was not set, or the run or the previous background run failed.
        """
        self.settle()
        self._check_ready()
        inputs = self.sides(is_input=True)
        if self.flags & ASYNC and self._results is not None:
            self._before = self.frame, self._results
        self.frame += 1
        self._results = None
        if self._way is Way.ZERO_COPY:
            self._run_in_place(inputs)
            return self.frame
        feeds = [self._feeds[index] for index in range(len(inputs))]
        if not is_waited:
            self._thread = self._thread or ThreadPoolExecutor(1, "rknn_run")
            self._pending = self._thread.submit(self._timed, feeds)
            return self.frame
        self._results, self.run_us = self._timed(feeds)
        return self.frame

    def _run_in_place(self, inputs: Sequence[Side]) -> None:
        """Run on the program's own memory; tensors in another format are converted in separate memory."""
        outputs = self.sides(is_input=False)
        feeds = [self._read(index, side, self._bound[True, index]) for index, side in enumerate(inputs)]
        bounds = [self._bound[False, index] for index in range(len(outputs))]
        own = [in_place(one.held.device(), side, one.form) for side, one in zip(outputs, bounds, strict=True)]
        places = [
            self._stage((False, index), side) if place is None or _shares(place, feeds) else place
            for index, (side, place) in enumerate(zip(outputs, own, strict=True))
        ]
        results, self.run_us = self._timed(feeds, places)
        for side, bound, place, result in zip(outputs, bounds, own, results, strict=True):
            if result is not place:
                made = from_graph(result, side, bound.form)
                bound.held.device()[: made.nbytes] = made.reshape(-1).view(np.uint8).data
            if self._invalidates:
                self.memory.sync(bound.held, types.rknn_mem_sync_mode.RKNN_MEMORY_SYNC_FROM_DEVICE)

    def _timed(
        self, feeds: list[NDArray[Any]], places: Sequence[NDArray[Any] | None] = ()
    ) -> tuple[list[NDArray[Any]], int]:
        start = perf_counter_ns()
        results = self.model.run(feeds, self._workers(), self.schedule, places)
        return results, max(1, (perf_counter_ns() - start) // 1000)

    def wait(self) -> None:
        """Wait for a background run before taking the lock, since a callback of the program may need the lock."""
        if (pending := self._pending) is not None:
            pending.exception()

    def settle(self) -> None:
        """Wait for a background run; raises its error."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._results, self.run_us = pending.result()

    def _workers(self) -> int:
        """Number of batch images that run concurrently."""
        cores = self.schedule.cores.bit_count()
        return min(self.workers, cores) if cores else self.workers

    def _check_ready(self) -> None:
        if self.flags & _INFO_ONLY:
            raise _out_of_order(
                "The context was created with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY: it cannot run the model."
            )
        if missing := self.model.prepare():
            raise _out_of_order(
                f"The model has the custom ops {missing}, for which nothing is registered: call "
                "rknn_register_custom_ops after rknn_init."
            )
        if self.set is None:
            raise _out_of_order("The model has several shapes: call rknn_set_input_shapes before the first rknn_run.")
        if self.flags & (_OUTSIDE | _INTERNAL) and not self._has_outside("internal") and self.model.internal_bytes:
            raise _out_of_order(
                "The program supplies the internal memory, by a flag of rknn_init: call rknn_set_internal_mem."
            )
        if self.flags & _OUTSIDE and not self._has_outside("weight") and self.model.weight_bytes:
            raise _out_of_order(
                "The program supplies the weights, by RKNN_FLAG_MEM_ALLOC_OUTSIDE: call rknn_set_weight_mem."
            )
        for is_input in (True, False):
            for index, side in enumerate(self.sides(is_input=is_input)):
                bound = self._bound.get((is_input, index))
                if self._way is Way.ZERO_COPY and (bound is None or not bound.held.is_live):
                    gone = " anymore" if bound else ""
                    raise _out_of_order(
                        f"{side.info.name!r} has no memory{gone}: call rknn_set_io_mem for each tensor."
                    )
                if self._way is not Way.ZERO_COPY and is_input and index not in self._feeds:
                    raise _out_of_order(f"The input {side.info.name!r} was not set: call rknn_inputs_set for it.")

    def _has_outside(self, what: str) -> bool:
        return what in self._outside and self._outside[what].is_live

    def _read(self, index: int, side: Side, bound: Bound) -> NDArray[Any]:
        if self._cleans:
            self.memory.sync(bound.held, types.rknn_mem_sync_mode.RKNN_MEMORY_SYNC_TO_DEVICE)
        raw = bound.held.device()
        own = in_place(raw, side, bound.form)
        return to_graph(raw, side, bound.form, self._stage((True, index), side)) if own is None else own

    def _stage(self, key: tuple[bool, int], side: Side) -> NDArray[Any] | None:
        """The graph's array of a tensor, in board memory; None if only a run determines its size."""
        if min(side.shape, default=0) < 0:
            return None
        staged = self._staged.get(key)
        if staged is None:
            staged = self._staged[key] = self._staging.array(side.shape, np.dtype(side.info.dtype))
        return staged

    def _unbind(self) -> None:
        self._bound.clear()
        self._staged.clear()
        self._staging.close()

    def close(self) -> None:
        """Release the model and the program's memory, once no run continues."""
        if self._thread is not None:
            self._thread.shutdown()
        self._unbind()
        self._outside.clear()
        self._given.clear()
        self.model.users -= 1
        if not self.model.users:
            self.model.close()

    def _takes(self, way: Way) -> None:
        before = self._way or way
        if before is not way:
            raise _out_of_order(
                f"The context uses {before.value}; it cannot be mixed with {way.value}: create "
                "another context with rknn_init or rknn_dup_context."
            )
        self._way = way


def _shares(place: NDArray[Any], feeds: Sequence[NDArray[Any]]) -> bool:
    """Whether an output overlaps an input: a layer would then overwrite data that another one still reads."""
    return any(np.may_share_memory(place, feed) for feed in feeds)


def _layout(number: int, what: str) -> str:
    if number not in _LAYOUTS:
        raise invalid_parameter(
            f"Invalid {what} {number}: must be one of RKNN_TENSOR_{', RKNN_TENSOR_'.join(_LAYOUTS.values())}."
        )
    return _LAYOUTS[number]


def _out_of_order(sentence: str) -> RknnError:
    return RknnError(RknnStatus.RKNN_ERR_FAIL, sentence)


def _bad_input(sentence: str) -> RknnError:
    return RknnError(RknnStatus.RKNN_ERR_INPUT_INVALID, sentence)


def _bad_output(sentence: str) -> RknnError:
    return RknnError(RknnStatus.RKNN_ERR_OUTPUT_INVALID, sentence)
