"""The process's attachments: one session per board, shared by the C names and the Python API.

The C names use the process's default session, which attaches on first use. ``connect()`` uses the same one, so memory
from one API works with calls of the other. Sessions end with the process; a private board ends with its session.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi.call_site import tell_callers
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.session import exit_report
from arm_client.session.callbacks import Notifier
from arm_client.session.process import process
from arm_client.tracing import program
from arm_client.transport.choose import attach
from hbrt import settings
from hbrt.attach.link import program_name
from hbrt.board import forked
from hbrt.board.launch import DaemonConfig, Launched, end_private, launch
from hbrt.board.paths import BoardPaths, BoardRef, board_ref, private_directory
from hbrt.board.routes import Routing, parse_routing
from hbrt.borders.interrupts import let_out
from hbrt.errors import BoardError, DidNotStartError, NoDaemonError, WrongUseError
from hbrt.exploration.seeds import BOARD
from hbrt.findings.checks import OF_SUBMISSIONS, Check, checks_of
from hbrt.status import Status
from hbrt.trace.switch import Recorder

if TYPE_CHECKING:
    from arm_client.strict.checker import TaskChecker
    from hbrt.attach.link import Link
    from hbrt.findings.record import Finding
    from hbrt.profiles.profile import Profile


class Inline(NamedTuple):
    """The image of a process that is its own core: a file, or None for the packaged ops."""

    image: str | None


def _record(link: Link) -> str | None:
    """Have the cores record this program's calls, under HBRT_RECORD; returns the directory, or None."""
    if not (directory := settings.text("HBRT_RECORD")):
        return None
    path = Path(directory).absolute()
    link.record(path)
    return str(path)


def routing_of(route: str | None, *, compare: bool | None) -> Routing | None:
    """A program's routes, as in HBRT_ROUTE, and whether to compare results; None for the settings' values.

    Raises:
        BadSettingError: a value is invalid.
    """
    return None if route is None and compare is None else _routing(route, compare=compare)


def _routing(route: str | None = None, *, compare: bool | None = None) -> Routing:
    wanted = parse_routing(settings.text("HBRT_ROUTE") if route is None else route)
    return wanted if compare is None else wanted._replace(compares=compare)


_DETACH_MS = 1000  # a hung daemon does not delay program exit; when it resumes, it reclaims everything


class Session:
    """A process's attachment to one board: link, tasks, memory; reference-counted."""

    def __init__(
        self,
        paths: BoardRef,
        daemon: Launched | None = None,
        check: str | None = None,
        inline: Inline | None = None,
        routing: Routing | None = None,
    ) -> None:
        """Attach to the board at ``paths``.

        Args:
            paths: The board's paths.
            daemon: The private daemon that ends with this session.
            check: Checks, in HBRT_CHECK syntax; None for HBRT_CHECK. The board's are added.
            inline: The image of this process as its own core; None uses the board's cores.
            routing: The commands that other boards run; None for HBRT_ROUTE.

        Raises:
            BoardError: the process cannot attach; NoDaemonError if no daemon serves the board. BadSettingError.
        """
        self.daemon = daemon
        self.users = 0
        self.futures: dict[int, int] = {}  # slot -> handle of its last task held by a future
        self.companions: dict[type, object] = {}  # data of other packages for this attachment, until it ends
        self.stands_in = ""  # message about a board that this process started because none was running
        self.is_silent = False  # another process reports this one's findings
        self.is_inline = inline is not None
        self.routing = _routing() if routing is None else routing
        self._is_closed = False
        self.checks = Check(0)
        self._recording: str | None = None  # its directory
        self.checker: TaskChecker | None = None
        try:
            wanted = checks_of(settings.words("HBRT_CHECK", check))
            is_strict = settings.seeded("HBRT_CACHE")[0] != "coherent"

            def watch(link: Link) -> bool:
                self._recording = _record(link)
                self.checks = Check(link.watch_tasks(wanted))
                return is_strict or Check.COHERENCE in self.checks

            self.link, self.tasks, self.blocks = attach(paths, watch, self.routing, is_inline=inline is not None)
            if is_strict or self.checks & OF_SUBMISSIONS:
                from arm_client.strict.checker import TaskChecker  # no cost for a program without checks

                self.checker = TaskChecker(self.link, self.tasks, self.blocks, self.checks)
            if self.checks & ~Check.HOOKS:
                tell_callers()
            if self.checks & ~Check.HOOKS:
                self.blocks.isolate()
            if inline is not None:
                self._be_the_core(inline)
        except BaseException as error:  # a bad setting, or no file descriptor left
            self._end_daemon()
            let_out(error)
            if isinstance(error, OSError | ImportError):
                why = str(error).rstrip(".")
                raise BoardError(f"This process cannot attach to board {paths.name}: {why}.") from None
            raise
        self.notifier = Notifier(self.link, self.tasks)
        self._recorder = Recorder(self.link.trace, "program", program_name())
        self.link.on_asked = self._follow_trace
        self._follow_trace()
        process.known.add(self)

    @property
    def is_closed(self) -> bool:
        """Whether this process has closed it."""
        return self._is_closed

    @property
    def is_usable(self) -> bool:
        """Whether calls can succeed: attached, the daemon is alive, and this is not a forked child."""
        forked.notice()
        return not self.link.is_lost()

    @property
    def is_busy(self) -> bool:
        """Whether this process has a request in progress: a finalizer that runs inside it must not send another."""
        return self.link.is_asking or self.tasks.carrier.is_asking

    @cached_property
    def profile(self) -> Profile:
        """The constants of the modeled board, from its daemon."""
        from hbrt.profiles.profile import from_answer

        return from_answer(self.link.request("profile"))

    def why(self, status: int) -> str:
        """Return the message for a nonzero status that this thread got; an unknown op may belong to another board."""
        text = self.tasks.why()
        return f"{text} {self.stands_in}" if self.stands_in and status == Status.HB_DSP_UNKNOWN_COMMAND else text

    def _be_the_core(self, inline: Inline) -> None:
        try:
            self.tasks.carrier.load(inline.image, self._report, self._recording)
        except BaseException:
            self.tasks.close()
            self.link.close()
            raise

    def _follow_trace(self) -> None:
        """Start or stop tracing this program's calls, following the board's switch."""
        if self._recorder.look():
            self.blocks.trace = self.link.events = ring = self._recorder.ring
            self.tasks.follow_trace(ring)
            program.follow(ring)

    def _report(self, found: Finding) -> None:
        """Have the board record a finding of an op that this process ran."""
        self.link.find(found.kind, found.text, *found.places)

    def detach_in_child(self) -> None:
        """In a forked child: drop the parent's lease and its private board."""
        self._recorder.end()
        self._follow_trace()
        self.link.detach_in_child()
        self.tasks.detach_in_child()
        self.blocks.detach_in_child()
        self.notifier.detach_in_child()
        if self.daemon is not None:
            os.close(self.daemon.lifeline)
            self.daemon = None

    def close(self) -> None:
        """Detach, and stop a private board. Does nothing in a forked child: both are the parent's."""
        forked.notice()
        if self._is_closed or self.link.fault == Status.HB_DSP_FORKED:
            return
        self._is_closed = True
        self.companions.clear()
        process.known.discard(self)
        if not self.link.is_lost():
            self.link.request_ms = _DETACH_MS
            self._release_left()
            self.tasks.empty_released()
            self.blocks.free_abandoned()
            self.link.begin_detach()  # first, since a call would write parameters into private pages
            self.blocks.keep_views()
            self.blocks.free_managed()
            exit_report.report_findings(self.link, is_private=self.daemon is not None, is_silent=self.is_silent)
            for link in self.tasks.carrier.detach():
                exit_report.report_findings(link, is_private=False, is_silent=self.is_silent)
        self.link.detach()
        self.blocks.keep_views()
        self.notifier.close()
        if self.checker is not None:
            self.checker.close()
        self.tasks.close()
        self._recorder.end()
        self.link.on_asked = None  # break reference cycles, which would keep the board's memory
        self.link.close()
        self._end_daemon()

    def _release_left(self) -> None:
        """Release finished tasks whose futures were not queried: at an orderly process exit they are not leaks."""
        live = set(self.tasks.live_handles())
        for handle in live.intersection(self.futures.values()):
            if self.tasks.has_ended(handle):
                self.tasks.release(handle)

    def _end_daemon(self) -> None:
        if self.daemon is not None:
            daemon, self.daemon = self.daemon, None
            end_private(daemon)


def default(profile: str = "") -> Session:
    """Return the process's default session; attaches on first use, and again after a board restart.

    A forked child reattaches to its parent's board, even a private one, and never to another.

    Args:
        profile: As for ``attached``.

    Raises:
        BoardError: no board is running and none may be started, or it fails to start.
    """
    forked.notice()
    session = process.default
    if session is not None and not session.link.fault:
        return session
    with process.lock:
        if process.default is None or not process.default.is_usable:
            process.default = _attach(_inherited_board(), profile=profile)
        return process.default


def attached(profile: str = "") -> Session:
    """Return the session of the C names; attaches, or starts a private board, if there is none.

    Args:
        profile: Profile of a private board when HBRT_PROFILE is not set; empty for the default.

    Raises:
        RequestRefusedError: HB_DSP_NOT_RUNNING with the reason: no board is running and none may be started, or it
            fails to start.
    """
    try:
        return default(profile)
    except (BoardError, settings.BadSettingError) as error:
        if isinstance(error, settings.BadSettingError | DidNotStartError):  # else programs that ignore statuses go on
            from arm_client.cabi.say import warn_once

            warn_once(str(error), about=type(error).__name__)
        raise RequestRefusedError(Status.HB_DSP_NOT_RUNNING, str(error)) from None


def acquire(
    board: str | None = None, check: str | None = None, *, is_inline: bool = False, routing: Routing | None = None
) -> Session:
    """Return a session for one more user: the default one, or that of a named board (or its directory).

    Args:
        board: Name or directory; None for the default.
        check: Checks, in HBRT_CHECK syntax; None for HBRT_CHECK, or those of the session.
        is_inline: Whether this process serves as the core of a private board, as with HBRT_INLINE.
        routing: The commands that other boards run; None for HBRT_ROUTE, or those of the session.

    Raises:
        BoardError: no such board is running, or it fails to start. WrongUseError: this process is already attached to
            it, with different checks or routes.
    """
    forked.notice()
    with process.lock:
        if board is None:
            known = process.default
            session = (
                known
                if known is not None and known.is_usable
                else _attach(_inherited_board(), check, is_inline=is_inline, routing=routing)
            )
        else:
            session = _attach(board, check, is_inline=is_inline, routing=routing)
        if routing is not None and routing != session.routing:
            routes = ", ".join(map(str, session.routing.routes))
            raise WrongUseError(
                f"This process is already attached to board {session.link.paths.name}, with "
                f"{f'the routes {routes}' if routes else 'no routes'}: give the routes, and whether to compare, in the "
                "first connect(), or with HBRT_ROUTE."
            )
        if check is not None and checks_of(settings.words("HBRT_CHECK", check)) & ~session.checks:
            raise WrongUseError(
                f"This process is already attached to board {session.link.paths.name}, without these checks: give them "
                "in the first connect(), or with HBRT_CHECK."
            )
        if is_inline and not session.is_inline:
            raise WrongUseError(
                f"This process is attached to board {session.link.paths.name}, whose cores serve it: pass "
                "inline=True to the first connect(), without a board name, or set HBRT_INLINE=1."
            )
        if process.default is None or process.default.link.fault:
            process.default = session
        session.users += 1
        return session


def release(session: Session) -> None:
    """Undo ``acquire``; releasing the last user detaches."""
    forked.notice()
    with process.lock:
        session.users -= 1
        if session.users > 0:
            return
        if process.sessions.get(session.link.paths.path) is session:
            del process.sessions[session.link.paths.path]
        if process.default is session:
            process.default = None
    session.close()


def _inherited_board() -> str | None:
    """In a forked child, return the address of its parent's board; else None."""
    session = process.default
    is_forked = session is not None and session.link.fault == Status.HB_DSP_FORKED
    return session.link.address if session is not None and is_forked else None


def set_default(session: Session | None) -> Session | None:
    """Make a session the one that the C names use, or none if it has been closed; returns the previous one."""
    with process.lock:
        before = process.default
        process.default = None if session is None or session.is_closed else session
        return before


def _attach(
    board: str | None,
    check: str | None = None,
    *,
    is_inline: bool = False,
    profile: str = "",
    routing: Routing | None = None,
) -> Session:
    paths = board_ref(board)
    session = process.sessions.get(paths.path)
    if session is not None and session.is_usable:
        return session
    if board is None and (is_inline or settings.flag("HBRT_INLINE") or settings.is_given("HBRT_SCHEDULE")):
        session = _private(check, is_inline=True, routing=routing)
        process.sessions[session.link.paths.path] = session
        return session
    try:
        session = Session(paths, check=check, routing=routing)
    except NoDaemonError:
        if board is not None or not settings.flag("HBRT_AUTOSTART"):
            raise
        session = None
    if session is None:  # outside the handler: an error of the private board has a different cause
        session = _private(check, profile=profile, routing=routing)
        session.stands_in = _whose_board_it_is(paths)
        if not settings.is_default("HBRT_BOARD"):
            _say_whose_board_it_is(paths, session.link.paths)
    process.sessions[session.link.paths.path] = session
    return session


def _say_whose_board_it_is(wanted: BoardRef, private: BoardRef) -> None:
    """Warn about the private board: a user who misspelled a board name would look in the wrong log."""
    from arm_client.cabi.say import warn

    warn(
        "Board %s (HBRT_BOARD) is not running, so this program uses a private one, %s. Start it with "
        "'hbrt start', or set HBRT_AUTOSTART=0 to make the program fail instead.",
        wanted.name,
        private.name,
    )


def _whose_board_it_is(wanted: BoardRef) -> str:
    """Return a message for a program that lacks an op, which may belong to a board that was not started."""
    from hbrt.control.ask import how_to_name

    image = settings.text("HBRT_IMAGE")
    return (
        f"Board {wanted.name} is not running, so this program uses a private one with "
        f"{f'the image {image}' if image else 'the packaged ops alone'}: start yours with 'hbrt start --image "
        f"FILE.py{how_to_name(wanted)}', or name the image in HBRT_IMAGE."
    )


def _private(
    check: str | None, *, is_inline: bool = False, profile: str = "", routing: Routing | None = None
) -> Session:
    """Return a private board that ends with this process, or the one shared by the runs of a schedule."""
    image = settings.text("HBRT_IMAGE")
    if settings.is_given("HBRT_SCHEDULE") and (directory := os.environ.get(BOARD)):
        return Session(BoardPaths(Path(directory)), check=check, inline=Inline(image or None), routing=routing)
    wanted = "" if settings.is_given("HBRT_PROFILE") else profile
    return start_board(
        private_directory(),
        image=image or None,
        check=check,
        is_inline=is_inline,
        profile=wanted,
        routing=routing,
    )


def start_board(
    path: Path,
    *,
    image: str | None = None,
    cores: int | None = None,
    ddr_bytes: int | None = None,
    check: str | None = None,
    is_inline: bool = False,
    profile: str = "",
    routing: Routing | None = None,
) -> Session:
    """Start a private board and attach to it; ``is_inline`` makes this process its core.

    Args:
        path: The board's directory.
        image: Its image; None for all packaged ops.
        cores: Number of DSP cores; None for HBRT_CORES, else the profile's.
        ddr_bytes: Memory size in bytes; None for HBRT_DDR.
        check: Checks, in HBRT_CHECK syntax.
        is_inline: Whether this process is its core.
        profile: Profile name or file; empty for HBRT_PROFILE.
        routing: As for ``Session``.

    Raises:
        BadSettingError: the profile is invalid, or lacks these cores.
        BoardError: it fails to start; with the daemon's text, such as the image's traceback.
    """
    from hbrt.profiles.profile import active, find

    file = str(Path(image).absolute()) if image else None
    is_inline = is_inline or settings.is_given("HBRT_SCHEDULE")
    config = DaemonConfig(
        directory=str(path),
        image=None if is_inline else file,
        cores=(find(profile) if profile else active()).dsp_cores(cores),
        ddr_bytes=settings.size_bytes("HBRT_DDR") if ddr_bytes is None else ddr_bytes,
        is_private=True,
        profile=profile,
    )
    inline = Inline(file) if is_inline else None
    return Session(BoardPaths(path), launch(config, has_console=True), check, inline, routing)
