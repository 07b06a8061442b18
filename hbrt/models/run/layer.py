"""What a plan requires of layers, their registry, and the memory they work in.

A layer is a node that a program runs itself. Each vendor's API has its own form of layers, adapted to this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hbrt.models.spec.graph import NodeInfo


class TensorType(NamedTuple):
    """Shape and type of a tensor that a layer reads or writes.

    At load time, a data-dependent size is -1, and the shape is None if even the rank is unknown.
    """

    shape: tuple[int, ...] | None
    dtype: np.dtype[Any]


class Layer(Protocol):
    """One node that a program runs itself. An exception from any method fails the load or run unchanged.

    A plan creates one per node and concurrent run; its methods are never called concurrently.
    """

    @property
    def processor(self) -> str:
        """Processor shown in times and listings: "CPU" or "DSP"."""

    def decline(self) -> str:
        """Say why it leaves its node to onnxruntime; "" if it takes it. Called first."""

    def set_up(self) -> None:
        """Receive the node's attributes."""

    def infer_shape(self, bottom: list[TensorType | None]) -> list[TensorType]:
        """Infer the outputs' shapes and types from the inputs'; None for a missing input."""

    def forward(self, bottom: list[Any], top: list[Any], ctrl: Any) -> None:
        """Compute.

        Args:
            bottom: Inputs from ``Device.view``; None for a missing one.
            top: Outputs, likewise; written in place.
            ctrl: The run's ``ctrl``: how its task is scheduled, in the API's form.
        """

    def tear_down(self) -> None:
        """Free its resources; must not raise."""


LayerCreator = Callable[["NodeInfo"], Layer]
"""Creates the layer of a node."""


class Registry(Protocol):
    """Op types with layers."""

    @property
    def generation(self) -> int:
        """Counts changes: a plan built at an earlier count checks whether it is affected."""

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, Mapping[tuple[str, str], LayerCreator]]:
        """Return the generation, and the creators for each (domain, op type) that has one.

        Creators of the same layers are equal.
        """


class NoLayers:
    """A registry without layers."""

    generation = 0

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, Mapping[tuple[str, str], LayerCreator]]:
        """None."""
        del types
        return 0, {}


class Device(Protocol):
    """Memory for the values next to layers, which may have to be accessible to another processor."""

    @property
    def is_usable(self) -> bool:
        """Whether it is still available."""

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Allocate a zeroed array; freed by ``close``."""

    def view(self, array: NDArray[Any]) -> Any:
        """Return an array as a layer sees it; None if layers must not see it: the value is then copied."""

    def close(self) -> None:
        """Free all arrays."""
