"""The op of an accelerator core: model sessions, one shared by all programs, run on tensors in the DDR."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dsp_server import runtime
from dsp_server.hardware import cycles
from hbrt.ddr.layout import CLIENT_GONE, TABLES_GENERATION
from hbrt.models.errors import GraphError, Reason
from hbrt.models.loading.model_file import read_file
from hbrt.models.run.accelerator import (
    HEADER,
    STOP_AT,
    Failed,
    Loaded,
    Request,
    Sizes,
    Tensor,
    file_of,
    pack_answer,
    unpack,
)
from hbrt.models.run.ort_session import run_failed, thread_count
from hbrt.models.run.shared_session import shared_session
from hbrt.models.run.stop import Stop
from hbrt.profiles.work import DMA_BYTES
from hbrt.status import Status

if TYPE_CHECKING:
    import onnxruntime as ort
    from numpy.typing import NDArray

    from dsp_server.hardware.tile_manager import TileManager

_GENERATION: Final = slice(TABLES_GENERATION, TABLES_GENERATION + 8)
_MAX_KEPT = 64  # bindings per model; programs use a few buffers in turn
_LOOK_S = 0.02  # how late a run may notice that its program wants it to end
_IDLE_S = 2.0


_Wish: TypeAlias = Callable[[], bool]


@dataclass(eq=False, slots=True)
class _Bound:
    """A session with its tensors bound according to a description.

    Attributes:
        ranges: (physical address, bytes) of what it reads and writes.
        unsized: Address and capacity of outputs whose sizes are known only after the run.
        answer: Their sizes in the last run, packed, while the next run is bound to give the same ones.
        is_constant: Whether no run has given other sizes than the run before it.
        modeled_ns: How long a run takes on the board.
        ddr_bytes: How many bytes it moves there.
        allowed: Which program may use the memory, and the generation of the memory tables that said so.
    """

    session: ort.InferenceSession
    binding: Any
    ranges: tuple[tuple[int, int], ...]
    unsized: tuple[tuple[int, Tensor], ...]
    modeled_ns: int
    ddr_bytes: int
    answer: bytes = b""
    is_constant: bool = True
    allowed: tuple[int, bytes] | None = None


class _Model:
    """A model's session, and what is bound to it."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.session = shared_session(path, lambda: read_file(path).proto, "the model", threads)
        self.bound: dict[bytes, _Bound] = {}


class Accelerator:
    """All of one core's models."""

    def __init__(self) -> None:
        self._board = Path(sys.argv[4]).parent if len(sys.argv) > 4 else Path()
        self._models: dict[tuple[str, int], _Model] = {}
        self._running: list[tuple[_Wish, Stop]] = []  # an urgent task may interrupt another
        self._stops: list[Stop] = []  # used by no run, and not set
        self._lock = threading.RLock()  # an interrupted task may hold it
        self._wake = threading.Event()
        self._is_looking = False
        self._ended_at = 0.0

    def model(self, input: memoryview, output: memoryview, tm: TileManager) -> int:  # noqa: ARG002 - an op's signature
        """Load a model, or run it."""
        _, size = HEADER.unpack_from(input)
        raw = bytes(input[HEADER.size : HEADER.size + size])
        try:
            bound = self._bound(raw)
            if bound is None:
                return self._load(unpack(raw), output)
            if not self._may_use(bound):
                return Status.HB_ERR_MMAP_FAILED
            self._run(bound, input)
            _charge(bound)
            if bound.unsized:
                answer = bound.answer or _deliver(bound, len(output))
                output[: len(answer)] = answer
        except GraphError as error:
            _put(Failed(error.reason.name, str(error)), output)
            return Status.HB_DSP_RUN_TASK_FAILED
        return 0

    def _run(self, bound: _Bound, request: memoryview) -> None:
        try:
            stop = self._stops.pop()
        except IndexError:
            stop = Stop()
        is_unwanted = _wish(request)
        if is_unwanted():
            stop.set()
        self._running.append((is_unwanted, stop))
        if not self._is_looking:
            self._look_again()
        try:
            _run_bound(bound, stop)
        finally:
            with self._lock:
                self._running.pop()
            self._ended_at = time.monotonic()
            if not stop.is_set:
                self._stops.append(stop)

    def _may_use(self, bound: _Bound) -> bool:
        """Whether the program may use all of the memory; the answer is valid until any memory changes owner."""
        context = runtime.context
        ddr = context.ddr
        assert ddr is not None  # noqa: S101 - a core always has a board
        seen = context.client_id, ddr.map[_GENERATION]
        if bound.allowed == seen and not context.watchers:
            return True
        for phy_addr, size_bytes in bound.ranges:
            if runtime.map_range(phy_addr, size_bytes) is runtime.MAP_FAILED:
                return False
        bound.allowed = seen
        return True

    def _load(self, request: Request, output: memoryview) -> int:
        session = self._model(request).session
        outputs = [(one.name, one.type, list(one.shape or ())) for one in session.get_outputs()]
        _put(Loaded([one.name for one in session.get_inputs()], outputs), output)
        return 0

    def _model(self, request: Request) -> _Model:
        threads = thread_count(request.threads)
        key = request.key, threads
        if (model := self._models.get(key)) is None:
            for known in [one for one, old in self._models.items() if not old.path.exists()]:
                del self._models[known]  # the last program that used it has closed it
            model = self._models[key] = _Model(file_of(self._board, request.key), threads)
        return model

    def _bound(self, raw: bytes) -> _Bound | None:
        """Return what a description binds; None if it only loads."""
        for model in self._models.values():
            if (known := model.bound.get(raw)) is not None:
                return known
        request = unpack(raw)
        if request.inputs is None:
            return None
        model = self._model(request)
        binding = model.session.io_binding()
        for bind, side in ((binding.bind_input, request.inputs), (binding.bind_output, request.outputs)):
            for one in side:
                if one.shape is None:
                    bind(one.name)
                else:
                    bind(one.name, "cpu", 0, np.dtype(one.dtype), one.shape, _address(one))
        ranges = tuple((one.phy_addr, _size(one)) for one in (*request.inputs, *request.outputs) if _size(one))
        if len(model.bound) >= _MAX_KEPT:
            model.bound.clear()
        unsized = tuple((at, one) for at, one in enumerate(request.outputs) if one.shape is None)
        made = model.bound[raw] = _Bound(model.session, binding, ranges, unsized, request.modeled_ns, request.ddr_bytes)
        return made

    # -- ends asked for

    def _look_again(self) -> None:
        self._is_looking = True
        if not self._wake.is_set():
            if self._ended_at == 0.0:
                threading.Thread(target=self._look, name="hbrt-stops", daemon=True).start()
            self._wake.set()

    def _look(self) -> None:
        """Detect that a program wants its run to end, or is gone. The thread sleeps if nothing has run for a while."""
        while True:
            self._wake.wait()
            while self._running or time.monotonic() - self._ended_at < _IDLE_S:
                time.sleep(_LOOK_S)
                with self._lock:  # so that no stop is set for a run that has ended: another run may have it by then
                    for is_unwanted, stop in self._running:
                        if is_unwanted():
                            stop.set()
            self._wake.clear()
            self._is_looking = False


def _wish(request: memoryview) -> _Wish:
    """Whether the current task's run should end: its program has asked for that, or is gone."""
    ddr = runtime.context.ddr
    assert ddr is not None  # noqa: S101 - a core always has a board
    mm, gone_at = ddr.map, ddr.layout.client(runtime.context.client_id) + CLIENT_GONE
    return lambda: bool(request[STOP_AT] or mm[gone_at])


def _charge(bound: _Bound) -> None:
    """Charge what the run takes on the board; one cycle of an accelerator core is 1 ns."""
    counter = cycles.current()
    counter.charge(bound.modeled_ns)
    counter.work[DMA_BYTES] += bound.ddr_bytes


def _run_bound(bound: _Bound, stop: Stop) -> None:
    """Run; if outputs were bound with the sizes of the last run and now have others, run again without sizes.

    Raises:
        GraphError: the run failed.
    """
    while True:
        try:
            bound.session.run_with_iobinding(bound.binding, stop.run_options)
        except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions have no common base class
            was_sized = bool(bound.answer)
            _renew(bound)
            if not was_sized or stop.is_set:
                raise run_failed(error) from None
            bound.is_constant = False
        else:
            return


def _packed(answer: Loaded | Sizes | Failed, most_bytes: int) -> bytes:
    raw = pack_answer(answer, most_bytes)
    if len(raw) > most_bytes:
        raise GraphError(Reason.INCOMPATIBLE, "The model has too many outputs for one answer.")
    return raw


def _put(answer: Loaded | Failed, output: memoryview) -> None:
    raw = _packed(answer, len(output))
    output[: len(raw)] = raw


def _deliver(bound: _Bound, most_bytes: int) -> bytes:
    """Write the outputs whose sizes only the run has told, where they fit; return the answer with their sizes."""
    made = bound.binding.get_outputs()
    results = [(one, made[at].numpy()) for at, one in bound.unsized]
    answer = _packed(Sizes([list(array.shape) for _, array in results]), most_bytes)
    _renew(bound)
    fitting = [(one, array) for one, array in results if 0 < array.nbytes <= one.room_bytes]
    for one, array in fitting:
        _at(one, array.dtype, array.shape)[...] = array
    if bound.is_constant and len(fitting) == len(results):
        for one, array in fitting:  # the next run writes them there itself
            bound.binding.bind_output(one.name, "cpu", 0, array.dtype, array.shape, _address(one))
        bound.answer = answer
    return answer


def _renew(bound: _Bound) -> None:
    """Have the next run allocate outputs of unknown size anew; the last run's memory is released."""
    bound.answer = b""
    for _, one in bound.unsized:
        bound.binding.bind_output(one.name)


def _at(tensor: Tensor, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    ddr = runtime.context.ddr
    assert ddr is not None  # noqa: S101 - its range was checked
    return np.ndarray(shape, dtype, ddr.bytes, ddr.offset_of(tensor.phy_addr))


def _size(tensor: Tensor) -> int:
    if tensor.shape is None:
        return tensor.room_bytes
    return int(np.prod(tensor.shape, dtype=np.int64)) * np.dtype(tensor.dtype).itemsize


def _address(tensor: Tensor) -> int:
    """Return a tensor's address in this process."""
    ddr = runtime.context.ddr
    if ddr is None or not _size(tensor):
        return 1  # it has no bytes
    return ddr.address + ddr.offset_of(tensor.phy_addr)
