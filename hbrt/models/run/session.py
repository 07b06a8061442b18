"""A model or a segment of one that is loaded somewhere: in this process, or on an accelerator core of a board."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hbrt.models.run.bound_session import BoundSession, Outputs, Values
from hbrt.models.run.ort_session import make_session, output_types

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, ValueInfoProto

    from hbrt.models.run.stop import Stop


class Bound(Protocol):
    """A session with its tensors bound; one run at a time."""

    @property
    def is_usable(self) -> bool:
        """Whether it can run: its board is there, and this process's own."""

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> None:
        """Run; see ``BoundSession.run``. ``ctrl`` is how the task is scheduled, as the API has it."""

    def close(self) -> None:
        """Free what it holds."""


class BoundElsewhere(Bound, Protocol):
    """Like ``Bound``, of a session that is elsewhere: a run has two halves."""

    def begin(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> Callable[[float], bool]:
        """Hand the run over; ``finish`` or ``close`` follows.

        Returns:
            What waits this many milliseconds for its end, <= 0 forever; False when the time is over.
        """

    def ended_ns(self) -> int:
        """When what was begun has ended, by CLOCK_MONOTONIC in ns; 0 before, and after ``finish``. Any thread."""

    def finish(self) -> None:
        """Wait for the end of what was begun; fills the values, and raises, as ``run``."""


class Session(Protocol):
    """A loaded model; several may be bound to it."""

    @property
    def inputs(self) -> list[str]:
        """Names of its inputs."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process runs it, which keeps its weights too."""

    def reader(self) -> Callable[[], ModelProto] | None:
        """What reads the model again, also when the session is closed; None where the caller is to keep it."""

    def output_types(self) -> dict[str, ValueInfoProto]:
        """Types of its outputs; see ``ort_session.output_types``."""

    def bind(
        self, inputs: Sequence[str], outputs: Sequence[str], buffers: Mapping[str, NDArray[Any]] | None = None
    ) -> Bound:
        """Bind what has a place already; see ``BoundSession``."""

    def close(self) -> None:
        """Let it go; nothing may be bound to it anymore."""


class LocalSession:
    """A session in this process."""

    is_elsewhere = False

    def __init__(self, proto: ModelProto, label: str, threads: int | None = None, *, is_segment: bool = False) -> None:
        """Like ``make_session``; segments are no different here."""
        del is_segment
        self._session = make_session(proto, label, threads)
        self.inputs = [node.name for node in self._session.get_inputs()]

    def reader(self) -> None:
        """See ``Session.reader``."""

    def output_types(self) -> dict[str, ValueInfoProto]:
        """See ``Session.output_types``."""
        return output_types((one.name, one.type, one.shape) for one in self._session.get_outputs())

    def bind(
        self, inputs: Sequence[str], outputs: Sequence[str], buffers: Mapping[str, NDArray[Any]] | None = None
    ) -> BoundSession:
        """See ``Session.bind``."""
        return BoundSession(self._session, inputs, outputs, buffers)

    def close(self) -> None:
        """Nothing is held but memory."""


class Sessions(Protocol):
    """Loads a model."""

    def __call__(self, proto: ModelProto, label: str, threads: int | None, /, *, is_segment: bool) -> Session:
        """Load a model, or a segment that layers leave of one, with so many threads. Raises as ``make_session``.

        Messages call it by the label.
        """
