"""What a plan needs of a layer, of the registry that has them, and of the memory that it works in.

A layer is a node that a program runs itself. Each vendor's API has its own shape for one, and adapts it to this.
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

    At load a size that only the data decides is -1, and the shape None when not even the rank is known.
    """

    shape: tuple[int, ...] | None
    dtype: np.dtype[Any]


class Layer(Protocol):
    """One node that a program runs itself. What any method raises fails the load, or the run, as it is.

    A plan makes one for each node and each run at the same time; its methods are never called twice at once.
    """

    @property
    def processor(self) -> str:
        """What times and listings say of it: "CPU", "DSP"."""

    def decline(self) -> str:
        """Why it leaves its node to onnxruntime; "" when it takes it. Before all else."""

    def set_up(self) -> None:
        """Take the node's attributes."""

    def infer_shape(self, bottom: list[TensorType | None]) -> list[TensorType]:
        """Shapes and types of the outputs, of those of the inputs; None for an input that is left out."""

    def forward(self, bottom: list[Any], top: list[Any], ctrl: Any) -> None:
        """Compute.

        Args:
            bottom: Inputs, as ``Device.view`` makes them; None where one is left out.
            top: Outputs, likewise; written in place.
            ctrl: What the run was given: how its task is scheduled, as the API has it.
        """

    def tear_down(self) -> None:
        """Free what it keeps; may not raise."""


LayerCreator = Callable[["NodeInfo"], Layer]
"""Makes the layer of a node."""


class Registry(Protocol):
    """Which op types have a layer."""

    @property
    def generation(self) -> int:
        """Counts changes: a plan that was built at an earlier one looks whether it is meant."""

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, Mapping[tuple[str, str], LayerCreator]]:
        """The generation, and the creators of those of the (domain, op type) that have one.

        Creators that make the same layers are equal.
        """


class NoLayers:
    """A registry without layers."""

    generation = 0

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, Mapping[tuple[str, str], LayerCreator]]:
        """None."""
        del types
        return 0, {}


class Device(Protocol):
    """Memory for the values beside layers, which may have to lie where another processor reaches them."""

    @property
    def is_usable(self) -> bool:
        """Whether it is still there."""

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array in it, zeroed; freed by ``close``."""

    def view(self, array: NDArray[Any]) -> Any:
        """An array as a layer sees it; None when no layer may: the value is then copied."""

    def close(self) -> None:
        """Free all arrays."""
