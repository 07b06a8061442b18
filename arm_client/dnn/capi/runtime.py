"""State behind this process's C names: loaded models, tasks, and the board with the tensors' memory."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from arm_client.dnn import environment
from arm_client.dnn.capi import tracing
from arm_client.dnn.cores.tasks import Tasks
from arm_client.dnn.errors import ModelError
from arm_client.dnn.handles import HandleKind, Handles
from arm_client.dnn.layers.plugins import plugins
from arm_client.dnn.loading.model import LoadedModel, load
from arm_client.dnn.tensors.binding import Bindings
from arm_client.dnn.tensors.tensor_memory import Ranges
from arm_client.memory.block import block_users
from arm_client.session.process import process
from hbrt.board.forked import in_child, notice
from hbrt.status import Status, sys_status

if TYPE_CHECKING:
    from hbrt.ddr.file import Ddr

MAX_MODELS = 1024


@dataclass(eq=False)
class Loaded:
    """A model of a live packed handle, with the data that the C names keep for it.

    Attributes:
        model: The model.
        handle: Its handle.
        bindings: Of the caller's tensors.
        names: C strings that were handed out; they live as long as the model.
    """

    model: LoadedModel
    handle: int = 0
    bindings: Bindings = field(init=False)
    names: dict[str, ctypes.c_char_p] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing is bound yet."""
        self.bindings = Bindings(self.model.inputs, self.model.outputs)


@dataclass(eq=False)
class Packed:
    """The models loaded by one hbDNNInitialize... call."""

    models: list[Loaded]
    name_list: ctypes.Array[ctypes.c_char_p]


class DnnRuntime:
    """The DNN runtime of this process."""

    def __init__(self) -> None:
        self.packed: Handles[Packed] = Handles(HandleKind.PACKED)
        self.models: Handles[Loaded] = Handles(HandleKind.MODEL)
        self.tasks = Tasks()

    def initialize(self, sources: Sequence[Path | bytes | memoryview]) -> int:
        """Load models; returns the packed handle.

        Raises:
            ModelError: a model was refused, with the reason; MODEL_NUMBER_EXCEED_LIMIT; a plugin does not load, or an
                environment variable has an invalid value.
        """
        notice()
        if len(self.models) + len(sources) > MAX_MODELS:
            raise ModelError(
                Status.HB_DNN_MODEL_NUMBER_EXCEED_LIMIT,
                f"{len(self.models)} models are loaded and {len(sources)} more were requested; a process has at most "
                f"{MAX_MODELS}. Release some with hbDNNRelease.",
            )
        environment.check()
        tracing.begin()
        plugins.load()
        loaded = [Loaded(model) for model in load(list(sources))]
        names = (ctypes.c_char_p * len(loaded))(*(one.model.name.encode() for one in loaded))
        for one in loaded:
            one.handle = self.models.add(one)
        return self.packed.add(Packed(loaded, names))

    def release(self, handle: int | None) -> None:
        """Release the models of a packed handle.

        Raises:
            ModelError: INVALID_PACKED_DNN_HANDLE; MODEL_IS_RUNNING while an unfinished task uses one of them.
        """
        packed = self.packed.get(handle)
        self.tasks.retire([one.model for one in packed.models])
        if handle is None or self.packed.remove(handle) is None:
            self.packed.get(handle)  # another thread released it: report that
        for one in packed.models:
            self.models.remove(one.handle)
            one.model.close()

    def detach_in_child(self) -> None:
        """In a forked child: models, tasks and threads are the parent's."""
        self.packed.detach_in_child()
        self.models.detach_in_child()
        self.tasks.detach_in_child()


def device_memory() -> Ddr:
    """Return the DDR with this process's hbSys* memory.

    Raises:
        ModelError: INVALID_ARGUMENT if there is none; the board's status if it is gone.
    """
    notice()
    session = process.default
    if session is None:
        raise ModelError(
            Status.HB_DNN_INVALID_ARGUMENT,
            "This process has not allocated memory on any board; tensors need memory from hbSysAllocMem.",
        )
    fault = session.link.fault
    if fault:
        raise ModelError(sys_status(fault), session.link.why_faulty())
    return session.link.ddr


def look_at_inputs(ranges: Ranges) -> None:
    """Strict mode: warn the program about input tensors that it wrote but did not clean.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT under fail-fast.
    """
    session = process.default
    if session is not None and session.checker is not None:
        from arm_client.strict.report import MistakeError

        try:
            for phy_addr, size_bytes in ranges:
                session.checker.check_input("input tensor", phy_addr, size_bytes)
        except MistakeError as error:
            raise ModelError(Status.HB_DNN_INVALID_ARGUMENT, str(error)) from None


runtime = DnnRuntime()
tracing.note_models(runtime.tasks.bpu)
block_users.append(runtime.tasks)
atexit.register(runtime.tasks.close)
in_child(runtime.detach_in_child)
