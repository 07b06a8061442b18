"""The Python habits: context managers, numpy arrays that know their physical address, futures, exceptions."""

from __future__ import annotations

import contextlib
import ctypes
import math
import weakref
from collections.abc import Iterator
from operator import index
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from arm_client import session as sessions
from arm_client.errors import CallerError, error_for
from arm_client.future import Posted, Task
from arm_client.memory import Block
from arm_client.refusal import RequestRefusedError
from hbrt.status import Status
from hbrt.types import (
    HB_DSP_CORE_ANY,
    HB_DSP_RPC_CMD_PING,
    HB_SYS_MEM_CACHE_CLEAN,
    HB_SYS_MEM_CACHE_INVALIDATE,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

ANY = HB_DSP_CORE_ANY


class BoardArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array in device memory. ``phy_addr`` is the physical address of its first element.

    A view of one (a slice, a reshape) knows its own address. What numpy computes from one is an ordinary array.
    """

    board_buffer: Buffer | None = None

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
            return self  # it was given as `out`, as in `a += 1`
        return array[()] if return_scalar else array.view(np.ndarray)

    @property
    def phy_addr(self) -> int:
        """Physical address of the first element.

        Raises:
            CallerError: the array does not lie in device memory (a copy, for one).
        """
        if self.board_buffer is None:
            raise CallerError(
                Status.HB_DSP_INVALID_ADDRESS,
                "This array is not in device memory: copying gave an ordinary array. Use board.from_array() or "
                "board.empty_like().",
            )
        if not self.size:
            return self.board_buffer.phy_addr
        start: int = self.__array_interface__["data"][0]
        phy_addr: int = self.board_buffer.phy_addr + start - self.board_buffer.address
        return phy_addr


class Buffer:
    """A block of device memory that is freed when it is closed, or when nothing refers to it any more."""

    def __init__(self, session: sessions.Session, size_bytes: int, *, is_cached: bool) -> None:
        block: Block = _call(lambda: session.blocks.alloc(size_bytes, is_cached=is_cached))
        block.is_managed = True
        self._block = block
        self._session = session
        self.phy_addr = block.phy_addr
        self.size_bytes = size_bytes
        self.address: int = ctypes.addressof(ctypes.c_char.from_buffer(block.view))
        self._free = weakref.finalize(self, session.blocks.free_later, block.phy_addr)
        self._free.atexit = False  # the lease takes everything back
        self._is_freed = False

    def view(self) -> memoryview:
        """Writable bytes as the CPU sees them.

        Raises:
            CallerError: the buffer was freed.
        """
        self._check_alive()
        return self._block.view[:]

    def array(self, dtype: DTypeLike, shape: int | tuple[int, ...]) -> BoardArray:
        """Array over the start of the buffer; it keeps the buffer alive.

        Raises:
            CallerError: the buffer is too small for it, or was freed.
        """
        self._check_alive()
        dims, size_bytes = _extent(shape, dtype)
        if size_bytes > self.size_bytes:
            raise CallerError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"An array of shape {dims} and type {np.dtype(dtype)} needs {size_bytes} bytes, but the buffer at "
                f"{self.phy_addr:#x} has {self.size_bytes}. Allocate a larger one.",
            )
        array = np.ndarray(dims, dtype, buffer=self._block.view).view(BoardArray)
        array.board_buffer = self
        return array

    def clean(self) -> None:
        """Cached memory: what the CPU wrote goes to the device."""
        _call(lambda: self._session.blocks.flush(self.phy_addr, self.size_bytes, HB_SYS_MEM_CACHE_CLEAN))

    def invalidate(self) -> None:
        """Cached memory: the CPU sees what the device wrote."""
        _call(lambda: self._session.blocks.flush(self.phy_addr, self.size_bytes, HB_SYS_MEM_CACHE_INVALIDATE))

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether an array's first element lies in this buffer."""
        start: int = array.__array_interface__["data"][0]
        return self.address <= start < self.address + max(self.size_bytes, 1)

    def free(self) -> None:
        """Free the memory now; arrays over it must not be used any more."""
        self._is_freed = True
        if self._free.detach() is not None:
            _call(lambda: self._session.blocks.free(self.phy_addr))

    def place(self, session: sessions.Session) -> tuple[int, int]:
        """Physical address and bytes, for a task on the board of ``session``.

        Raises:
            CallerError: the buffer was freed, or lies on another board.
        """
        if self._is_freed:
            self._check_alive()
        if self._session is not session:
            raise CallerError(
                Status.HB_DSP_INVALID_ADDRESS,
                f"The buffer at {self.phy_addr:#x} is not of this connection's board; copy it with from_array().",
            )
        return self.phy_addr, self.size_bytes

    @property
    def is_live(self) -> bool:
        """Whether the memory was not freed."""
        return self._free.alive

    def _check_alive(self) -> None:
        if not self._free.alive:
            raise CallerError(
                Status.HB_SYS_NOT_ALLOCATED, f"The buffer at {self.phy_addr:#x} was freed; allocate another one."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __len__(self) -> int:
        return self.size_bytes


Params: TypeAlias = "BoardArray | Buffer | bytes | bytearray | memoryview | ctypes.Structure | None"
Output: TypeAlias = "BoardArray | Buffer | None"


class Board:
    """A connection to a board; a context manager. Threads may share one."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session
        self.is_closed = False
        self._spare: list[Buffer] = []  # small parameter blocks, used again

    @property
    def session(self) -> sessions.Session:
        """The process's attachment behind this connection."""
        return self._session

    @property
    def path(self) -> Path:
        """Directory of the board."""
        return self._session.link.paths.path

    @property
    def core_count(self) -> int:
        """Cores of the board."""
        return self._session.link.core_count

    # -- memory -------------------------------------------------------------------------------------------------

    def alloc(self, size_bytes: int, *, cached: bool = False) -> Buffer:
        """Allocate zeroed device memory.

        Raises:
            OutOfMemoryError: no free range of that size. CallerError: a size outside 1..2^32-1.
        """
        return Buffer(self._live(), size_bytes, is_cached=cached)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, *, cached: bool = False) -> BoardArray:
        """New array in device memory, C order, zeroed; freed when the last view of it goes."""
        dims, size_bytes = _extent(shape, dtype)
        return self.alloc(max(size_bytes, 1), cached=cached).array(dtype, dims)

    def empty_like(self, array: ArrayLike, *, cached: bool = False) -> BoardArray:
        """New array in device memory with the shape and type of another."""
        model = np.asarray(array)
        return self.empty(model.shape, model.dtype, cached=cached)

    def from_array(self, array: ArrayLike, *, cached: bool = False) -> BoardArray:
        """Copy of an array in device memory; what the CPU cache holds of it is cleaned."""
        model = np.asarray(array)
        mine = self.empty(model.shape, model.dtype, cached=cached)
        mine[...] = model
        if cached and mine.board_buffer is not None:
            mine.board_buffer.clean()
        return mine

    # -- calls --------------------------------------------------------------------------------------------------

    def submit(
        self,
        cmd: int,
        params: Params = None,
        output: Output = None,
        *,
        priority: int = 0,
        core: int = ANY,
        custom_id: int = 0,
    ) -> Task:
        """Queue a task.

        Args:
            cmd: Command number.
            params: The input block: a board array or buffer as it is; bytes or a ctypes structure are copied.
            output: The output block; ``result()`` returns it.
            priority: 0..255, larger first.
            core: HB_DSP_CORE_ANY (0), HB_DSP_CORE_0 (1) or HB_DSP_CORE_1 (2): bit i is core i.
            custom_id: Smaller first among equal priorities; a signed 64-bit integer.

        Raises:
            CallerError: a bad argument or address. OutOfMemoryError: no task slot left. BoardLostError: no board.
        """
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        return Task(session, handle, int(cmd), output, held, submit_ns)

    def call(
        self,
        cmd: int,
        params: Params = None,
        output: Output = None,
        *,
        priority: int = 0,
        core: int = ANY,
        custom_id: int = 0,
        timeout: float | None = None,
        keep: object = None,
    ) -> Any:
        """Submit and wait; returns ``output``. On TimeoutError the task is let go. Arguments as for ``submit``.

        Args:
            cmd: As for ``submit``, like all that is not named here.
            params: The input block.
            output: The output block.
            priority: 0..255.
            core: Core mask.
            custom_id: Smaller first.
            timeout: Seconds; None waits for ever.
            keep: What must stay alive for as long as a core may touch it, even when this call ends before.

        Raises:
            OpFailedError: the op raised or returned non-zero; has its traceback. TimeoutError, and as ``submit``.
        """
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        tasks = session.tasks
        if timeout is None:
            try:
                has_failed = tasks.wait(handle, 0)
            except BaseException:
                tasks.release_later(handle, (held, output, keep))
                raise
            if not has_failed:
                tasks.release(handle)
                return output
        Posted(session, handle, int(cmd), output, (held, keep), submit_ns).finish(timeout)
        return output

    def post(
        self,
        cmd: int,
        params: Params = None,
        output: Output = None,
        *,
        priority: int = 0,
        core: int = ANY,
        custom_id: int = 0,
        keep: object = None,
    ) -> Posted:
        """Queue a task that its poster alone waits for. Arguments as for ``call``, errors as for ``submit``."""
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        return Posted(session, handle, int(cmd), output, (held, keep), submit_ns)

    def _queue(
        self, cmd: int, params: Params, output: Output, priority: int, core: int, custom_id: int
    ) -> tuple[sessions.Session, int, BoardArray | Buffer | _Spare | None, int]:
        """Queue a task; returns its handle, the input block, and when."""
        session = self._session
        if self.is_closed or session.link.fault:
            self._live()  # says which
        held = params if params.__class__ is Buffer else self._parameter_block(params)
        in_phy, in_bytes = _place(held, "params", session)
        out_phy, out_bytes = _place(output, "output", session)
        submit_ns = monotonic_ns()
        handle = session.tasks.submit(
            index(cmd), index(priority), index(core), _int64(custom_id), in_phy, in_bytes, out_phy, out_bytes
        )
        if handle < 0:
            raise error_for(handle, session.tasks.why(), cmd)
        return session, handle, held, submit_ns

    def ping(self, core: int = ANY) -> float:
        """Seconds that one PING took, there and back.

        Raises:
            BoardLostError: nobody answers.
        """
        import time

        start = time.perf_counter()
        self.call(HB_DSP_RPC_CMD_PING, core=core)
        return time.perf_counter() - start

    def ops(self) -> dict[int, str]:
        """Registered commands: number -> name."""
        rows: list[dict[str, Any]] = _call(lambda: self._live().link.request("ops"))
        return {row["cmd"]: row["name"] for row in rows}

    def status(self) -> dict[str, Any]:
        """What ``hbrt status --json`` prints."""
        status: dict[str, Any] = _call(lambda: self._live().link.request("status"))
        return status

    def live_tasks(self) -> int:
        """Tasks of this process whose handles were not released."""
        return self._session.tasks.live_count()

    def spare_buffers(self) -> list[Buffer]:
        """Parameter blocks that this connection keeps for its next calls."""
        return list(self._spare)

    def take_spare(self, buffer: Buffer) -> None:
        """A parameter block comes back from a task that has ended, unless the collector has freed it with the task."""
        if buffer.is_live:
            self._spare.append(buffer)

    def live_bytes(self) -> int:
        """Bytes of device memory that this process has allocated and not freed, spare parameter blocks left out."""
        spare = {buffer.phy_addr for buffer in self._spare}
        return sum(block.size_bytes for block in self._session.blocks.owned() if block.phy_addr not in spare)

    # -- life ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let the connection go; the last one of a process detaches, and a private board ends."""
        if not self.is_closed:
            self.is_closed = True
            spare, self._spare = self._spare, []
            for buffer in spare:
                with contextlib.suppress(Exception):
                    buffer.free()
            sessions.release(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _live(self) -> sessions.Session:
        if self.is_closed:
            raise error_for(Status.HB_DSP_NOT_RUNNING, "This connection was closed; call connect() again.")
        if self._session.link.fault:
            raise error_for(self._session.link.fault, self._session.link.why_faulty())
        return self._session

    def _parameter_block(self, params: Params) -> BoardArray | Buffer | _Spare | None:
        if params is None or isinstance(params, (BoardArray, Buffer)):
            return params
        try:
            raw = bytes(memoryview(params).cast("B") if not isinstance(params, bytes) else params)
        except TypeError:
            raise CallerError(
                Status.HB_DSP_INVALID_ARGUMENT,
                f"The params are a {type(params).__name__}; pass bytes, a ctypes structure, or an array of this board.",
            ) from None
        if not raw:
            return None
        try:
            spare = self._spare.pop()
        except IndexError:
            spare = None
        if spare is None or spare.size_bytes < len(raw):
            spare = self.alloc(max(len(raw), 256))
        spare.view()[: len(raw)] = raw
        return _Spare(self, spare, len(raw))


class _Spare:
    """A parameter block on loan to a task; it goes back to the connection when the task has ended."""

    def __init__(self, board: Board, buffer: Buffer, size_bytes: int) -> None:
        self.phy_addr = buffer.phy_addr
        self.size_bytes = size_bytes
        self._board = board
        self._buffer = buffer

    def __del__(self) -> None:
        if not self._board.is_closed:
            self._board.take_spare(self._buffer)


def _int64(custom_id: int) -> int:
    number = index(custom_id)
    if not -(1 << 63) <= number < 1 << 63:
        raise CallerError(Status.HB_DSP_INVALID_ARGUMENT, f"The custom_id is {number}; it is a signed 64-bit integer.")
    return number


def _extent(shape: int | tuple[int, ...], dtype: DTypeLike) -> tuple[tuple[int, ...], int]:
    """Dimensions and bytes of an array; exact, whatever the shape.

    Raises:
        CallerError: a negative dimension, or a type that cannot lie in device memory.
    """
    dims = tuple(index(dim) for dim in shape) if isinstance(shape, (tuple, list)) else (index(shape),)
    kind = np.dtype(dtype)
    if min(dims, default=0) < 0:
        raise CallerError(Status.HB_SYS_INVALID_ARGUMENT, f"The shape {dims} has a negative dimension.")
    if kind.hasobject:
        raise CallerError(
            Status.HB_SYS_INVALID_ARGUMENT, f"The type {kind} holds Python objects, which the DSP cannot read."
        )
    return dims, math.prod(dims) * kind.itemsize


def _place(block: object, what: str, session: sessions.Session) -> tuple[int, int]:
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
        phy_addr = block.phy_addr  # a copy has none, and says so
        if block.board_buffer is not None:
            block.board_buffer.place(session)
        return phy_addr, block.nbytes
    if isinstance(block, Buffer):
        return block.place(session)
    if isinstance(block, _Spare):
        return block.phy_addr, block.size_bytes
    raise CallerError(
        Status.HB_DSP_INVALID_ARGUMENT,
        f"The {what} is a {type(block).__name__}; it must be in device memory: board.empty(), from_array() or alloc().",
    )


def _call(request: Any) -> Any:
    try:
        return request()
    except RequestRefusedError as error:
        raise error_for(int(error.status), str(error)) from None


def connect(board: str | None = None) -> Board:
    """Attach to a board.

    Args:
        board: Name or directory of a running board. None takes HBRT_BOARD, and starts a private board for this
            process's life when none runs (HBRT_AUTOSTART=0 turns that off).

    Raises:
        BoardError: no such board runs, or the private one does not start; says why.
    """
    return Board(sessions.acquire(board))


@contextlib.contextmanager
def private_board(
    image: str | Path | None = None,
    *,
    cores: int = 2,
    ddr_bytes: int | None = None,
    directory: Path | None = None,
) -> Iterator[Board]:
    """A board of this block's own, which the C names use meanwhile; gone at the end, with everything on it.

    Args:
        image: Image file; None takes the default image.
        cores: Cores.
        ddr_bytes: DDR; None takes HBRT_DDR.
        directory: Where; None makes a directory of its own.

    Raises:
        BoardError: it does not start, for one because the image does not load; has the traceback.
    """
    import os

    from hbrt.board import home

    path = directory or home() / f"private-{os.getpid()}-{os.urandom(4).hex()}"
    session = sessions.start_board(path, image=str(image) if image else None, cores=cores, ddr_bytes=ddr_bytes)
    session.users = 1
    before = sessions.set_default(session)
    board = Board(session)
    try:
        yield board
    finally:
        sessions.set_default(before)
        board.close()
