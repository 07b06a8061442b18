"""Device memory in Python: buffers, and numpy arrays that know their physical address."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar

import numpy as np

from arm_client.cabi.arguments import short_repr
from arm_client.cabi.call_site import call_site
from arm_client.errors import CallerError, error_for
from arm_client.memory.block import Block, Exporter
from hbrt.errors import StatusError
from hbrt.protocol.control import MAX_SITE
from hbrt.status import Status
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from arm_client.session.session import Session

T = TypeVar("T")


class BoardArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array in device memory. ``phy_addr`` is the physical address of its first element.

    A view of one (a slice, a reshape) knows its own address. The results of numpy operations are ordinary arrays.
    """

    board_buffer: Buffer | None = None
    _phy_addr: int | None = None  # needed at every call, and constant as long as the array's place

    def __array_finalize__(self, origin: object) -> None:
        buffer = getattr(origin, "board_buffer", None)
        self.board_buffer = buffer if buffer is not None and buffer.holds(self) else None

    def __array_wrap__(
        self,
        array: NDArray[Any],
        context: Any = None,
        return_scalar: bool = False,  # noqa: FBT001, FBT002 - numpy's
    ) -> Any:
        del context
        if array is self:
            return self  # passed as `out`, as in `a += 1`
        return array[()] if return_scalar else array.view(np.ndarray)

    @property
    def phy_addr(self) -> int:
        """Physical address of the first element.

        Raises:
            CallerError: the array is not in device memory (for example, a copy).
        """
        if self.board_buffer is None:
            raise CallerError(
                Status.HB_DSP_INVALID_ADDRESS,
                "This array is not in device memory: copying gave an ordinary array. Use board.from_array() or "
                "board.empty_like().",
            )
        if self._phy_addr is None:
            start = self.__array_interface__["data"][0] if self.size else self.board_buffer.address
            self._phy_addr = self.board_buffer.phy_addr + start - self.board_buffer.address
        return self._phy_addr


class WatchedArray(BoardArray):
    """A board array in cached memory under the check ``coherence``: it records the lines that write into it.

    It detects assignments to a contiguous part, results that numpy stores in it (``a += 1``, ``out=a``), and ``fill``.
    It does not detect writes through a pointer, a memoryview or compiled code.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        # A slice of one element is a view with a known address.
        ends = tuple(
            slice(one, one + 1 or None) if isinstance(one, int) else one
            for one in (key if isinstance(key, tuple) else (key,))
        )
        if all(one is Ellipsis or isinstance(one, slice) for one in ends):
            self._note(np.asarray(self)[ends])

    def __array_wrap__(
        self,
        array: NDArray[Any],
        context: Any = None,
        return_scalar: bool = False,  # noqa: FBT001, FBT002 - numpy's
    ) -> Any:
        if array is self:
            self._note(array)
        return super().__array_wrap__(array, context, return_scalar)

    def fill(self, value: Any) -> None:
        """See ``numpy.ndarray.fill``."""
        super().fill(value)
        self._note(self)

    def _note(self, written: NDArray[Any]) -> None:
        if self.board_buffer is not None and written.size and written.flags.c_contiguous:
            self.board_buffer.note_write(written.__array_interface__["data"][0], written.nbytes)


class Buffer:
    """A block of device memory that is freed when it is closed, or when nothing refers to it anymore.

    References include plain arrays, such as those from ``np.asarray``.
    """

    def __init__(
        self, session: Session, size_bytes: int, *, is_cached: bool, make: Callable[[], Block] | None = None
    ) -> None:
        """``make`` returns an existing block, which this buffer then releases."""
        block: Block = asked(make or (lambda: session.blocks.alloc(size_bytes, is_cached=is_cached, is_zeroed=True)))
        try:
            block.is_managed = True
            # Any view of the bytes keeps it, and the block, alive.
            self._exporter: Exporter | None = block.hand_over()
            self._free = weakref.finalize(self._exporter, session.blocks.free_later, block)
        except BaseException:  # interrupted: nobody else would free it
            session.blocks.free_later(block)
            raise
        self._block = block
        self._bytes = block.view
        self._session = session
        self.phy_addr = block.phy_addr
        self.size_bytes = size_bytes
        self.address = block.address
        self._free.atexit = False  # the lease frees everything
        self._is_freed = False

    def view(self) -> memoryview:
        """Return the bytes as the CPU sees them, writable.

        Raises:
            CallerError: the buffer was freed.
        """
        self._check_alive()
        return self._bytes[:]

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...]) -> BoardArray:
        """Return an array over the start of the buffer, which it keeps alive.

        Raises:
            CallerError: the buffer is too small for it, or was freed; and as for ``extent``.
        """
        self._check_alive()
        dims, size_bytes = extent(shape, dtype)
        if size_bytes > self.size_bytes:
            raise CallerError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"An array of shape {dims} and type {np.dtype(dtype)} needs {size_bytes} bytes, but the buffer at "
                f"{self.phy_addr:#x} has {self.size_bytes}. Allocate a larger one.",
            )
        try:
            kind = BoardArray if self._block.writes is None else WatchedArray
            array = np.ndarray(dims, dtype, buffer=self._bytes).view(kind)
        except (ValueError, OverflowError) as error:  # too many dimensions, or one too large next to a 0
            raise CallerError(
                Status.HB_SYS_INVALID_ARGUMENT, f"numpy does not support arrays of shape {short_repr(dims)}: {error}."
            ) from None
        array.board_buffer = self
        return array

    def clean(self) -> None:
        """Cached memory: write the CPU's changes back to the device."""
        asked(lambda: self._session.blocks.flush(self.phy_addr, self.size_bytes, HB_SYS_MEM_CACHE_CLEAN))

    def invalidate(self) -> None:
        """Cached memory: make the device's writes visible to the CPU."""
        asked(lambda: self._session.blocks.flush(self.phy_addr, self.size_bytes, HB_SYS_MEM_CACHE_INVALIDATE))

    def note_write(self, address: int, size_bytes: int) -> None:
        """Record that the calling line of the program wrote bytes at a CPU address inside this buffer."""
        if self._block.writes is not None:
            self._block.writes.note(address - self._block.address, size_bytes, call_site(MAX_SITE))

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether an array's first element is in this buffer."""
        start: int = array.__array_interface__["data"][0]
        return self.address <= start < self.address + max(self.size_bytes, 1)

    def free(self) -> None:
        """Free the memory now; arrays over it keep their bytes, but are no longer device memory."""
        self._is_freed = True
        try:
            if self._free.detach() is not None:
                self._exporter, self._bytes = None, memoryview(b"")
                self._block.is_managed = False  # unlike a finalizer, this may come before the end of a task
                asked(lambda: self._session.blocks.release(self._block))
        except BaseException:
            self._session.blocks.free_later(self._block)  # has no effect, unless interrupted before it began
            raise

    def place(self, session: Session) -> tuple[int, int]:
        """Physical address and bytes, for a task on the board of ``session``.

        Raises:
            CallerError: the buffer was freed, or is on another board.
        """
        if self._is_freed:
            self._check_alive()
        if self._session is not session:
            raise CallerError(
                Status.HB_DSP_INVALID_ADDRESS,
                f"The buffer at {self.phy_addr:#x} is not on this connection's board; copy it with from_array().",
            )
        return self.phy_addr, self.size_bytes

    @property
    def is_live(self) -> bool:
        """Whether the memory is still allocated."""
        return self._free.alive

    def _check_alive(self) -> None:
        if not self._free.alive:
            raise CallerError(
                Status.HB_SYS_NOT_ALLOCATED, f"The buffer at {self.phy_addr:#x} was freed; allocate a new one."
            )

    def __repr__(self) -> str:
        """Its address and size."""
        return f"<Buffer {self.phy_addr:#x}, {self.size_bytes} bytes{'' if self.is_live else ', freed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __len__(self) -> int:
        return self.size_bytes


def is_on_board(values: NDArray[Any]) -> TypeGuard[BoardArray]:
    """Whether an array is in device memory; a copy of a board array is not."""
    return isinstance(values, BoardArray) and values.board_buffer is not None and values.phy_addr > 0


def extent(shape: int | tuple[int, ...], dtype: DTypeLike) -> tuple[tuple[int, ...], int]:
    """Return the exact dimensions and byte size of an array, whatever its shape.

    Raises:
        CallerError: a negative dimension, or a type that is invalid or cannot be stored in device memory.
    """
    dims = tuple(index(dim) for dim in shape) if isinstance(shape, (tuple, list)) else (index(shape),)
    kind = dtype_of(dtype)
    if min(dims, default=0) < 0:
        raise CallerError(Status.HB_SYS_INVALID_ARGUMENT, f"The shape {dims} has a negative dimension.")
    if kind.hasobject:
        raise CallerError(
            Status.HB_SYS_INVALID_ARGUMENT, f"The type {kind} holds Python objects, which the DSP cannot read."
        )
    return dims, math.prod(dims) * kind.itemsize


def dtype_of(given: DTypeLike) -> np.dtype[Any]:
    """Return the numpy type that a value names.

    Raises:
        CallerError: the name is unknown.
    """
    try:
        return np.dtype(given)
    except (TypeError, ValueError, SyntaxError):  # numpy parses some strings as lists of fields
        raise CallerError(
            Status.HB_SYS_INVALID_ARGUMENT,
            f"Unknown numpy type {short_repr(given)}; use np.float32, np.int8 or another numpy type.",
        ) from None


def place(block: object, what: str, session: Session) -> tuple[int, int]:
    """Return the physical address and byte size of a task's ``what`` argument; 0 and 0 if missing.

    Raises:
        CallerError: it is not in device memory, was freed, is on another board, or is not in C order.
    """
    if block.__class__ is Buffer:
        return block.place(session)
    if block is None:
        return 0, 0
    if isinstance(block, BoardArray):
        if not block.flags.c_contiguous:
            raise CallerError(
                Status.HB_DSP_INVALID_ARGUMENT,
                f"The {what} array has strides {block.strides} for shape {block.shape}; the DSP needs C order. "
                "Copy it with board.from_array().",
            )
        if not block.size:
            return 0, 0
        phy_addr = block.phy_addr  # a copy raises the error
        if block.board_buffer is not None:
            block.board_buffer.place(session)
        return phy_addr, block.nbytes
    if isinstance(block, Buffer):
        return block.place(session)
    raise CallerError(
        Status.HB_DSP_INVALID_ARGUMENT,
        f"The {what} is a {type(block).__name__}; it must be in device memory: board.empty(), from_array() or alloc().",
    )


def asked(request: Callable[[], T]) -> T:
    """Return the result of a request to the daemon.

    Raises:
        HbrtError: it was refused.
    """
    try:
        return request()
    except StatusError as error:
        raise error_for(int(error.status), error.text) from None
