"""The tasks of a process that runs some commands on another board: HBRT_ROUTE.

Such a task has a slot on this board, where no core finds it, and an ordinary handle, so waiting, querying and releasing
work as usual. Its end on the other board is written into the slot.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from os import eventfd_write
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.cabi import say
from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.routed.compare import first_difference, unlike_ends
from arm_client.transport.routed.other_board import Ended, OtherBoard
from hbrt.attach.tasks import Carrier
from hbrt.board.routes import Route, Routing, route_of
from hbrt.errors import BoardError
from hbrt.findings.record import Finding, Place
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD
from hbrt.mailbox.table import Actor, Answer, State
from hbrt.profiles.work import NO_WORK, Work
from hbrt.protocol.control import MAX_SITE
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.transport.routed.other_board import Dial
    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks
    from hbrt.board.paths import RemoteBoard
    from hbrt.trace.ring import Ring


MAX_TRIES = 8  # addresses to try, for a block that needs one that is free on all boards


class _Ride(NamedTuple):
    """A task on another board."""

    route: Route
    there: OtherBoard
    handle: int  # on the other board


class Routed(Carrier):
    """Sends the tasks of some commands to other boards, and the rest to this board's carrier; call ``follow`` first.

    Args:
        inner: Carries the tasks of commands without a route, and of compared commands.
    """

    _routing = Routing()
    _dial: Dial
    _blocks: Callable[[], Iterable[Block]]

    def __init__(self, inner: Carrier) -> None:
        self._inner = inner
        self.reaches_accelerators = inner.reaches_accelerators
        self._boards: dict[RemoteBoard, OtherBoard] = {}
        self._dialling = threading.RLock()
        self._rides: dict[int, _Ride] = {}  # by local handle
        self._riders: dict[tuple[OtherBoard, int], int] = {}  # local handle, by board and remote handle
        self._left: set[OtherBoard] = set()  # remote tasks released before they ended
        self._comparing = threading.RLock()
        self._compared: Counter[int] = Counter()  # tasks, by command
        self._told: set[tuple[int, str]] = set()
        self._outputs = threading.local()

    def carry(self, tasks: Tasks) -> None:
        """See ``Carrier.carry``."""
        super().carry(tasks)
        self._inner.carry(tasks)

    def follow(self, routing: Routing, dial: Dial, blocks: Callable[[], Iterable[Block]]) -> None:
        """Attach to the boards of the routes.

        Args:
            routing: As in HBRT_ROUTE.
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
        """Yield addresses where all routes' boards have a block for this process; ``discard_block`` unused ones.

        Args:
            size_bytes: Its size.
            site: Calling line of the program.
            is_cached: As for ``Blocks.alloc``.
        """
        boards = [there for there in list(self._boards.values()) if not there.link.fault]
        for _ in range(MAX_TRIES if boards else 0):
            address = boards[0].alloc(size_bytes, site, is_cached=is_cached)
            if address is None:
                return
            if all(there.alloc(size_bytes, site, address, is_cached=is_cached) for there in boards[1:]):
                yield address
            else:
                self.discard_block(address)

    def busy_boards(self) -> set[OtherBoard]:
        """Return the boards where tasks of this process are queued, run, or may still run after release."""
        return {ride.there for ride in list(self._rides.values())} | self._left

    def _board_of(self, route: Route) -> OtherBoard:
        """Return a route's board, reconnecting if the connection was lost.

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
                there = OtherBoard(route.board, self.tasks.link.ddr, self._dial, self._on_ended, self._on_lost)
                self._boards[route.board] = there
            return there

    # -- publish

    def elsewhere(self, cmd: int) -> int:
        """See ``Carrier.elsewhere``."""
        if not self._routing.compares and route_of(cmd, self._routing.routes) is not None:
            return OF_ANOTHER_BOARD
        return self._inner.elsewhere(cmd)

    def publish(self, handle: int, given: tuple[int, ...]) -> int:
        """Like ``Carrier.publish``; to the board of the command's route, if any."""
        route = route_of(given[0], self._routing.routes)
        if route is None:
            return self._inner.publish(handle, given)
        run = self._compare if self._routing.compares else self._run_there
        try:
            there = self._board_of(route)
            with self._comparing if self._routing.compares else nullcontext():
                there.follow(self._blocks())
                return run(route, there, handle, given)
        except (BoardError, RequestRefusedError) as error:
            status = getattr(error, "status", Status.HB_DSP_RELAY_LOST)
            return self.tasks.refusals.refuse(int(status), on_route(route, str(error)))

    def _run_there(self, route: Route, there: OtherBoard, handle: int, given: tuple[int, ...]) -> int:
        """Run a task on the other board; returns as ``publish`` does."""
        handle_there = there.tasks.submit(*given)
        if handle_there < 0:
            return self._refuse_there(route, there, handle_there, *given)
        self._rides[handle] = _Ride(route, there, handle_there)
        self._riders[there, handle_there] = handle
        if there.tasks.has_ended(handle_there) or there.link.fault:
            self._settle(there, handle_there)
        return handle

    def _refuse_there(self, route: Route, there: OtherBoard, status: int, *given: int) -> int:
        """Refuse a task that the other board refused."""
        why = there.tasks.why()
        for phy_addr in (given[4], given[6]):
            if phy_addr in there.refused:
                why = f"It does not have the block {phy_addr:#x} at this address: {there.refused[phy_addr]}"
        return self.tasks.refusals.refuse(status, on_route(route, why))

    def _compare(self, route: Route, there: OtherBoard, handle: int, given: tuple[int, ...]) -> int:
        """Run a task there, then here, from the same bytes; the program continues with this board's result."""
        tasks, keep_apart, dtype = self.tasks, there.memory.keep_apart, self._outputs.__dict__.pop("dtype", None)
        keep_apart(is_on=True)
        try:
            ended = there.run(*given)
            if ended.is_refused:
                return self._refuse_there(route, there, ended.status, *given)
            if there.link.fault:
                return tasks.refusals.refuse(there.link.fault, on_route(route, there.link.why_faulty()))
            changed = keep_apart(is_on=True)
            published = self._inner.publish(handle, given)
            if published < 0:
                return published
            here = Ended(tasks.wait(handle, 0), tasks.text(handle))
        finally:
            keep_apart(is_on=False)
        self._compared[given[0]] += 1
        if tasks.link.fault:
            return handle
        if here.status != ended.status:
            self._tell(route, given[0], unlike_ends(here, ended))
        elif not here.status:
            self._compare_memory(route, there, changed, dtype, *given)
        return handle

    def _compare_memory(self, route: Route, there: OtherBoard, changed: set[int], dtype: Any, *given: int) -> None:
        """Compare the output block of a task, then the other blocks that it changed."""
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
        """Report a difference, once per program line and command."""
        site = call_site(MAX_SITE)
        if (cmd, site) in self._told:
            return
        self._told.add((cmd, site))
        task = f"Task {self._compared[cmd]} of command {cmd:#x}"
        text = f"{site}: {task} gave a different result on the board of the route {route}: {what}."
        say.tell(Finding("route-difference", text))
        self.tasks.link.find("route-difference", text, (place or Place("submitted", cmd=cmd))._replace(site=site))

    def name_output(self, dtype: Any) -> None:
        """Set the element type of the output block of this thread's next task; None for bytes."""
        self._outputs.dtype = dtype

    # -- the threads of the connections

    def _on_ended(self, there: OtherBoard, handle_there: int) -> None:
        if there.tasks.has_ended(handle_there):
            self._settle(there, handle_there)

    def _on_lost(self, there: OtherBoard) -> None:
        for board, handle_there in list(self._riders):
            if board is there:
                self._settle(there, handle_there)

    def _settle(self, there: OtherBoard, handle_there: int) -> None:
        """Write the end of a task into its local slot, once."""
        handle = self._riders.pop((there, handle_there), 0)
        ride, tasks = self._rides.get(handle), there.tasks
        if ride is None:
            return  # released, or its submission has not returned
        state = tasks.state(handle_there) if not there.link.fault else None
        work: Work = NO_WORK
        if state is None or not tasks.has_ended(handle_there):
            status, text = int(there.link.fault or Status.HB_DSP_RELAY_LOST), there.link.why_faulty()
            state, answer = State.LOST, Answer(-1, status, 0, 0, 0, 0, time.monotonic_ns(), 0)
        else:
            answer, text, work = tasks.answer(handle_there), tasks.text(handle_there), tasks.work(handle_there)
        self._end(handle, state, answer, on_route(ride.route, text) if state is not State.DONE else "", work)
        self._rides.pop(handle, None)
        tasks.release(handle_there)

    def _end(self, handle: int, state: State, answer: Answer, text: str, work: Work) -> None:
        """End a task that still exists; from a thread that no signal handler interrupts."""
        tasks, slot, mailbox = self.tasks, slot_of(handle), self.tasks.mailbox
        lock, link = mailbox.claim_lock, tasks.link
        if refusal := lock.try_acquire(lock.handle):
            lock.acquire_slowly(refusal, lambda: bool(link.fault))
        try:
            if tasks.handles[slot] == handle and mailbox.state(slot) is State.SENT:
                mailbox.write_work(slot, work)
                mailbox.write_answer(slot, answer, text)
                mailbox.move(slot, state, Actor.OWNER)
        finally:
            lock.release(lock.handle)
        eventfd_write(link.doorbell, 1)

    # -- look, cancel, release

    @property
    def is_asking(self) -> bool:  # type: ignore[override]  # changes
        """See ``Carrier.is_asking``."""
        return any(there.link.is_asking for there in list(self._boards.values()))

    def discard_block(self, phy_addr: int) -> None:
        """See ``Carrier.discard_block``."""
        for there in list(self._boards.values()):
            there.discard_block(phy_addr)

    def state(self, handle: int, found: State) -> State:
        """Like ``Carrier.state``; queries the other board about its task."""
        ride = self._rides.get(handle)
        if ride is None:
            return self._inner.state(handle, found)
        is_running = ride.there.tasks.state(ride.handle) is State.RUNNING
        found = State(self.tasks.map[self.tasks.states + slot_of(handle)])
        return State.RUNNING if is_running and found is State.SENT else found

    def cancel(self, slot: int) -> bool:
        """See ``Carrier.cancel``."""
        tasks = self.tasks
        ride = self._rides.get(tasks.handles[slot])
        if ride is None:
            return self._inner.cancel(slot)
        ride.there.tasks.cancel(ride.handle)
        return tasks.map[tasks.states + slot] == State.CANCELLED

    def drop(self, slot: int, handle: int) -> None:
        """See ``Carrier.drop``."""
        ride = self._rides.pop(handle, None)
        if ride is not None:
            self._riders.pop((ride.there, ride.handle), None)
            ride.there.tasks.release(ride.handle)
            self._left.add(ride.there)
        self._inner.drop(slot, handle)

    def load(self, image: str | None, report: Callable[[Finding], None], recording: str | None = None) -> None:
        """See ``Carrier.load``."""
        self._inner.load(image, report, recording)

    def cause(self, handle: int) -> BaseException | None:
        """See ``Carrier.cause``."""
        return self._inner.cause(handle)

    def own_ops(self) -> dict[int, str] | None:
        """See ``Carrier.own_ops``."""
        return self._inner.own_ops()

    def follow_trace(self, ring: Ring | None) -> None:
        """See ``Carrier.follow_trace``."""
        self._inner.follow_trace(ring)

    def detach(self) -> list[Link]:
        """See ``Carrier.detach``."""
        boards = [there for there in self._boards.values() if not there.link.fault]
        for there in boards:
            there.detach()
        return [there.link for there in boards]

    def close(self) -> None:
        """Like ``Carrier.close``, and detach from the other boards."""
        self._inner.close()
        for there in self._boards.values():
            there.close()
        self._boards.clear()
        self._blocks = tuple  # break the cycle, which would keep this board's memory

    def detach_in_child(self) -> None:
        """Like ``Carrier.detach_in_child``; the connections are the parent's."""
        self._inner.detach_in_child()
        self._dialling, self._comparing = threading.RLock(), threading.RLock()
        for there in self._boards.values():
            there.detach_in_child()


def on_route(route: Route, text: str) -> str:
    """Return the other board's message, with the route."""
    return f"On the board of the route {route}: {text}"
