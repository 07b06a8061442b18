"""pytest plugin: a private board for each test, which fails if it leaves anything on the board.

Installed with the package (entry point ``pytest11``). Fixtures:

``dsp_board``
    Connected board (``arm_client.client.Board``), also used by the C names. A test that leaves memory allocated or
    tasks unreleased on it fails, as does one that writes past a block or into freed memory. Choose the image with
    ``@pytest.mark.dsp_board(image="my_image.py", cores=2, ddr_bytes=..., fresh=False, check="memory,dma",
    profile="rk3588")``, its path relative to the test file, or for all tests with the ini option ``dsp_image``.
``dsp_board_factory``
    ``with dsp_board_factory(image=..., cores=...) as board:`` for a test that needs several boards or chooses at run
    time.

Daemons are reused by the next test with the same image and settings, unless ``fresh`` is set; each test attaches again.
At most four idle ones are kept; they end with the test run.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from arm_client.client import Board
    from hbrt.board.launch import Launched
    from hbrt.mailbox.table import State


class _Wanted(NamedTuple):
    """Key that identifies a daemon of the pool."""

    image: str | None
    image_stamp: int
    cores: int
    ddr_bytes: int
    profile: str
    environment: tuple[tuple[str, str], ...]


class _Daemon(NamedTuple):
    path: Path
    launched: Launched


class _Pool:
    """Daemons of this test process: those used last, since each idle one uses half a percent of a CPU."""

    def __init__(self) -> None:
        self._idle: dict[_Wanted, _Daemon] = {}

    def take(self, wanted: _Wanted, *, fresh: bool) -> _Daemon:
        daemon = None if fresh else self._idle.pop(wanted, None)
        return daemon or _start(wanted)

    def release(self, wanted: _Wanted, daemon: _Daemon, *, keep: bool, has_found: bool) -> None:
        if keep and wanted not in self._idle and (not has_found or _forgets(daemon)):
            self._idle[wanted] = daemon
            if len(self._idle) <= _MAX_IDLE:
                return
            daemon = self._idle.pop(next(iter(self._idle)))
        _end(daemon)

    def close(self) -> None:
        while self._idle:
            _end(self._idle.popitem()[1])


_MAX_IDLE = 4  # enough for tests that take turns with a few images or modes
_pool = _Pool()
# Leaks belong to clients that are gone. Strict-mode findings show in the test's results, which may be its purpose,
# and an op may divide a block in ways that only it knows.
_NO_DISORDER = {"endless-wait", "injected", "leak", "missing-clean", "needless-flush", "ping-blocks", "shared-block"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option ``dsp_image``."""
    parser.addini("dsp_image", "image file of the dsp_board fixture, relative to the rootdir", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "dsp_board(image=None, cores=None, ddr_bytes=None, fresh=False, check=None, inline=False, profile=None): its "
        "board",
    )


def pytest_unconfigure() -> None:
    """End the daemons."""
    _pool.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell the fixture whether the test ended with an exception (including a skip), whose frames keep its arrays alive.

    Ops' output and the board's findings become a section of the report, next to the test's own output.
    """
    report = yield
    if report.when == "call":
        item.stash[_HAS_FAILED] = call.excinfo is not None
    if (read_log := item.stash.get(_READ_LOG, None)) is not None and (said := read_log()):
        report.sections.append(("DSP log", said))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test that leaks on its board; other fixtures that use the board may still clean up first."""
    board = pyfuncitem.stash.get(_BOARD, None)
    result = yield
    if board is not None and not _fixtures_use_board(pyfuncitem) and not board.session.link.is_lost():
        _fail_for(left_behind(board, owner=pyfuncitem.instance))
    return result


def _fixtures_use_board(item: pytest.Function) -> bool:
    definitions = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001 - pytest has no public way to ask
    return any("dsp_board" in definition.argnames for several in definitions for definition in several)


_KEPT = ": an array or a buffer that is still referenced, for example by a module or class variable"
_CHOICES = ("image", "cores", "ddr_bytes", "fresh", "check", "inline", "profile")
_HAS_FAILED = pytest.StashKey[bool]()
_BOARD: pytest.StashKey[Board] = pytest.StashKey()
_READ_LOG: pytest.StashKey[Callable[[], str]] = pytest.StashKey()


@pytest.fixture
def dsp_board(request: pytest.FixtureRequest) -> Iterator[Board]:
    """A connected private board; see the module docstring."""
    from arm_client.session.dsp_log import log_reader
    from hbrt.errors import BoardError
    from hbrt.settings import BadSettingError

    options = _marked(request.node.get_closest_marker("dsp_board"))
    configured = request.config.getini("dsp_image")
    image = options.pop("image", None)
    if image is not None:
        image = request.path.parent / image
    elif configured:
        image = request.config.rootpath / configured
    with contextlib.ExitStack() as stack:
        made = _board(
            image=image,
            has_failed=lambda: request.node.stash.get(_HAS_FAILED, False),
            owner=request.instance,
            **options,
        )
        try:
            board = stack.enter_context(made)
        except (BoardError, BadSettingError) as error:  # its message says it all; a traceback would only hide it
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        request.node.stash[_BOARD] = board
        request.node.stash[_READ_LOG] = log_reader(board.session)
        yield board
        del request.node.stash[_BOARD]
        if request.node.funcargs is not None:  # the user quit the debugger, and pytest has dropped them
            request.node.funcargs.clear()  # fixtures that created arrays have ended; pytest would keep their values


def _marked(marker: pytest.Mark | None) -> dict[str, Any]:
    """Return the arguments of a marker ``dsp_board`` by name; the image may be positional."""
    if marker is None:
        return {}
    options: dict[str, Any] = dict(zip(("image",), marker.args, strict=False))
    wrong = [*map(repr, marker.args[1:]), *(name for name in marker.kwargs if name not in _CHOICES or name in options)]
    if wrong:
        pytest.fail(f"Unknown argument {wrong[0]} of marker dsp_board; known: {', '.join(_CHOICES)}.", pytrace=False)
    return {**options, **marker.kwargs}


@pytest.fixture
def dsp_board_factory(
    request: pytest.FixtureRequest,
) -> Callable[..., contextlib.AbstractContextManager[Board]]:
    """Create boards; call it with the arguments of the marker ``dsp_board``.

    Arrays that still exist when the statement ends are freed with the board and are not leaks; ``hbSysAllocMem`` blocks
    are.
    """

    def make(**options: Any) -> contextlib.AbstractContextManager[Board]:
        return _board(has_failed=lambda: request.node.stash.get(_HAS_FAILED, False), may_keep_arrays=True, **options)

    return make


@contextlib.contextmanager
def _board(
    *,
    has_failed: Callable[[], bool],
    image: str | Path | None = None,
    cores: int | None = None,
    ddr_bytes: int | None = None,
    fresh: bool = False,
    may_keep_arrays: bool = False,
    owner: object = None,
    check: str | None = None,
    inline: bool = False,
    profile: str | None = None,
) -> Iterator[Board]:
    from arm_client.client import Board
    from arm_client.errors import BoardLostError
    from arm_client.session import session as sessions
    from hbrt.board.paths import BoardPaths

    wanted = _wanted(None if inline else image, cores, ddr_bytes, profile or "")
    daemon = _pool.take(wanted, fresh=fresh)
    is_clean = has_found = False
    served = sessions.Inline(str(Path(image).absolute()) if image else None) if inline else None
    session = sessions.Session(BoardPaths(daemon.path), None, check, served)
    session.users = 1
    session.is_silent = True  # the test fails with these messages
    before = sessions.set_default(session)
    board = Board(session)
    try:
        yield board
        if not has_failed() and not session.link.is_lost():
            with contextlib.suppress(BoardLostError):  # it may be exiting, with some things still open
                _fail_for(left_behind(board, may_keep_arrays=may_keep_arrays, owner=owner))
                status = board.status()
                is_clean = all(core["crashes"] == 0 for core in status["cores"])
                has_found = bool(status["findings"])  # kinds that do not fail a test
    finally:
        sessions.set_default(before)
        board.close()
        _pool.release(wanted, daemon, keep=is_clean and not (fresh or inline), has_found=has_found)


def _fail_for(problems: list[str]) -> None:
    if problems:
        pytest.fail("The test leaked:\n" + "\n".join(problems), pytrace=False)


def left_behind(board: Board, *, may_keep_arrays: bool = False, owner: object = None) -> list[str]:
    """Describe what this process has left on a board: tasks, memory, and the daemon's findings about it.

    Args:
        board: A live connection.
        may_keep_arrays: Whether existing arrays and buffers are allowed.
        owner: Instance of a test class, whose own arrays are allowed: pytest drops it after the fixtures end.
    """
    from arm_client.arrays import asked

    mine = _buffers_of(owner)
    problems = _kept(board, mine, may_keep_arrays=may_keep_arrays)
    if problems:  # perhaps only by a reference cycle; a collection takes a large process 0.1 s
        gc.collect()
        problems = _kept(board, mine, may_keep_arrays=may_keep_arrays)
    asked(lambda: board.session.link.request("mem", most=0))  # also checks for writes into freed memory
    status = board.status()
    problems += [
        f"- {found['kind']}: {found['text']}" for found in status["findings"] if found["kind"] not in _NO_DISORDER
    ]
    return problems


def _buffers_of(owner: object) -> set[int]:
    """Return the physical addresses of arrays and buffers that are attributes of an object."""
    from arm_client.arrays import BoardArray, Buffer

    values = vars(owner).values() if hasattr(owner, "__dict__") else ()
    buffers = (value.board_buffer if isinstance(value, BoardArray) else value for value in values)
    return {buffer.phy_addr for buffer in buffers if isinstance(buffer, Buffer)}


def _kept(board: Board, mine: set[int], *, may_keep_arrays: bool) -> list[str]:
    """Describe tasks and memory that this process holds; blocks in ``mine`` are allowed."""
    from hbrt.mailbox.handle import slot_of

    session = board.session
    problems = [
        f"- task {handle:#x} was not released (hbDSPReleaseTask); it is {_state_name(session.tasks.state(handle))}"
        f"{_at('submitted', session.link.mailbox.site(slot_of(handle)) if session.checks else '')}"
        for handle in session.tasks.live_handles()
    ]
    spare = mine.union(buffer.phy_addr for buffer in board.spare_buffers())
    problems += [
        f"- {block.size_bytes} bytes at {block.phy_addr:#x} were not freed{_KEPT if block.is_managed else ''}"
        f"{_at('allocated', block.allocated_at)}"
        for block in session.blocks.owned()
        if block.phy_addr not in spare and not (may_keep_arrays and block.is_managed)
    ]
    return problems


def _at(what: str, site: str) -> str:
    return f", {what} at {site}" if site else ""


def _state_name(state: State | None) -> str:
    return "gone" if state is None else state.name


def _wanted(image: str | Path | None, cores: int | None, ddr_bytes: int | None, profile: str) -> _Wanted:
    from hbrt import settings
    from hbrt.profiles.profile import active, find

    path = str(Path(image).absolute()) if image else None
    stamp = Path(path).stat().st_mtime_ns if path and Path(path).exists() else 0
    environment = tuple(sorted((key, value) for key, value in os.environ.items() if key.startswith(("HBRT_", "HB_"))))
    size_bytes = settings.size_bytes("HBRT_DDR") if ddr_bytes is None else ddr_bytes
    served = (find(profile) if profile else active()).whole("cores.dsp.count") if cores is None else cores
    return _Wanted(path, stamp, served, size_bytes, profile, environment)


def _start(wanted: _Wanted) -> _Daemon:
    from hbrt.board.launch import DaemonConfig, launch
    from hbrt.board.paths import OF_A_TEST, private_directory

    path = private_directory(OF_A_TEST)
    config = DaemonConfig(
        str(path), wanted.image, wanted.cores, wanted.ddr_bytes, is_private=True, profile=wanted.profile
    )
    return _Daemon(path, launch(config))


def _forgets(daemon: _Daemon) -> bool:
    """Make a board drop its findings, which do not concern the next test."""
    from hbrt.board.paths import BoardPaths
    from hbrt.control.ask import ask
    from hbrt.errors import BoardError

    try:
        ask(BoardPaths(daemon.path), "forget")
    except BoardError:  # the board is going away
        return False
    return True


def _end(daemon: _Daemon) -> None:
    from hbrt.board.launch import end_private

    end_private(daemon.launched)
