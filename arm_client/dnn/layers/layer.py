"""Layers: a program's own operators. The layer interface, and the op types with layers.

A layer takes over the nodes of an op type, in models that were loaded before as well; of one of ONNX's own types, or of
one that ONNX lacks.
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
    """One node that a program runs itself. Subclass it, and write at least ``Forward``.

    A plan makes one layer for each node and for each task that runs at the same time: ``Forward`` of one object is
    never called twice at once, so that its state (parameter blocks, scratch memory) is its own.

    Attributes:
        processor: Name in times and listings: "CPU", or "DSP" for a layer that calls hbDSPRpc.
    """

    processor = "CPU"

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Receive the node's attributes; called once, before everything except ``Decline``.

        Args:
            attributes: The attributes that the node sets: int, float, str, lists of them, numpy arrays for tensors.
            node: Its name, op type, opset, and the known facts about its inputs; constants with their elements.

        Raises:
            Exception: of any kind: the model cannot be run, and its text becomes the reason.
        """

    def Decline(self, node: NodeInfo) -> str:
        """Why this layer does not take a node, which then stays in onnxruntime; "" if it takes it.

        The reason is logged once for each load and listed by ``model_info``. A node inside the body of an If, Loop or
        Scan (``node.is_nested``) can only be declined: taken, it makes the model incompatible.
        """
        del node
        return ""

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Shapes and types of the outputs; by default those of the first input for every output.

        Called at load, with -1 for sizes still open, and again before each ``Forward``.

        Args:
            bottom: One for each input; None for a missing one.

        Raises:
            ValueError: by default, when all are left out. An exception makes the model incompatible.
        """
        first = next((entry for entry in bottom if entry is not None), None)
        if first is None:
            raise ValueError(f"{type(self).__name__} reads no input: write its InferShape.")
        return [first]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Compute the outputs from the inputs; all are in device memory. Write ``top`` in place.

        Args:
            bottom: Inputs; None for a missing one. Do not write them.
            top: Outputs; None for a missing one.
            ctrl: The task's: its dspCoreId, priority and customId are for hbDSPRpc (see ``rpc_ctrl``).

        Returns:
            0; anything else fails the task with HB_DNN_RUN_TASK_FAILED, as an exception does.
        """
        raise NotImplementedError(f"{type(self).__name__} has no Forward.")

    def TearDown(self) -> None:
        """Free the layer's resources; called once, when its plan is released."""


LayerCreator = Callable[[], Layer]


def tear_down(layer: Layer) -> None:
    """Let a layer free what it keeps. A failure is logged: the model and the other layers are freed nevertheless."""
    try:
        layer.TearDown()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a program's own code raises anything
        from arm_client.dnn.environment import warn

        warn(f"The TearDown of {type(layer).__name__} raised {type(error).__name__}: {one_line(error)}.")


def rpc_ctrl(cmd: int, ctrl: hbDNNInferCtrlParam) -> hbDSPRpcCtrlParam:
    """How a layer's remote call is scheduled: as its model task, by its DSP core, priority and customId."""
    rpc = hbDSPRpcCtrlParam()
    rpc.rpcCmd = cmd
    rpc.dspCoreId, rpc.priority, rpc.customId = ctrl.dspCoreId, ctrl.priority, ctrl.customId
    return rpc


class Registry:
    """Which op types have a layer: ``Softmax`` of any domain, or ``my.domain::Softmax``, which goes first."""

    def __init__(self) -> None:
        self.generation = 0  # counts changes: a plan that was made at an earlier one looks whether it is meant
        self._creators: dict[str, LayerCreator] = {}
        self._lock = threading.Lock()

    def register(self, layer_type: str, creator: LayerCreator) -> None:
        """Have ``creator()`` make the layers of an op type; the later registration of a type wins."""
        with self._lock:
            self._creators[layer_type] = creator
            self.generation += 1

    def unregister(self, layer_type: str) -> None:
        """Give an op type back to onnxruntime.

        Raises:
            ModelError: HB_DNN_API_USE_ERROR: it has no layer.
        """
        with self._lock:
            if layer_type not in self._creators:
                known = ", ".join(sorted(self._creators)) or "none"
                raise ModelError(
                    Status.HB_DNN_API_USE_ERROR,
                    f"No layer is registered for {layer_type!r}, so none can be unregistered; registered are: {known}.",
                )
            del self._creators[layer_type]
            self.generation += 1

    def creator_of(self, domain: str, op_type: str) -> LayerCreator | None:
        """The creator of an op type's layers; None if onnxruntime runs it."""
        return self._creators.get(f"{domain}::{op_type}") or self._creators.get(op_type)

    def of_types(self, types: Iterable[tuple[str, str]]) -> tuple[int, dict[tuple[str, str], LayerCreator]]:
        """The generation, and the creators of those of the (domain, op type) that have one."""
        with self._lock:
            found = {name: creator for name in types if (creator := self.creator_of(*name)) is not None}
            return self.generation, found


registry = Registry()
"""Of this process."""


def hbDNNRegisterLayerCreator(layerType: str, layerCreator: LayerCreator) -> int:
    """Let a layer run the nodes of an op type, including in models that are already loaded.

    Args:
        layerType: Op type of ONNX (which it replaces) or of the program's own; ``domain::type`` for one domain's alone.
        layerCreator: Called without arguments, gives a Layer: a class, a function, or an hbDNNLayerCreator of one.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT: the type is not a name, or the creator is not callable.

    Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.6.1 hbDNNRegisterLayerCreator,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    Emulator: the creator's and the layer's signatures, which are not public.
    """
    name = _type_name(layerType)
    if name is None:
        return refused(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The layer type is {short_repr(layerType)}; write an op type, such as 'Softmax'.",
        )
    if not is_function(layerCreator):
        return refused(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The creator of {name!r} is {short_repr(layerCreator)}; pass a Layer class, or a function that makes one.",
        )
    registry.register(name, layerCreator)
    return 0


def hbDNNUnregisterLayerCreator(layerType: str) -> int:
    """Give an op type back to onnxruntime; models of types that it lacks cannot run until one is registered again.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT: the type is not a name; HB_DNN_API_USE_ERROR: it has no layer.
    """
    name = _type_name(layerType)
    if name is None:
        return refused(Status.HB_DNN_INVALID_ARGUMENT, f"The layer type is {short_repr(layerType)}; write an op type.")
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
