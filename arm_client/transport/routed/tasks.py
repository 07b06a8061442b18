"""The tasks of a process that has another board run some commands: HBRT_ROUTE.

Such a task has a slot of this board, in which no core finds it, and a handle as every other one: so what waits, looks
and releases knows no difference. The other board's end of it is written into the slot.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.cabi import say
from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.routed.compare import first_difference, unlike_ends
from arm_client.transport.routed.other_board import Ended, OtherBoard
from hbrt.attach.task_slots import TaskSlots
from hbrt.board.forked import mark
from hbrt.board.routes import Route, Routing, route_of
from hbrt.errors import BoardError
from hbrt.findings.record import Finding, Place
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import Answer, State
from hbrt.profiles.work import NO_WORK, Work
from hbrt.protocol.control import MAX_SITE
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.transport.routed.other_board import Dial
    from hbrt.attach.link import Link
    from hbrt.board.paths import RemoteBoard
    from hbrt.types import hbDSPRpcCtrlParam, hbSysMem


MAX_TRIES = 8  # addresses of another board, for a block that wants one that is free on all


class _Ride(NamedTuple):
    """A task on another board."""

    route: Route
    there: OtherBoard
    handle: int  # there


class RoutedTasks(TaskSlots):
    """Tasks some of which another board runs, in whichever mode ``routed`` adds this to; ``follow`` it first."""

    _routing = Routing()
    _note_held: Callable[[int], None] | None = None
    _dial: Dial
    _blocks: Callable[[], Iterable[Block]]

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._boards: dict[RemoteBoard, OtherBoard] = {}
        self._dialling = threading.RLock()
        self._rides: dict[int, _Ride] = {}  # by handle here
        self._riders: dict[tuple[OtherBoard, int], int] = {}  # handle here, by board and handle there
        self._left: set[OtherBoard] = set()  # a task there was released before its end
        self._comparing = threading.RLock()
        self._compared: Counter[int] = Counter()  # tasks, by command
        self._told: set[tuple[int, str]] = set()
        self._outputs = threading.local()

    def follow(self, routing: Routing, dial: Dial, blocks: Callable[[], Iterable[Block]]) -> None:
        """Attach to the boards of the routes.

        Args:
            routing: As of HBRT_ROUTE and HBRT_ROUTE_COMPARE.
            dial: Attaches to a board.
            blocks: All blocks of this process.

        Raises:
            BoardError: one cannot be reached; names the route.
        """
        self._dial, self._blocks, self._routing = dial, blocks, routing
        for route in routing.routes:
            try:
                self._board_of(route)
            except BoardError as error:
                raise BoardError(f"The route {route} (HBRT_ROUTE) cannot be used: {error}") from None

    def addresses(self, size_bytes: int, site: str, *, is_cached: bool) -> Iterator[int]:
        """Addresses at which all boards of the routes have a block for this process now; ``forget_block`` those unused.

        Args:
            size_bytes: Its size.
            site: Line of the program.
            is_cached: As of ``Blocks.alloc``.
        """
        boards = [there for there in list(self._boards.values()) if not there.link.fault]
        for _ in range(MAX_TRIES if boards else 0):
            address = boards[0].alloc(size_bytes, site, is_cached=is_cached)
            if address is None:
                return
            if all(there.alloc(size_bytes, site, address, is_cached=is_cached) for there in boards[1:]):
                yield address
            else:
                self.forget_block(address)

    def busy_boards(self) -> set[OtherBoard]:
        """The boards on which tasks of this process run, or were queued, or may run since they were released."""
        return {ride.there for ride in list(self._rides.values())} | self._left

    def _board_of(self, route: Route) -> OtherBoard:
        """The board of a route, anew when the connection to it was lost.

        Raises:
            BoardError: it cannot be reached.
        """
        there = self._boards.get(route.board)
        if there is not None and not there.link.fault:
            return there
        with self._dialling:
            there = self._boards.get(route.board)
            if there is not None and there.link.fault:
                there.close()
                self._on_lost(there)
                self._left.discard(there)
                del self._boards[route.board]
                there = None
            if there is None:
                there = OtherBoard(route.board, self.link.ddr, self._dial, self._on_ended, self._on_lost)
                self._boards[route.board] = there
            return there

    # -- submit

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``; to the board of the command's route, where it has one."""
        route = route_of(given[0], self._routing.routes)
        if route is None:
            return super().submit(*given)
        if (self.link.fault or not mark[0]) and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        try:
            there = self._board_of(route)
            with self._comparing if self._routing.compares else nullcontext():
                there.follow(self._blocks())
                return (
                    self._compare(route, there, *given)
                    if self._routing.compares
                    else self._run_there(route, there, *given)
                )
        except (BoardError, RequestRefusedError) as error:
            status = getattr(error, "status", Status.HB_DSP_RELAY_LOST)
            return self.refuse(int(status), on_route(route, str(error)))

    def _run_there(self, route: Route, there: OtherBoard, *given: int) -> int:
        """Have a task run there; arguments and answer as of ``submit``."""
        handle = self.hold(*given)
        if handle < 0:
            return handle
        try:
            if self._note_held is not None:
                self._note_held(handle & SLOT_MASK)
            handle_there = there.tasks.submit(*given)
            if handle_there > 0:
                self._rides[handle] = _Ride(route, there, handle_there)
                self._riders[there, handle_there] = handle
                if there.tasks.has_ended(handle_there) or there.link.fault:
                    self._settle(there, handle_there)
                return handle
        except BaseException:
            self.release(handle)
            raise
        self.release(handle)
        return self._refuse_there(route, there, handle_there, *given)

    def _refuse_there(self, route: Route, there: OtherBoard, status: int, *given: int) -> int:
        """Refuse a task that the other board has refused."""
        why = there.tasks.why()
        for phy_addr in (given[4], given[6]):
            if phy_addr in there.refused:
                why = f"It does not have the block {phy_addr:#x} at this address: {there.refused[phy_addr]}"
        return self.refuse(status, on_route(route, why))

    def _compare(self, route: Route, there: OtherBoard, *given: int) -> int:
        """Run a task there, then here, from the same bytes; the program continues with what this board made."""
        keep_apart, dtype = there.memory.keep_apart, self._outputs.__dict__.pop("dtype", None)
        keep_apart(is_on=True)
        try:
            ended = there.run(*given)
            if ended.is_refused:
                return self._refuse_there(route, there, ended.status, *given)
            if there.link.fault:
                return self.refuse(there.link.fault, on_route(route, there.link.why_faulty()))
            changed = keep_apart(is_on=True)
            handle = super().submit(*given)
            if handle < 0:
                return handle
            try:
                here = Ended(super().wait(handle, 0), self.text(handle))
            except BaseException:  # an interrupt: the caller never gets this handle
                self.release(handle)
                raise
        finally:
            keep_apart(is_on=False)
        self._compared[given[0]] += 1
        if self.link.fault:
            return handle
        if here.status != ended.status:
            self._tell(route, given[0], unlike_ends(here, ended))
        elif not here.status:
            self._compare_memory(route, there, changed, dtype, *given)
        return handle

    def _compare_memory(self, route: Route, there: OtherBoard, changed: set[int], dtype: Any, *given: int) -> None:
        """Compare the output block of a task, then the other blocks that it has changed there."""
        cmd, *_, phy_addr, size_bytes = given
        ranges = [(phy_addr, size_bytes, "its output block", dtype)] if size_bytes else []
        ranges += [
            (block.phy_addr, block.size_bytes, f"the block of {block.allocated_at}", None)
            for block in sorted(self._blocks(), key=lambda one: one.phy_addr)
            if block.phy_addr in changed
        ]
        for start, length, what, kind in ranges:
            found = first_difference(*there.memory.both(start, length), kind)
            if found is not None:
                place = Place("submitted", cmd=cmd, phy_addr=start + found.offset, block=start, block_bytes=length)
                self._tell(route, cmd, f"in {what} ({start:#x}+{length:#x}) {found.text}", place)
                return

    def _tell(self, route: Route, cmd: int, what: str, place: Place | None = None) -> None:
        """Report a difference, once a line of the program and command."""
        site = call_site(MAX_SITE)
        if (cmd, site) in self._told:
            return
        self._told.add((cmd, site))
        task = f"Task {self._compared[cmd]} of command {cmd:#x}"
        text = f"{site}: {task} gave another result on the board of the route {route}: {what}."
        say.tell(Finding("route-difference", text))
        self.link.find("route-difference", text, (place or Place("submitted", cmd=cmd))._replace(site=site))

    def name_output(self, dtype: Any) -> None:
        """Say what the elements are of the output block of this thread's next task; None for bytes."""
        self._outputs.dtype = dtype

    def rpc(self, ctrl: hbDSPRpcCtrlParam, input: hbSysMem, output: hbSysMem) -> int:
        """As ``TaskSlots.rpc``."""
        return 0 if route_of(ctrl.rpcCmd, self._routing.routes) else super().rpc(ctrl, input, output)

    def note_each(self, note: Callable[[int], None] | None) -> None:
        """As ``TaskSlots.note_each``."""
        self._note_held = note
        super().note_each(note)

    def lend(self) -> int:
        """As ``TaskSlots.lend``: each task is checked."""
        return 0

    def forget_block(self, phy_addr: int) -> None:
        """As ``TaskSlots.forget_block``."""
        for there in list(self._boards.values()):
            there.let_go(phy_addr)

    # -- the threads of the connections

    def _on_ended(self, there: OtherBoard, handle_there: int) -> None:
        if there.tasks.has_ended(handle_there):
            self._settle(there, handle_there)

    def _on_lost(self, there: OtherBoard) -> None:
        for board, handle_there in list(self._riders):
            if board is there:
                self._settle(there, handle_there)

    def _settle(self, there: OtherBoard, handle_there: int) -> None:
        """Write the end of a task into its slot here, once."""
        handle = self._riders.pop((there, handle_there), 0)
        ride, tasks = self._rides.get(handle), there.tasks
        if ride is None:
            return  # it was released, or its submission has not returned
        state = tasks.state(handle_there) if not there.link.fault else None
        work: Work = NO_WORK
        if state is None or not tasks.has_ended(handle_there):
            status, text = int(there.link.fault or Status.HB_DSP_RELAY_LOST), there.link.why_faulty()
            state, answer = State.LOST, Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0)
        else:
            answer, text, work = tasks.answer(handle_there), tasks.text(handle_there), tasks.work(handle_there)
        self.end_held(handle, state, answer, on_route(ride.route, text) if state is not State.DONE else "", work)
        self._rides.pop(handle, None)
        tasks.release(handle_there)

    # -- look, cancel, release

    @property
    def is_asking(self) -> bool:  # type: ignore[override]  # changes
        """As ``TaskSlots.is_asking``."""
        return any(there.link.is_asking for there in list(self._boards.values()))

    def state(self, handle: int) -> State | None:
        """As ``TaskSlots.state``; asks the other board about its own task that has not ended."""
        ride, found = self._rides.get(handle), super().state(handle)
        if ride is not None and found in {State.SENT, State.READY}:
            is_running = ride.there.tasks.state(ride.handle) is State.RUNNING
            found = super().state(handle)
            if is_running and found in {State.SENT, State.READY}:
                return State.RUNNING
        return State.READY if found is State.SENT else found

    def _cancel(self, slot: int) -> bool:
        ride = self._rides.get(self.handles[slot])
        if ride is None:
            return super()._cancel(slot)
        ride.there.tasks.cancel(ride.handle)
        return self.map[self.states + slot] == State.CANCELLED

    def _let_go(self, slot: int, handle: int) -> None:
        ride = self._rides.pop(handle, None)
        if ride is not None:
            self._riders.pop((ride.there, ride.handle), None)
            ride.there.tasks.release(ride.handle)
            self._left.add(ride.there)
        super()._let_go(slot, handle)

    def leave(self) -> list[Link]:
        """As ``TaskSlots.leave``."""
        boards = [there for there in self._boards.values() if not there.link.fault]
        for there in boards:
            there.leave()
        return [there.link for there in boards]

    def close(self) -> None:
        """As ``TaskSlots.close``, and detach from the other boards."""
        super().close()
        for there in self._boards.values():
            there.close()
        self._boards.clear()
        self._blocks = tuple  # no cycle keeps this board's memory

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``TaskSlots.abandon_in_child``; the connections are the parent's."""
        super().abandon_in_child()
        self._dialling, self._comparing = threading.RLock(), threading.RLock()
        for there in self._boards.values():
            there.abandon_in_child()


def on_route(route: Route, text: str) -> str:
    """A sentence of the other board, which names the route."""
    return f"On the board of the route {route}: {text}"


def routed(kind: type[TaskSlots]) -> type[RoutedTasks]:
    """A class of tasks with routes, so that a process without them does not look for one at each call."""
    return type(kind.__name__, (RoutedTasks, kind), {})
