"""Adapts a program's layer to the executor; its errors become messages."""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.cabi.dnn_macros import HB_DNN_INITIALIZE_INFER_CTRL_PARAM
from arm_client.cabi.last_error import last_error, note
from arm_client.dnn.errors import ModelError, incompatible, one_line
from arm_client.dnn.layers import layer as layers
from arm_client.dnn.layers.layer import Layer, LayerCreator, tear_down
from hbrt.dnn_types import hbDNNInferCtrlParam
from hbrt.models.run.layer import TensorType
from hbrt.models.run.steps import said
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client.dnn.layers.ndarray import NDArray
    from hbrt.models.run import layer as models
    from hbrt.models.spec.graph import NodeInfo

_DEFAULT = hbDNNInferCtrlParam()
HB_DNN_INITIALIZE_INFER_CTRL_PARAM(_DEFAULT)


class AdaptedLayer:
    """One node run by a program's Layer.

    Every method except ``forward`` raises INCOMPATIBLE_MODEL if the program's method raises anything.
    """

    def __init__(self, creator: LayerCreator, node: NodeInfo) -> None:
        self._node = node
        made: object = self._call(creator, "creator")
        if not isinstance(made, Layer):
            raise incompatible(
                f"The creator of the layer {said(node)} returned {made!r}, which is not an arm_client.dnn.Layer."
            )
        self._layer = made

    @property
    def processor(self) -> str:
        """Where it runs."""
        return self._layer.processor

    def decline(self) -> str:
        """Say why it leaves its node to onnxruntime."""
        reason = self._call(lambda: self._layer.Decline(self._node), "Decline")
        return str(reason) if reason else ""

    def set_up(self) -> None:
        """Pass it the node's attributes."""
        self._call(lambda: self._layer.SetUp(self._node.attributes, self._node), "SetUp")

    def infer_shape(self, bottom: list[TensorType | None]) -> list[TensorType]:
        """Return the result of its InferShape, which must be TensorTypes."""
        returned = self._call(lambda: self._layer.InferShape(bottom), f"InferShape({bottom})")
        return list(self._call(lambda: _tensor_types(returned), "InferShape"))

    def forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam | None) -> None:
        """Run Forward.

        Raises:
            ModelError: RUN_TASK_FAILED: it returns a nonzero value, or raises.
        """
        note(0, "")
        try:
            status: object = self._layer.Forward(bottom, top, _DEFAULT if ctrl is None else ctrl)
        except (Exception, SystemExit) as error:  # the program's code may raise anything
            raise self._failure(f"raised {type(error).__name__}: {error}\n{traceback.format_exc()}") from error
        if status != 0 or status is False:
            why = " (return 0 for success)" if not isinstance(status, int) or status is False else ""
            text = last_error()
            raise self._failure(f"returned {status!r}{why}.{f' {text}' if text else ''}")

    def tear_down(self) -> None:
        """Free its resources."""
        tear_down(self._layer)

    def _call(self, function: Callable[[], Any], what: str) -> Any:
        try:
            return function()
        except ModelError:
            raise
        except (Exception, SystemExit) as error:  # the program's code may raise anything, but must not end the program
            raise incompatible(
                f"The {what} of the layer {said(self._node)} raised {type(error).__name__}: {one_line(error)}"
            ) from error

    def _failure(self, what: str) -> ModelError:
        return ModelError(
            Status.HB_DNN_RUN_TASK_FAILED,
            f"The layer {self._node.op_type} (node {self._node.name!r}, {type(self._layer).__name__}) {what}",
        )


@dataclass(frozen=True)
class _Creator:
    """Creates adapted layers; equal to another one with the same creator."""

    creator: LayerCreator

    def __call__(self, node: NodeInfo) -> AdaptedLayer:
        return AdaptedLayer(self.creator, node)


class AdaptedRegistry:
    """The program's registry, as seen by a plan."""

    @property
    def generation(self) -> int:
        """Number of changes so far."""
        return layers.registry.generation

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, dict[tuple[str, str], models.LayerCreator]]:
        """Return the generation, and the creators for each (domain, op type) that has one."""
        generation, creators = layers.registry.of_types(types)
        return generation, {name: _Creator(creator) for name, creator in creators.items()}


adapted = AdaptedRegistry()
"""The registry of this process."""


def _tensor_types(returned: object) -> list[TensorType]:
    if isinstance(returned, TensorType) or not isinstance(returned, Iterable):
        raise TypeError(f"it returned {returned!r}; return a list with a TensorType(shape, dtype) for each output")
    types = []
    for one in returned:
        if not isinstance(one, TensorType):
            raise TypeError(f"its list contains {one!r}, which is not a TensorType(shape, dtype)")
        shape = None if one.shape is None else tuple(operator.index(size) for size in one.shape)
        types.append(TensorType(shape, np.dtype(one.dtype)))
    return types
