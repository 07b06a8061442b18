"""Runs a model's graph: a Plan is created once, and run on arrays in device memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

from hbrt.models.run.bound_session import Outputs, Values, deliver
from hbrt.models.run.layer import Device, NoLayers, Registry
from hbrt.models.run.layered import Layered
from hbrt.models.run.partition import op_types
from hbrt.models.run.session import Bound, BoundElsewhere, LocalSession, Sessions
from hbrt.models.run.steps import Observer, StepInfo, StepTime
from hbrt.models.run.stop import Stop
from hbrt.models.spec.graph import Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto


_REPEATING = {"Loop", "Scan", "SequenceMap"}


class _Whole:
    """A model without layers: one session."""

    def __init__(self, proto: ModelProto, label: str, threads: int | None, sessions: Sessions) -> None:
        self.session = sessions(proto, label, threads, is_segment=False)
        made = {name for node in proto.graph.node for name in node.output}
        graph = Graph(proto)
        self._inputs = self.session.inputs
        self._outputs = [name for name in graph.outputs if name in made]
        # A model may return an input or a constant unchanged; a session with bound outputs cannot.
        self._constants = {
            name: values for name in graph.outputs if name not in made and (values := graph.constant(name)) is not None
        }
        ops = Counter(node.op_type for node in proto.graph.node)
        self.infos = [StepInfo("segment_0", "BPU", dict(ops))]
        self.notes: list[str] = []
        self.is_elsewhere = self.session.is_elsewhere
        self._idle: list[Bound] = []

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        outputs: Outputs,
        stop: Stop,
        ctrl: Any,
        observer: Observer | None,
    ) -> dict[str, NDArray[Any]]:
        start = perf_counter_ns() if observer is not None else 0
        bound = self._take()
        values: Values = self._constants | feeds
        try:
            bound.run(values, outputs, stop, ctrl)
        except BaseException:
            bound.close()  # a failed one is not reused
            raise
        return self._results(bound, values, outputs, start, observer)

    def begin(self, begun: Begun, feeds: dict[str, NDArray[Any]], outputs: Outputs, stop: Stop, ctrl: Any) -> None:
        """Like ``Plan.begin``, for a session elsewhere."""
        begun.start_ns = perf_counter_ns()
        begun.bound = bound = cast("BoundElsewhere", self._take())
        begun.values = self._constants | feeds
        begun.waiter = bound.begin(begun.values, outputs, stop, ctrl)

    def finish(self, begun: Begun, outputs: Outputs, observer: Observer | None) -> dict[str, NDArray[Any]]:
        """Like ``Plan.run``, for a started run."""
        bound = begun.bound
        assert bound is not None  # noqa: S101 - the caller has looked
        bound.finish()
        begun.bound = None
        return self._results(bound, begun.values, outputs, begun.start_ns, observer)

    def _take(self) -> Bound:
        try:
            bound = self._idle.pop()
        except IndexError:
            return self.session.bind(self._inputs, self._outputs)
        if bound.is_usable:
            return bound
        bound.close()  # its board is gone, or belongs to the parent
        return self.session.bind(self._inputs, self._outputs)

    def _results(
        self, bound: Bound, values: Values, outputs: Outputs, start_ns: int, observer: Observer | None
    ) -> dict[str, NDArray[Any]]:
        try:
            results = {name: deliver(name, target, values) for name, target in outputs.items()}
        finally:
            self._idle.append(bound)  # last, since its memory may hold the results
        if observer is not None:
            observer(StepTime("segment_0", "BPU", start_ns, perf_counter_ns()))
        return results

    def close(self) -> None:
        """Release the session."""
        idle, self._idle = self._idle, []
        for bound in idle:
            bound.close()
        self.session.close()


class _Use:
    """A build of the plan, and the number of runs that use it."""

    __slots__ = ("build", "creators", "generation", "is_retired", "users")

    def __init__(self, build: _Whole | Layered, generation: int, creators: object) -> None:
        self.build = build
        self.generation = generation
        self.creators = creators
        self.users = 0
        self.is_retired = False


class Begun:
    """A run that was passed to a board's cores, and that ``Plan.run`` finishes.

    Created before anything is started, so that a thread interrupted at any point can close it.
    """

    __slots__ = ("bound", "release", "start_ns", "use", "values", "waiter")

    def __init__(self) -> None:
        self.use: _Use | None = None
        self.release: Callable[[_Use], None]
        self.bound: BoundElsewhere | None = None
        self.values: Values
        self.waiter: Callable[[float], bool] | None = None
        self.start_ns = 0

    def wait(self, timeout_ms: float) -> bool:
        """Wait for it, forever if <= 0; returns False on timeout, and True if it was never started."""
        return self.waiter is None or self.waiter(timeout_ms)

    def ended_ns(self) -> int:
        """Like ``BoundElsewhere.ended_ns``; 0 also if it was never started."""
        bound = self.bound
        return bound.ended_ns() if bound is not None else 0

    def close(self) -> None:
        """End it unless ``Plan.run`` has; afterwards nobody writes to its arrays."""
        if (bound := self.bound) is not None:
            bound.close()
            self.bound = None
        use, self.use = self.use, None
        if use is not None:
            self.release(use)


class Plan:
    """How one model is run. Thread-safe.

    It is rebuilt when a layer is registered or unregistered for one of the model's op types; started runs finish with
    the old build.

    Attributes:
        read: Rereads its model, even after close, including weights, which may be on the board.
        observer: Called after each step of each run with its times, in the running thread; None for none.
        tracer: The same for all plans of this class, while the process is traced.
    """

    tracer: Observer | None = None

    def __init__(
        self,
        proto: ModelProto,
        label: str,
        *,
        registry: Registry | None = None,
        device: Callable[[], Device] | None = None,
        threads: int | None = None,
        sessions: Sessions = LocalSession,
    ) -> None:
        """Prepare a checked model, which the plan keeps so that it can rebuild.

        Args:
            proto: The model.
            label: What to call it in a message.
            registry: Op types with layers; None for no layers.
            device: Allocates memory for the values next to layers; required with a registry.
            threads: Threads per session, see ``session_options``.
            sessions: Loads the model, or its segments.

        Raises:
            GraphError: INVALID or INCOMPATIBLE.
        """
        self.observer: Observer | None = None
        self.read: Callable[[], ModelProto] = lambda: proto
        self._label = label
        self._op_types = op_types(proto)
        self._repeats = not _REPEATING.isdisjoint(name for _, name in self._op_types)
        self._lock = threading.Lock()
        self._building = threading.Lock()
        self._registry: Registry = NoLayers() if registry is None else registry
        self._device = device
        self._threads = threads
        self._sessions = sessions
        self._use = self._build()

    @property
    def steps(self) -> list[StepInfo]:
        """Return what runs where, in order."""
        build = self._use.build
        return build.infos if isinstance(build, _Whole) else [step.info for step in build.steps]

    @property
    def is_steady(self) -> bool:
        """Whether the number of executions does not depend on values."""
        return not self._repeats

    @property
    def runs_elsewhere(self) -> bool:
        """Whether a board's accelerator cores run any of it, and order the runs of all programs."""
        return self._use.build.is_elsewhere

    @property
    def notes(self) -> list[str]:
        """Which nodes stay in onnxruntime although a layer has their type, and why."""
        return self._use.build.notes

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        outputs: dict[str, NDArray[Any] | None],
        stop: Stop,
        ctrl: Any = None,
        begun: Begun | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Run once.

        Args:
            feeds: Inputs by name: C-contiguous, with the graph's type and shape. Not copied.
            outputs: C-contiguous arrays for the results, by name; None for a new array.
            stop: Ends the run at the next node.
            ctrl: How the task is scheduled, in the API's form; passed to layers.
            begun: The object passed to ``begin`` with the same arguments; this finishes it.

        Returns:
            Results by name: the given array, or a new one.

        Raises:
            GraphError: RUN_FAILED with the reason; INCOMPATIBLE if the model can no longer be built because layers were
                registered or unregistered meanwhile.
        """
        if begun is not None and begun.bound is not None and begun.use is not None:
            try:
                return cast("_Whole", begun.use.build).finish(begun, outputs, self._observers())
            finally:
                begun.close()
        use = self._enter()
        try:
            return use.build.run(feeds, outputs, stop, ctrl, self._observers())
        finally:
            self._release(use)

    def begin(
        self,
        begun: Begun,
        feeds: dict[str, NDArray[Any]],
        outputs: dict[str, NDArray[Any] | None],
        stop: Stop,
        ctrl: Any,
    ) -> None:
        """Pass a run to a board's cores, if they run all of it; ``run`` or ``Begun.close`` finishes it.

        Args:
            begun: A new one.
            feeds: As for ``run``, like the others.
            outputs: The same.
            stop: The same.
            ctrl: The same.

        Raises:
            GraphError: as for ``run``; nothing was started.
        """
        begun.release = self._release
        begun.use = use = self._enter()
        try:
            if isinstance(use.build, _Whole) and use.build.session.is_elsewhere:
                use.build.begin(begun, feeds, outputs, stop, ctrl)
                return
        except BaseException:
            begun.close()
            raise
        begun.close()  # layers have been registered meanwhile

    def _observers(self) -> Observer | None:
        own, tracer = self.observer, self.tracer
        if own is None or tracer is None:
            return own or tracer

        def both(step: StepTime) -> None:
            own(step)
            tracer(step)

        return both

    def announce(self, notes: Sequence[str]) -> None:
        """Called with the notes of each build; for an API that logs them."""

    def close(self) -> None:
        """Free the layers' resources; the plan must no longer be running."""
        with self._lock:
            use = self._use
            use.is_retired = True
            is_idle = not use.users
        if is_idle:
            use.build.close()

    def refresh(self) -> None:
        """Rebuild if the layers for the model's op types have changed.

        Raises:
            GraphError: INVALID or INCOMPATIBLE: it cannot be built now; says why.
        """
        with self._building:
            use = self._use
            generation, creators = self._registry.of_types(self._op_types)
            if creators == use.creators:
                use.generation = generation
                return
            new = self._build()
            with self._lock:
                self._use = new
                use.is_retired = True
                is_idle = not use.users
        if is_idle:
            use.build.close()

    def _build(self) -> _Use:
        generation, creators = self._registry.of_types(self._op_types)
        build: _Whole | Layered
        if creators and self._device is not None:
            build = Layered(self.read(), self._label, creators, self._device, self._threads, self._sessions)
        else:
            build = _Whole(self.read(), self._label, self._threads, self._sessions)
            if (reader := build.session.reader()) is not None:
                self.read = reader  # weights are kept only once, where they were loaded
        self.announce(build.notes)
        return _Use(build, generation, creators)

    def _enter(self) -> _Use:
        if self._use.generation != self._registry.generation:
            self.refresh()
        with self._lock:
            use = self._use
            use.users += 1
            return use

    def _release(self, use: _Use) -> None:
        with self._lock:
            use.users -= 1
            is_over = use.is_retired and not use.users
        if is_over:
            use.build.close()
