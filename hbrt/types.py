"""C structures and enums of the public API, as ctypes: one binary layout for both sides.

Field order and values follow the public manuals; integer widths that they leave open are written beside
the field. Sizes are those of an LP64 C compiler and hold on x86-64 and arm64 alike.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, ClassVar

from hbrt.structures import CHandle, CStructure, int32_t, int64_t, structure, uint32_t, uint64_t, void_p

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike, NDArray


class hbSysMemFlushFlag(IntEnum):
    """Direction of a cache operation (DNN API manual)."""

    HB_SYS_MEM_CACHE_INVALIDATE = 1
    HB_SYS_MEM_CACHE_CLEAN = 2


class hbDSPCore(IntFlag):
    """Which core may run a task; bit i stands for core i, 0 for any (DNN API manual)."""

    HB_DSP_CORE_ANY = 0
    HB_DSP_CORE_0 = 1
    HB_DSP_CORE_1 = 2


class hbDSPRpcCmd(IntEnum):
    """Command numbers and ranges (DSP runtime API manual); NN ops but SOFTMAX have numbers of the emulator."""

    HB_DSP_RPC_CMD_R_B = 0x0
    HB_DSP_RPC_CMD_PING = 0x0
    HB_DSP_RPC_CMD_R_E = 0x3FF
    HB_DSP_RPC_CMD_NN_B = 0x400
    HB_DSP_RPC_CMD_NN_SOFTMAX = 0x400
    HB_DSP_RPC_CMD_NN_QUANTIZE = 0x401
    HB_DSP_RPC_CMD_NN_DEQUANTIZE = 0x402
    HB_DSP_RPC_CMD_NN_CENTERPOINT = 0x403
    HB_DSP_RPC_CMD_NN_POINTPILLARS = 0x404
    HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS = 0x405
    HB_DSP_RPC_CMD_NN_E = 0x7FF
    HB_DSP_RPC_CMD_CV_B = 0x800
    HB_DSP_RPC_CMD_CV_E = 0xFFF
    HB_DSP_RPC_CMD_BUTT = 0xFFFF


class hbDspRpcPriority(IntEnum):
    """Task priorities; the values are the emulator's choice, equal to the DNN runtime's."""

    HB_DSP_RPC_PRIORITY_LOWEST = 0
    HB_DSP_RPC_PRIORITY_HIGHEST = 255
    HB_DSP_RPC_PRIORITY_PREEMP = 255


if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


# The flat names of the vendor's headers: the same objects as the members.
for _kind in (hbSysMemFlushFlag, hbDSPCore, hbDSPRpcCmd, hbDspRpcPriority):
    globals().update(_kind.__members__)

HB_DSP_VERSION_MAJOR = 0
HB_DSP_VERSION_MINOR = 3
HB_DSP_VERSION_PATCH = 3


@structure
class hbSysMem(CStructure):
    """A block of device memory: physical address, address in this process, bytes (24 bytes on LP64)."""

    phyAddr: uint64_t
    virAddr: void_p
    memSize: uint32_t

    # What the allocation left here: (virAddr, bytes) of the block, so that a view keeps its mapping alive.
    backing: tuple[int, memoryview] | None = None
    locate: ClassVar[Callable[[int, int], memoryview | None] | None] = None
    """Gives the bytes of a block of this process by their address, such that they keep its mapping alive."""

    def view(self) -> memoryview:
        """Writable bytes of the block as the CPU sees them: format 'B', ``memSize`` long.

        Raises:
            ValueError: the structure holds no block (never allocated, or freed).
        """
        if not self.virAddr:
            raise ValueError(
                f"This hbSysMem holds no memory (phyAddr {self.phyAddr:#x}, virAddr NULL): hbSysAllocMem was not "
                "called or did not return 0 (then last_error() says why)."
            )
        backing = self.backing
        if backing is not None and backing[0] == self.virAddr and len(backing[1]) >= self.memSize:
            return backing[1][: self.memSize]
        # A structure whose virAddr was moved (a crop), or that was copied as bytes.
        locate = type(self).locate
        if locate is not None and (found := locate(self.virAddr, self.memSize)) is not None:
            return found
        # What no board knows of: trust the address, as C does.
        return memoryview((ctypes.c_ubyte * self.memSize).from_address(self.virAddr)).cast("B")

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...] | None = None) -> NDArray[Any]:
        """Numpy view of the block, C order, starting at its first byte; no copy.

        Args:
            dtype: Element type.
            shape: Shape in elements; None takes as many whole elements as the block holds.

        Raises:
            ValueError: the shape needs more bytes than ``memSize``, or the structure holds no block.
        """
        import numpy as np

        element = np.dtype(dtype)
        view = self.view()
        if shape is None:
            shape = (self.memSize // element.itemsize,)
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for dim in dims:
            count *= dim
        if count * element.itemsize > self.memSize:
            raise ValueError(
                f"An array of shape {dims} and type {element} needs {count * element.itemsize} bytes, but the "
                f"block at {self.phyAddr:#x} has {self.memSize}. Allocate a larger block."
            )
        return np.frombuffer(view, dtype=element, count=count).reshape(dims) if count else np.empty(dims, element)


@structure
class hbDSPRpcCtrlParam(CStructure):
    """How a task is scheduled (32 bytes).

    Widths are the emulator's choice: int32, and int64 for customId as in the DNN runtime's twin structure.
    """

    dspCoreId: int32_t
    rpcCmd: int32_t
    priority: int32_t
    customId: int64_t
    reserved1: int32_t
    reserved2: int32_t


class hbDSPTask_t(CHandle):
    """Opaque task handle; ``value`` is None until hbDSPRpc fills it. Handles may cross threads."""


hbDSPTaskDoneCb = ctypes.CFUNCTYPE(None, hbDSPTask_t, ctypes.c_int32, ctypes.c_void_p)
"""``void (*)(hbDSPTask_t task, int32_t status, void *userdata)``. A Python function will do as it is.

Emulator: the prototype is its choice, that of hbDNNTaskDoneCb.
"""
