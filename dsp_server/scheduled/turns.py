"""Threads that take turns: one runs, and at each step a policy chooses which. All others wait for their turn."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from hashlib import blake2b
from typing import IO

from hbrt.exploration.schedule import MAX_CHOICES, PATIENCE, Policy


class StuckError(RuntimeError):
    """Nobody can continue; the message says who waits."""


class Actor:
    """A thread that takes turns.

    Args:
        name: Its name in schedules.
        clock: Returns its modeled time; by default the actor with the least continues.
        leave: Called in the actor's thread before another actor gets its turn.
        enter: Called in the actor's thread when it gets its turn again.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], int] = lambda: 1 << 62,
        leave: Callable[[], None] = lambda: None,
        enter: Callable[[], None] = lambda: None,
    ) -> None:
        self.name, self.clock, self.leave, self.enter = name, clock, leave, enter
        self.gate = _thread.allocate_lock()  # locked until it has its turn; a threading.Lock would itself take turns
        self.gate.acquire()
        self.is_ready: Callable[[], bool] | None = None  # what it waits for; None if it could continue
        self.end: int | None = None  # tick at which its wait times out; None for no limit

    def can_go_on(self) -> bool:
        """Whether it could get the next turn."""
        return self.is_ready is None or self.is_ready()


_NOBODY = Actor("-")


class Turns:
    """The turns of a program and its cores.

    Args:
        policy: Decides who continues.
        log: Receives a line for each preemption, and for each of the first steps (``MAX_CHOICES``) with who could run;
            at the end, the number of steps and a digest of all of them. May be None.
    """

    def __init__(self, policy: Policy, log: IO[str] | None) -> None:
        self._policy, self._log = policy, log
        self._actors: list[Actor] = []
        self.current = _NOBODY
        self._steps, self._in_a_row = 0, 0
        self.ticks = 0  # lines so far, which stand for time: 1 µs each
        self._digest = blake2b(digest_size=8)
        self.is_over = False  # then actors still waiting for a turn continue, all at once

    def add(self, actor: Actor) -> None:
        """Have another actor take turns; the first one added gets the first turn."""
        self._actors.append(actor)
        if self.current is _NOBODY:
            self.current = actor

    def step(self, site: str) -> None:
        """Let another actor continue if the policy says so: the current actor calls this at each of its lines.

        Args:
            site: ``file:line`` where the current actor is.
        """
        if self.is_over:
            return
        self.ticks += 1
        ready = [actor for actor in self._actors if actor.can_go_on()]
        if len(ready) > 1:
            me = self.current
            self._in_a_row += 1
            default = me
            if self._in_a_row > PATIENCE:
                default = ready[(ready.index(me) + 1) % len(ready)]
            self._pass_on(self._chosen(ready, default, site))

    def wait(self, is_ready: Callable[[], bool], site: str, most_ticks: int | None = None) -> None:
        """Let others continue until a condition holds, or a time has passed.

        Args:
            is_ready: Returns whether the condition holds.
            site: Where the current actor waits.
            most_ticks: The time limit; it expires at once if nobody else can continue. None for no limit.

        Raises:
            StuckError: nobody can continue, and there is no time limit.
        """
        me = self.current
        me.end = end = None if most_ticks is None else self.ticks + most_ticks

        def is_over() -> bool:
            return is_ready() or (end is not None and self.ticks >= end)

        me.is_ready = is_over
        try:
            while not is_over() and not self.is_over:
                self._pass_on(self._next(site))
        finally:
            me.is_ready = me.end = None

    def end(self, site: str) -> None:
        """End the current actor's turns; another continues, and if nobody can, the first actor is told so."""
        if self.is_over:
            return
        me = self.current
        self._actors.remove(me)
        me.leave()
        try:
            self.current = self._next(site)
        except StuckError:
            self.current = self._actors[0]
        self.current.gate.release()

    def remove(self, actor: Actor) -> None:
        """Remove an actor that has not begun."""
        self._actors.remove(actor)

    def close(self) -> None:
        """End the turns, and write the log's last line."""
        self.is_over = True
        for actor in self._actors:
            if actor is not self.current:
                actor.gate.release()
        if self._log is not None:
            print(f"end {self._steps} {self._digest.hexdigest()}", file=self._log, flush=True)

    def _next(self, site: str) -> Actor:
        """Return the actor that continues if the current one cannot."""
        ready = [actor for actor in self._actors if actor.can_go_on()]
        if not ready and (ends := [actor.end for actor in self._actors if actor.end is not None]):
            self.ticks = min(ends)
            ready = [actor for actor in self._actors if actor.can_go_on()]
        if not ready:
            names = ", ".join(actor.name for actor in self._actors)
            raise StuckError(f"Deadlock: {names} wait for each other, the last of them at {site}.")
        default = min(ready, key=lambda actor: actor.clock())
        return self._chosen(ready, default, site) if len(ready) > 1 else default

    def _chosen(self, ready: list[Actor], default: Actor, site: str) -> Actor:
        self._steps += 1
        names = [actor.name for actor in ready]
        name = self._policy.choose(self._steps, names, default.name)
        place = site.rpartition("/")[2]  # the same on every machine
        self._digest.update(f"{self._steps} {' '.join(names)} {name} {place}\n".encode())
        is_preemption = name != default.name
        if self._log is not None and (is_preemption or self._steps <= MAX_CHOICES):
            line = f"{self._steps} {name} {default.name} {','.join(names)} {self.current.name} {site}"
            print(line, file=self._log, flush=is_preemption)
        return ready[names.index(name)]

    def _pass_on(self, other: Actor) -> None:
        me = self.current
        if other is me:
            return
        self._in_a_row = 0
        me.leave()
        self.current = other
        other.gate.release()
        me.gate.acquire()
        if not self.is_over:
            me.enter()
