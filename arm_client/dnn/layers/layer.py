"""Layers: a program's own operators. The layer interface, and the op types with layers.

A layer takes over the nodes of an op type, one of ONNX's or a new one, including in models already loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from arm_client.cabi.arguments import is_function, short_repr
from arm_client.dnn.environment import refused
from arm_client.dnn.errors import ModelError, one_line
from arm_client.dnn.layers.ndarray import NDArray
from hbrt.dnn_types import hbDNNInferCtrlParam
from hbrt.models.run.layer import TensorType
from hbrt.status import Status
from hbrt.types import hbDSPRpcCtrlParam

if TYPE_CHECKING:
    from hbrt.models.spec.graph import NodeInfo


class Layer:
    """One node that a program runs itself. Subclass it and implement at least ``Forward``.

    A plan creates one layer per node and per concurrent task: one object's ``Forward`` is never called concurrently, so
    its state (parameter blocks, scratch memory) is not shared.

    Attributes:
        processor: Name in times and listings: "CPU", or "DSP" for a layer that calls hbDSPRpc.
    """

    processor = "CPU"

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Receive the node's attributes; called once, before everything except ``Decline``.

        Args:
            attributes: The node's attributes: int, float, str, lists of these, numpy arrays for tensors.
            node: Its name, op type, opset, and what is known about its inputs, including the elements of constants.

        Raises:
            Exception: any kind: the model cannot be run, for the reason in the text.
        """

    def Decline(self, node: NodeInfo) -> str:
        """Say why this layer does not take a node, which then stays in onnxruntime; "" if it takes it.

        The reason is logged once per load and listed by ``model_info``. A node inside the body of an If, Loop or Scan
        (``node.is_nested``) must be declined; taking it makes the model incompatible.
        """
        del node
        return ""

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Return the outputs' shapes and types; by default those of the first input for every output.

        Called at load, with -1 for sizes still open, and again before each ``Forward``.

        Args:
            bottom: One for each input; None for a missing one.

        Raises:
            ValueError: by default, if all inputs are missing. An exception makes the model incompatible.
        """
        first = next((entry for entry in bottom if entry is not None), None)
        if first is None:
            raise ValueError(f"{type(self).__name__} has no inputs: implement its InferShape.")
        return [first]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Compute the outputs from the inputs; all are in device memory. Write ``top`` in place.

        Args:
            bottom: Inputs; None for a missing one. Do not write to them.
            top: Outputs; None for a missing one.
            ctrl: The task's parameters; dspCoreId, priority and customId are for hbDSPRpc (see ``rpc_ctrl``).

        Returns:
            0; anything else, or an exception, fails the task with HB_DNN_RUN_TASK_FAILED.
        """
        raise NotImplementedError(f"{type(self).__name__} has no Forward.")

    def TearDown(self) -> None:
        """Free the layer's resources; called once, when its plan is released."""


LayerCreator = Callable[[], Layer]


def tear_down(layer: Layer) -> None:
    """Let a layer free its resources. A failure is logged; the model and the other layers are still freed."""
    try:
        layer.TearDown()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a program's own code raises anything
        from arm_client.dnn.environment import warn

        warn(f"The TearDown of {type(layer).__name__} raised {type(error).__name__}: {one_line(error)}.")


def rpc_ctrl(cmd: int, ctrl: hbDNNInferCtrlParam) -> hbDSPRpcCtrlParam:
    """Return the scheduling of a layer's remote call: the DSP core, priority and customId of its model task."""
    rpc = hbDSPRpcCtrlParam()
    rpc.rpcCmd = cmd
    rpc.dspCoreId, rpc.priority, rpc.customId = ctrl.dspCoreId, ctrl.priority, ctrl.customId
    return rpc


class Registry:
    """Op types with a layer: ``Softmax`` in any domain, or ``my.domain::Softmax``, which takes precedence."""

    def __init__(self) -> None:
        self.generation = 0  # counts changes: an older plan checks whether it is affected
        self._creators: dict[str, LayerCreator] = {}
        self._lock = threading.Lock()

    def register(self, layer_type: str, creator: LayerCreator) -> None:
        """Use ``creator()`` to create an op type's layers; the last registration of a type wins."""
        with self._lock:
            self._creators[layer_type] = creator
            self.generation += 1

    def unregister(self, layer_type: str) -> None:
        """Return an op type to onnxruntime.

        Raises:
            ModelError: HB_DNN_API_USE_ERROR: it has no layer.
        """
        with self._lock:
            if layer_type not in self._creators:
                known = ", ".join(sorted(self._creators)) or "none"
                raise ModelError(
                    Status.HB_DNN_API_USE_ERROR,
                    f"No layer is registered for {layer_type!r}; registered: {known}.",
                )
            del self._creators[layer_type]
            self.generation += 1

    def creator_of(self, domain: str, op_type: str) -> LayerCreator | None:
        """Return the creator of an op type's layers; None if onnxruntime runs it."""
        return self._creators.get(f"{domain}::{op_type}") or self._creators.get(op_type)

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, dict[tuple[str, str], LayerCreator]]:
        """Return the generation, and the creators for each (domain, op type) that has one."""
        with self._lock:
            found = {name: creator for name in types if (creator := self.creator_of(*name)) is not None}
            return self.generation, found


registry = Registry()
"""The registry of this process."""


def hbDNNRegisterLayerCreator(layerType: str, layerCreator: LayerCreator) -> int:
    """Let a layer run the nodes of an op type, including in models that are already loaded.

    Args:
        layerType: ONNX op type (which it replaces) or the program's own; ``domain::type`` for one domain only.
        layerCreator: Called without arguments, returns a Layer: a class, a function, or an hbDNNLayerCreator for one.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT: the type is not a name, or the creator is not callable.

    Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.6.1 hbDNNRegisterLayerCreator,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    Emulator: the signatures of creator and layer are not public.
    """
    name = _type_name(layerType)
    if name is None:
        return refused(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The layer type is {short_repr(layerType)}; pass an op type, such as 'Softmax'.",
        )
    if not is_function(layerCreator):
        return refused(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The creator of {name!r} is {short_repr(layerCreator)}; pass a Layer class, or a function that makes one.",
        )
    registry.register(name, layerCreator)
    return 0


def hbDNNUnregisterLayerCreator(layerType: str) -> int:
    """Return an op type to onnxruntime; models with types it lacks cannot run until a layer is registered again.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT: the type is not a name; HB_DNN_API_USE_ERROR: it has no layer.
    """
    name = _type_name(layerType)
    if name is None:
        return refused(Status.HB_DNN_INVALID_ARGUMENT, f"The layer type is {short_repr(layerType)}; pass an op type.")
    try:
        registry.unregister(name)
    except ModelError as error:
        return refused(error.status, str(error))
    return 0


def _type_name(given: object) -> str | None:
    if isinstance(given, bytes):
        given = given.decode("utf-8", "replace")
    value = getattr(given, "value", given)  # a c_char_p
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value.strip() if isinstance(value, str) and value.strip() else None
