"""Models on a board's accelerator cores: each loads the model file and runs it as tasks in the board's mailbox."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.accelerator.device_memory import DeviceMemory
from arm_client.accelerator.model_file import ModelFile
from arm_client.accelerator.placement import FOUR_BITS, runs_on_core
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.session.session import Session as BoardSession, attached
from hbrt import settings
from hbrt.accelerators.model_time import time_of_model
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import FIRST_END, State
from hbrt.models.errors import GraphError, Reason
from hbrt.models.run import accelerator
from hbrt.models.run.accelerator import CMD, HEADER, LENGTH, LOAD_PRIORITY, STOP_AT, Request, Tensor
from hbrt.models.run.bound_session import Outputs, Values, array_of
from hbrt.models.run.ort_session import output_types
from hbrt.models.run.session import LocalSession, Session
from hbrt.models.run.shared_session import trim_heap
from hbrt.models.run.stop import Stop
from hbrt.models.spec.dtypes import NUMPY_TYPES
from hbrt.models.spec.graph import described
from hbrt.models.spec.spec import DYNAMIC
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, ValueInfoProto

_ANSWER_BYTES = 64 << 10
_FIRST_BYTES = 4096  # for an output of unknown size
_UNSERVED = "No core that runs models is running; see 'hbrt status', then 'hbrt restart --core N'."


class Schedule(NamedTuple):
    """How a run's task is scheduled.

    Attributes:
        cores: Bit i is accelerator core i; 0 for any.
        priority: As in the mailbox: 0 to 255, larger first.
        custom_id: Smaller first among equal priorities.
    """

    cores: int = 0
    priority: int = 0
    custom_id: int = 0


_MAX_NAME = 80  # characters
_ANY = Schedule()


def load(
    proto: ModelProto,
    label: str,
    threads: int | None,
    *,
    is_segment: bool = False,
    schedule: Callable[[Any], Schedule] = lambda ctrl: ctrl,
) -> Session:
    """Load a model, or a segment of one, on the board's accelerator cores; in this process if ``placement`` says so.

    In this process, too, if the cores cannot serve it: without a board of this machine, with HBRT_BPU=inline, in a
    program that is its own core or that uses a relay.

    Args:
        proto: The model.
        label: Its name in error messages.
        threads: Threads of its session; None for the runtime's choice.
        is_segment: Whether it is the part of a model not run by layers.
        schedule: Returns a run's schedule from the ``ctrl`` of its API.

    Raises:
        GraphError: as for ``make_session``.
    """
    board = _board() if runs_on_core(proto, is_segment=is_segment) else None
    if board is None:
        return LocalSession(proto, label, threads)
    made = OnBoard(board, proto, label, threads, schedule)
    if made.is_of_numbers:
        return made
    made.close()
    return LocalSession(proto, label, threads)


def _name_of(label: str, proto: ModelProto) -> str:
    """Return a model's name for lists: the file or quoted name in its label, else its graph's name."""
    whole, _, quoted = label.partition(", segment ")[0].partition("'")
    name = quoted.rstrip("'") or (Path(whole).name if Path(whole).suffix else proto.graph.name)
    return name.replace("\0", "")[:_MAX_NAME].encode("utf-8", "replace").decode()  # a file name may contain any bytes


def is_inline() -> bool:
    """Whether HBRT_BPU makes models run in the program's own process."""
    return settings.choice("HBRT_BPU") == "inline"


def _board() -> BoardSession | None:
    if is_inline():
        return None
    try:
        session = attached()
    except RequestRefusedError:
        return None
    return session if session.tasks.carrier.reaches_accelerators and session.link.accelerators else None


class OnBoard:
    """A model on the accelerator cores. Each core loads it when it first runs it."""

    def __init__(
        self,
        board: BoardSession,
        proto: ModelProto,
        label: str,
        threads: int | None,
        schedule: Callable[[Any], Schedule],
    ) -> None:
        """Have a core load it.

        Raises:
            GraphError: the core's reason for refusing it.
        """
        self._label = label
        self._name = _name_of(label, proto)
        self._threads = threads or 0
        self._schedule = schedule
        data = proto.SerializeToString()
        self._board = board
        self._has_run = False
        # An NPU computes real numbers in float16; on a BPU, a float model represents a quantized one.
        float_bits = 16 if board.profile.accelerator == "npu" else None
        self._time = time_of_model(proto, board.profile.chip, float_bits)
        self._file = self._placed(data)
        del data
        try:
            inputs, outputs = self._loaded()
        except BaseException:
            self._file.close()
            raise
        self.inputs: list[str] = inputs
        self._types = output_types((name, kind, shape) for name, kind, shape in outputs)
        declared = {value.name: value for value in proto.graph.output}
        self.outputs = {name: _kind_of(entry, declared.get(name)) for name, entry in self._types.items()}

    is_elsewhere = True

    def reader(self) -> Callable[[], ModelProto]:
        """See ``Session.reader``."""
        return self._file.reader()

    @property
    def is_of_numbers(self) -> bool:
        """Whether all outputs are tensors that a core can write."""
        return None not in self.outputs.values()

    def output_types(self) -> dict[str, ValueInfoProto]:
        """See ``Session.output_types``."""
        return self._types

    def bind(
        self, inputs: Sequence[str], outputs: Sequence[str], buffers: Mapping[str, NDArray[Any]] | None = None
    ) -> BoundOnBoard:
        """See ``Session.bind``."""
        if not self._has_run:
            self._has_run = True
            trim_heap()  # of the model: whoever loaded it may release their copies
        device = DeviceMemory(self._label)
        if device.session is not self._board:  # the board was restarted, or this is a forked child
            before, self._board = self._file, device.session
            self._file = self._placed(before.reader()().SerializeToString())
            before.close()
        return BoundOnBoard(
            device,
            Request(self._file.key, self._threads, (), (), *self._time),
            self._schedule,
            inputs,
            outputs,
            self.outputs,
            buffers or {},
        )

    def close(self) -> None:
        """See ``Session.close``."""
        self._file.close()

    def _placed(self, data: bytes) -> ModelFile:
        try:
            self._board.link.request("accelerators", model=self._name)
            return ModelFile(self._board.link.paths.path, data)
        except (OSError, RequestRefusedError) as error:
            raise GraphError(Reason.NO_MEMORY, f"Cannot pass {self._label} to the board: {error}") from None

    def _loaded(self) -> tuple[list[str], list[tuple[str, str, list[Any]]]]:
        """A core's description of the model after loading it."""
        device = DeviceMemory(self._label)
        try:
            asked = _Asked(device, _ANSWER_BYTES)
            asked.describe(accelerator.pack(Request(self._file.key, self._threads)))
            inputs, outputs = asked.run(Stop(), 0, LOAD_PRIORITY, 0, self._label)
            return inputs, [(name, kind, shape) for name, kind, shape in outputs]
        finally:
            device.close()


class _Asked:
    """The request and answer blocks of one task at a time."""

    def __init__(self, device: DeviceMemory, answer_bytes: int = 4096) -> None:
        self._device = device
        self._tasks = device.session.tasks
        self._first = device.session.link.core_count
        self._count = device.session.link.accelerators
        self._answer = device.array((answer_bytes,), np.dtype(np.uint8))
        self._asked = device.array((4096,), np.dtype(np.uint8))
        self._blocks = (-1, 0, 0, 0)  # not a valid task number, until the first description
        self._handle = 0
        self._stop = Stop()

    def describe(self, raw: bytes) -> None:
        """Write the description for the next runs."""
        size = HEADER.size + len(raw)
        if size > len(self._asked):
            self._asked = self._device.array((size,), np.dtype(np.uint8))
        self._asked[HEADER.size : size] = np.frombuffer(raw, np.uint8)
        HEADER.pack_into(self._asked.data, 0, 0, len(raw))
        self._blocks = (_phy(self._device, self._asked), size, _phy(self._device, self._answer), len(self._answer))

    def run(self, stop: Stop, cores: int, priority: int, custom_id: int, label: str) -> list[Any]:
        """Queue the task and wait for it; returns the fields of the answer, if any.

        Raises:
            GraphError: RUN_FAILED: the core died, the board is gone, or the run was canceled; otherwise the core's
                error.
        """
        self.begin(stop, cores, priority, custom_id)
        return self.finish(label)

    def begin(self, stop: Stop, cores: int, priority: int, custom_id: int) -> None:
        """Queue the task; ``finish`` or ``release`` follows.

        Raises:
            GraphError: RUN_FAILED: no core available, the board is gone, or the run was already canceled.
        """
        self._asked[STOP_AT] = 0
        LENGTH.pack_into(self._answer.data, 0, 0)
        mask = (cores or (1 << self._count) - 1) & (1 << self._count) - 1
        self._handle = 0
        self._stop = stop
        stop.hook = self._end
        try:
            self._handle = self._queue(stop, mask, priority, custom_id)
        except BaseException:  # anything that interrupts the thread, anywhere
            self.release()
            raise

    def _queue(self, stop: Stop, mask: int, priority: int, custom_id: int) -> int:
        if stop.is_set:
            raise GraphError(Reason.RUN_FAILED, "The task was canceled before it ran.")
        handle: int = self._tasks.accelerate(CMD, priority, mask << self._first, custom_id, *self._blocks)
        if handle < 0:
            why = self._tasks.why() if self._device.session.link.fault else _UNSERVED
            raise GraphError(Reason.RUN_FAILED, why)
        return handle

    def waiter(self) -> Callable[[float], bool]:
        """Return a function that waits for the started task; ``finish`` must still be called."""
        wait, handle = self._tasks.wait, self._handle
        return lambda timeout_ms: wait(handle, timeout_ms) != Status.HB_DSP_TIMEOUT

    def ended_ns(self) -> int:
        """When the started task ended, CLOCK_MONOTONIC in ns; 0 before that, and after ``finish``."""
        handle = self._handle
        state = self._tasks.state(handle)
        return self._tasks.answer(handle).done_ns if state is not None and state >= FIRST_END else 0

    def finish(self, label: str) -> list[Any]:
        """Wait for the started task; returns and raises like ``run``."""
        tasks = self._tasks
        try:
            status = tasks.finish(self._handle)
            text = tasks.why() if status else ""
            if status:
                tasks.release(self._handle)
        except BaseException:
            self.release()
            raise
        finally:
            self._stop.hook = None
        has_answer = LENGTH.unpack_from(self._answer.data)[0]
        if status == 0:
            return accelerator.unpack_answer(self._answer.data) if has_answer else []
        if not has_answer:
            raise GraphError(Reason.RUN_FAILED, text)
        reason, why = accelerator.unpack_answer(self._answer.data)
        raise GraphError(Reason[reason], why.replace("refuses the model", f"refuses {label}"))

    def release(self) -> None:
        """End and release the queued task, if any: the tensors are not written after this."""
        tasks = self._tasks
        self._stop.hook = None
        for handle in tasks.live_handles():
            if tasks.mailbox.request(handle & SLOT_MASK).input_phy == self._blocks[0]:
                self._handle = handle
                self._end()
                while tasks.state(handle) in {State.SENT, State.READY, State.RUNNING}:
                    tasks.wait(handle, 0)
                tasks.release(handle)

    def _end(self) -> None:
        """Cancel the run: at once if no core has started it, otherwise at the next node."""
        self._asked[STOP_AT] = 1
        if self._handle and self._tasks.state(self._handle) is State.READY:
            self._tasks.cancel(self._handle)


class _Output(NamedTuple):
    """What is known about an output before a run; sizes are None if only the run determines them."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None


class _Begun(NamedTuple):
    """An unfinished run."""

    values: Values
    inputs: tuple[Tensor, ...]
    wanted: list[Tensor | None]
    unsized: dict[str, _Output]
    stop: Stop
    schedule: Schedule


class BoundOnBoard:
    """A model with its tensors, as described to a core. Tensors outside device memory are copied there."""

    def __init__(
        self,
        device: DeviceMemory,
        request: Request,
        schedule: Callable[[Any], Schedule],
        inputs: Sequence[str],
        outputs: Sequence[str],
        known: Mapping[str, _Output | None],
        buffers: Mapping[str, NDArray[Any]],
    ) -> None:
        self._device = device
        self._request, self._schedule = request, schedule
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._known = known
        self._buffers = buffers
        self._fixed = [name for name in outputs if name in buffers]
        self._asked = _Asked(device)
        self._rooms: dict[str, NDArray[np.uint8]] = {}
        self._told: tuple[Tensor, ...] = ()  # from the last run
        self._places: dict[str, tuple[NDArray[Any], Tensor]] = {}  # for arrays of the last runs in the DDR
        self._begun: _Begun | None = None
        self._sizes: dict[str, tuple[int, ...]] = {}  # of the last outputs whose sizes the run determined, and these
        self._made: Values = {}

    @property
    def is_usable(self) -> bool:
        """See ``Bound.is_usable``."""
        return self._device.is_usable

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any = None) -> None:
        """See ``Bound.run``."""
        self.begin(values, outputs, stop, ctrl)
        self.finish()

    def begin(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> Callable[[float], bool]:
        """See ``BoundElsewhere.begin``."""
        if not self._outputs:
            return lambda _: True
        device = self._device
        inputs = tuple(self._given(name, array_of(values[name])) for name in self._inputs)
        wanted: list[Tensor | None] = []
        unsized: dict[str, _Output] = {}
        for name in self._outputs:
            target = outputs.get(name, self._buffers.get(name))
            told = None if target is None else self._place_of(name, target)
            if target is None or told is None:
                known = self._known[name]
                assert known is not None  # noqa: S101 - such a model is not loaded here
                if known.shape is None:
                    unsized[name] = known
                    wanted.append(None)
                    continue
                target = self._room(name, known.dtype, known.shape)
                told = _told(name, _phy(device, target), target)
            values[name] = target
            wanted.append(told)
        self._begun = begun = _Begun(
            values, inputs, wanted, unsized, stop, _ANY if ctrl is None else self._schedule(ctrl)
        )
        self._ask(begun)
        return self._asked.waiter()

    def ended_ns(self) -> int:
        """See ``BoundElsewhere.ended_ns``."""
        return self._asked.ended_ns()

    def finish(self) -> None:
        """See ``BoundElsewhere.finish``."""
        begun = self._begun
        if begun is None:
            return
        unsized, values = begun.unsized, begun.values
        while True:
            answer = self._asked.finish("the model")
            if not unsized:
                break
            made = dict(zip(unsized, map(tuple, answer[0]), strict=True))
            if made == self._sizes:
                values.update(self._made)
                break
            if all(_size(unsized[name].dtype, shape) <= len(self._rooms[name]) for name, shape in made.items()):
                self._made = {name: self._room(name, unsized[name].dtype, shape) for name, shape in made.items()}
                self._sizes = made
                values.update(self._made)
                break
            for name, shape in made.items():  # and run again
                self._bytes(name, _size(unsized[name].dtype, shape))
            self._ask(begun)
        self._begun = None
        for name in self._fixed:
            buffer = self._buffers[name]
            if values[name] is not buffer:  # it is not device memory
                buffer[...] = values[name]
                values[name] = buffer

    def close(self) -> None:
        """See ``Bound.close``."""
        if self._begun is not None:
            self._asked.release()
            self._begun = None
        self._device.close()

    def _ask(self, begun: _Begun) -> None:
        tensors = (
            *begun.inputs,
            *(one or self._open(name, begun) for name, one in zip(self._outputs, begun.wanted, strict=True)),
        )
        if tensors != self._told:
            self._told = ()
            count = len(begun.inputs)
            asked = self._request._replace(inputs=tensors[:count], outputs=tensors[count:])
            self._asked.describe(accelerator.pack(asked))
            self._told = tensors
        self._asked.begin(begun.stop, *begun.schedule)

    def _open(self, name: str, begun: _Begun) -> Tensor:
        room = self._bytes(name, _FIRST_BYTES)
        seen = self._places.get(name)
        if seen is not None and seen[0] is room:
            return seen[1]
        told = Tensor(name, _phy(self._device, room), begun.unsized[name].dtype.str, None, room.nbytes)
        self._places[name] = room, told
        return told

    def _given(self, name: str, array: NDArray[Any]) -> Tensor:
        told = self._place_of(name, array)
        if told is None:
            staged = self._room(name, array.dtype, array.shape)
            staged[...] = array
            return _told(name, _phy(self._device, staged), staged)
        return told

    def _place_of(self, name: str, array: NDArray[Any]) -> Tensor | None:
        """The description of an array for a core; None if it is not in the DDR."""
        seen = self._places.get(name)
        if seen is not None and seen[0] is array:
            return seen[1]
        phy_addr = self._device.phy_addr_of(array) if array.size else 0
        if phy_addr is None:
            return None
        told = _told(name, phy_addr, array)
        self._places[name] = array, told
        return told

    def _room(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        size = _size(dtype, shape)
        return self._bytes(name, size)[:size].view(dtype).reshape(shape)

    def _bytes(self, name: str, size: int) -> NDArray[np.uint8]:
        """Device memory for one value, which grows as needed."""
        have = self._rooms.get(name)
        if have is None or len(have) < size:
            size = max(size, 64, 2 * len(have) if have is not None else 0)
            have = self._rooms[name] = self._device.array((size,), np.dtype(np.uint8))
        return have


def _told(name: str, phy_addr: int, array: NDArray[Any]) -> Tensor:
    return Tensor(name, phy_addr if array.size else 0, array.dtype.str, array.shape)


def _size(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    return math.prod(shape) * dtype.itemsize


def _phy(device: DeviceMemory, array: NDArray[Any]) -> int:
    at = device.phy_addr_of(array)
    assert at is not None  # noqa: S101 - the caller has made it there
    return at


def _kind_of(entry: ValueInfoProto, declared: ValueInfoProto | None) -> _Output | None:
    """Return what is known about an output; None if it is not a numeric tensor, or has four-bit elements."""
    kind = entry.type.tensor_type.elem_type
    if kind not in NUMPY_TYPES or kind in FOUR_BITS:
        return None
    _, shape = described(entry)
    if shape is None and declared is not None:  # onnxruntime reports scalars and unknown ranks alike
        _, shape = described(declared)
    return _Output(NUMPY_TYPES[kind], None if shape is None or DYNAMIC in shape else shape)
