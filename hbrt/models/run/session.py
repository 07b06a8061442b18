"""A model or segment loaded somewhere: in this process, or on a board's accelerator core."""

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
        """Whether it can run: its board is available and belongs to this process."""

    def run(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> None:
        """Run; see ``BoundSession.run``. ``ctrl`` is how the task is scheduled, in the API's form."""

    def close(self) -> None:
        """Free its resources."""


class BoundElsewhere(Bound, Protocol):
    """Like ``Bound``, for a session elsewhere: a run has two halves."""

    def begin(self, values: Values, outputs: Outputs, stop: Stop, ctrl: Any) -> Callable[[float], bool]:
        """Start the run; call ``finish`` or ``close`` afterwards.

        Returns:
            A function that waits this many milliseconds for its end, forever if <= 0; returns False on timeout.
        """

    def ended_ns(self) -> int:
        """When the started run ended, CLOCK_MONOTONIC in ns; 0 before that, and after ``finish``. Any thread."""

    def finish(self) -> None:
        """Wait for the started run; fills the values, and raises, like ``run``."""


class Session(Protocol):
    """A loaded model; may be bound several times."""

    @property
    def inputs(self) -> list[str]:
        """Names of its inputs."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process runs it and keeps its weights."""

    def reader(self) -> Callable[[], ModelProto] | None:
        """A function that rereads the model, even after the session is closed; None if the caller must keep it."""

    def output_types(self) -> dict[str, ValueInfoProto]:
        """Types of its outputs; see ``ort_session.output_types``."""

    def bind(
        self, inputs: Sequence[str], outputs: Sequence[str], buffers: Mapping[str, NDArray[Any]] | None = None
    ) -> Bound:
        """Bind the values that already have an address; see ``BoundSession``."""

    def close(self) -> None:
        """Release it; nothing may still be bound to it."""


class LocalSession:
    """A session in this process."""

    is_elsewhere = False

    def __init__(self, proto: ModelProto, label: str, threads: int | None = None, *, is_segment: bool = False) -> None:
        """Like ``make_session``; segments are not treated differently here."""
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
        """Load a model, or a segment between layers, with this many threads. Raises like ``make_session``.

        Messages use the label.
        """
