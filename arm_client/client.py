"""The Python API: a board as a context manager, calls, futures, exceptions."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from operator import index
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from arm_client.arrays import BoardArray, Buffer, asked, extent, place
from arm_client.checks import seconds_of
from arm_client.errors import CallerError, HbrtError, error_for
from arm_client.future import PendingCall, Task, without_library_frames
from arm_client.parameters import ParameterBlock, ParameterBlocks
from arm_client.session import session as sessions
from hbrt.board.forked import mark, notice
from hbrt.status import Status
from hbrt.types import HB_DSP_CORE_ANY, HB_DSP_RPC_CMD_PING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from hbrt.profiles.profile import Profile

ANY = HB_DSP_CORE_ANY


Params: TypeAlias = "BoardArray | Buffer | bytes | bytearray | memoryview | ctypes.Structure | None"
Output: TypeAlias = "BoardArray | Buffer | None"


class Board:
    """A connection to a board; a context manager. Threads may share one."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session
        self.is_closed = False
        self._parameters = ParameterBlocks(session)
        self._structures = None if session.checker is None else session.checker.structures
        self._compares = session.routing.compares and bool(session.routing.routes)

    def __repr__(self) -> str:
        """The board's name, its cores, and where it is."""
        name, cores = self._session.link.paths.name, f"{self.core_count} core{'s' if self.core_count > 1 else ''}"
        return f"<Board {name}: {'closed' if self.is_closed else cores}, {self.path}>"

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
        """Create a zeroed array in device memory, C order; freed with its last view."""
        dims, size_bytes = extent(shape, dtype)
        return self.alloc(max(size_bytes, 1), cached=cached).array(dtype, dims)

    def empty_like(self, array: ArrayLike, *, cached: bool = False) -> BoardArray:
        """Create an array in device memory with the shape and type of another."""
        model = np.asarray(array)
        return self.empty(model.shape, model.dtype, cached=cached)

    def from_array(self, array: ArrayLike, *, cached: bool = False) -> BoardArray:
        """Copy an array to device memory, and clean the CPU cache."""
        model = np.asarray(array)
        mine = self.empty(model.shape, model.dtype, cached=cached)
        mine[...] = model
        if cached and mine.board_buffer is not None:
            mine.board_buffer.clean()
        return mine

    def from_fd(
        self, fd: int, shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8, *, offset: int = 0
    ) -> BoardArray:
        """Create an array over another library's memory, such as a camera buffer, without copying.

        It is cached memory, unregistered with its last view.

        Args:
            fd: A memfd, shared memory or a file, open for reading and writing; may be closed afterwards.
            shape: Shape in elements, C order.
            dtype: Element type.
            offset: Its start in the file, a multiple of 4096.

        Raises:
            CallerError: no such memory, or it is too small, or the board is on another machine.
                OutOfMemoryError: no room in the DDR's address space.
        """
        dims, size_bytes = extent(shape, dtype)
        session = self._live()
        size_bytes = max(size_bytes, 1)
        buffer = Buffer(
            session, size_bytes, is_cached=True, make=lambda: session.blocks.import_(fd, size_bytes, offset)
        )
        return buffer.array(dtype, dims)

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
            params: The input block: a board array or buffer is used directly; bytes or a ctypes structure are copied.
            output: The output block; ``result()`` returns it.
            priority: 0..255, larger first.
            core: HB_DSP_CORE_ANY (0), HB_DSP_CORE_0 (1) or HB_DSP_CORE_1 (2): bit i is core i.
            custom_id: Smaller first among equal priorities; a signed 64-bit integer.

        Raises:
            CallerError: a bad argument or address. OutOfMemoryError: no task slot left. BoardLostError: no board.
        """
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        try:
            return Task(session, handle, int(cmd), output, held, submit_ns)
        except BaseException:  # as in ``call``
            session.tasks.release_later(handle, (held, output))
            raise

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
        """Submit and wait; returns ``output``. On TimeoutError the task is released. Arguments as for ``submit``.

        Args:
            cmd: As for ``submit``, like all other arguments.
            params: The input block.
            output: The output block.
            priority: 0..255.
            core: Core mask.
            custom_id: Smaller first.
            timeout: Seconds; None waits forever.
            keep: Objects to keep alive as long as a core may access them, even if this call ends earlier.

        Raises:
            OpFailedError: the op raised or returned non-zero; carries its traceback. TimeoutError, and as for
                ``submit``.
        """
        if timeout is not None:
            timeout = seconds_of(timeout)
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        tasks = session.tasks
        try:
            if timeout is None and not tasks.finish(handle):
                return output
            pending = PendingCall(session, handle, int(cmd), output, (held, keep), submit_ns)
        except BaseException:  # interrupted: nobody else knows this handle
            tasks.release_later(handle, (held, output, keep))
            raise
        try:
            pending.finish(timeout)
        except HbrtError as error:
            raise without_library_frames(error) from None
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
    ) -> PendingCall:
        """Queue a task for which only the caller waits. Arguments as for ``call``, errors as for ``submit``."""
        session, handle, held, submit_ns = self._queue(cmd, params, output, priority, core, custom_id)
        try:
            return PendingCall(session, handle, int(cmd), output, (held, keep), submit_ns)
        except BaseException:  # as in ``call``
            session.tasks.release_later(handle, (held, output, keep))
            raise

    def _queue(
        self, cmd: int, params: Params, output: Output, priority: int, core: int, custom_id: int
    ) -> tuple[sessions.Session, int, BoardArray | Buffer | ParameterBlock | None, int]:
        """Queue a task; returns its handle, its input block and the time."""
        session = self._session
        if self.is_closed or session.link.fault or not mark[0]:
            self._live()  # raises if unusable; a forked child must not write into its parent's parameter block
        held = params if params.__class__ is Buffer else self._parameter_block(params)
        if held.__class__ is ParameterBlock:
            in_phy, in_bytes = held.phy_addr, held.size_bytes
        else:
            in_phy, in_bytes = place(held, "params", session)
        out_phy, out_bytes = place(output, "output", session)
        if self._compares:
            session.tasks.carrier.name_output(getattr(output, "dtype", None))
        submit_ns = monotonic_ns()
        cmd = index(cmd)
        handle = session.tasks.submit(
            cmd, index(priority), index(core), index(custom_id), in_phy, in_bytes, out_phy, out_bytes
        )
        if handle < 0:
            raise error_for(handle, session.tasks.why(), cmd)
        return session, handle, held, submit_ns

    def ping(self, core: int = ANY) -> float:
        """Return the round-trip time of one PING in seconds.

        Args:
            core: Core mask, as for ``submit``.

        Raises:
            BoardLostError: the board does not answer.
        """
        import time

        start = time.perf_counter()
        self.call(HB_DSP_RPC_CMD_PING, core=core)
        return time.perf_counter() - start

    @property
    def profile(self) -> Profile:
        """The constants of the modeled board, from its daemon."""
        return asked(lambda: self._live().profile)

    def ops(self) -> dict[int, str]:
        """Registered commands: number -> name."""
        session = self._live()
        if (own := session.tasks.carrier.own_ops()) is not None:
            return own
        rows: list[dict[str, Any]] = asked(lambda: session.link.request("ops"))
        return {row["cmd"]: row["name"] for row in rows}

    def status(self) -> dict[str, Any]:
        """Return the document that ``hbrt status --json`` prints."""
        status: dict[str, Any] = asked(lambda: self._live().link.request("status"))
        return status

    def inject(self, *faults: str, clear: bool = False) -> list[dict[str, Any]]:
        """Inject faults, like ``hbrt inject``, to test error paths.

        Args:
            faults: Each is an action with parameters, such as "kill-core core=1 call=3", "refuse-alloc call=2",
                "fail-copy".
            clear: Whether to drop pending faults first.

        Returns:
            The pending faults: one dict each, with ``fault`` and ``came``, the number of times it occurred.

        Raises:
            CallerError: an entry is not a fault, or names a nonexistent core; nothing is added.
        """
        left: list[dict[str, Any]] = asked(
            lambda: self._live().link.request("inject", faults="\n".join(faults), clear=int(clear))
        )
        return left

    def live_tasks(self) -> int:
        """Tasks of this process whose handles have not been released."""
        return len(self._session.tasks.live_handles())

    def spare_buffers(self) -> list[Buffer]:
        """Number of parameter blocks kept for this connection's next calls."""
        return self._parameters.spare()

    def live_bytes(self) -> int:
        """Bytes of device memory allocated by this process and not freed, except spare parameter blocks."""
        spare = {buffer.phy_addr for buffer in self.spare_buffers()}
        return sum(block.size_bytes for block in self._session.blocks.owned() if block.phy_addr not in spare)

    # -- life ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection; closing the last one detaches the process and ends a private board."""
        if not self.is_closed:
            self.is_closed = True
            self._parameters.close()
            sessions.release(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _live(self) -> sessions.Session:
        if self.is_closed:
            raise error_for(Status.HB_DSP_NOT_RUNNING, "This connection was closed; call connect() again.")
        notice()
        if self._session.link.fault:
            raise error_for(self._session.link.fault, self._session.link.why_faulty())
        return self._session

    def _parameter_block(self, params: Params) -> BoardArray | Buffer | ParameterBlock | None:
        if params is None or isinstance(params, (BoardArray, Buffer)):
            return params
        if self._structures is not None and isinstance(params, (ctypes.Structure, ctypes.Union)):
            self._structures.check_class(type(params))
        try:
            raw = bytes(memoryview(params).cast("B") if not isinstance(params, bytes) else params)
        except TypeError:
            raise CallerError(
                Status.HB_DSP_INVALID_ARGUMENT,
                f"The params are of type {type(params).__name__}; pass bytes, a ctypes structure, or an array of this "
                "board.",
            ) from None
        return self._parameters.hold(raw) if raw else None


def connect(
    board: str | None = None,
    *,
    check: str | None = None,
    inline: bool = False,
    route: str | None = None,
    compare: bool | None = None,
) -> Board:
    """Attach to a board.

    Args:
        board: Name or directory of a running board. None for the C names' board, the first that this process attached
            to; before that, the board of HBRT_BOARD or, if it is not running, a private one for this process's lifetime
            (disable with HBRT_AUTOSTART=0).
        check: The checks for this program: words of HBRT_CHECK, such as "memory,dma"; None for HBRT_CHECK.
        inline: Whether this process is the core of a private board (HBRT_INLINE=1): each op runs in the thread that
            submits it, where ``breakpoint()`` and a debugger work. There is no watchdog, and the
            process runs the tasks of all cores.
        route: Commands that another board runs, as in HBRT_ROUTE: "0x1000-0x10ff=tcp://10.0.0.7:5557"; None for
            HBRT_ROUTE.
        compare: Whether to run each task of a route on both boards and report the first difference as a finding; None
            for whether the routes have the word ``compare``.

    Raises:
        BoardError: the board is not running, or the private one does not start, or the board of a route cannot be
            reached;
            says why. WrongUseError: this process is already attached, with other checks or routes. BadSettingError:
            ``check`` has an unknown word, or ``route`` has an invalid entry.
    """
    return Board(sessions.acquire(board, check, is_inline=inline, routing=sessions.routing_of(route, compare=compare)))


@contextlib.contextmanager
def private_board(
    image: str | Path | None = None,
    *,
    cores: int | None = None,
    ddr_bytes: int | None = None,
    directory: Path | None = None,
    check: str | None = None,
    inline: bool = False,
    profile: str = "",
    route: str | None = None,
    compare: bool | None = None,
) -> Iterator[Board]:
    """A private board for this block, also used by the C names; removed at the end with everything on it.

    Args:
        image: Image file; None for the default image.
        cores: DSP cores; None for HBRT_CORES or, if unset, the profile's number.
        ddr_bytes: DDR size in bytes; None for HBRT_DDR.
        directory: Its directory; None for a temporary one.
        check: As for ``connect``.
        inline: As for ``connect``.
        profile: The board to model, a name such as "sd865" or a file; empty for HBRT_PROFILE.
        route: As for ``connect``.
        compare: As for ``connect``.

    Raises:
        BadSettingError: ``check`` has an unknown word, or the profile is unknown. BoardError: it fails to start, for
            example because the image does not load; carries the traceback.
    """
    from hbrt.board.paths import private_directory

    path = directory or private_directory()
    file = str(image) if image else None
    session = sessions.start_board(
        path,
        image=file,
        cores=cores,
        ddr_bytes=ddr_bytes,
        check=check,
        is_inline=inline,
        profile=profile,
        routing=sessions.routing_of(route, compare=compare),
    )
    session.users = 1
    before = sessions.set_default(session)
    board = Board(session)
    try:
        yield board
    finally:
        sessions.set_default(before)
        board.close()
