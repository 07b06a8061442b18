"""The faults that a user has asked for: who carries them out, and which ones are left."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from dsp_server.clients import Clients
from dsp_server.lifecycle.processes import CoreProcesses
from dsp_server.process.journal import Journal
from hbrt.board.files import lock_holder
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, RequestRefusedError
from hbrt.findings.checks import Check
from hbrt.injection.fault import CORE_ACTIONS, BadFaultError, Fault, Trigger, parse
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING


class Injector:
    """Keeps the faults of a board.

    Args:
        paths: The board.
        clients: The attached clients; while faults are armed, cores check each of their calls.
        processes: The cores' processes, old and new.
        journal: Receives a finding for each fault that the daemon carries out.
        core_count: Number of cores on the board.
    """

    def __init__(
        self, paths: BoardPaths, clients: Clients, processes: CoreProcesses, journal: Journal, core_count: int
    ) -> None:
        self._paths, self._clients, self._processes, self._journal = paths, clients, processes, journal
        self._core_count = core_count
        self._numbers = itertools.count(1)
        self._triggers: dict[int, Trigger] = {}
        processes.faults_of = self._faults_of
        processes.on_injected = self._on_injected

    def arm(self, texts: Iterable[str]) -> list[dict[str, Any]]:
        """Add faults; return all of them as ``listing`` does.

        Raises:
            RequestRefusedError: a fault is invalid, or names a core or command at which it cannot occur; none is added.
        """
        try:
            faults = [parse(text) for text in texts]
        except BadFaultError as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        for fault in faults:
            if fault.action in CORE_ACTIONS and fault.core >= self._core_count:
                why = f"The board has no core {fault.core}; it has {self._core_count}."
                raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, why)
            if fault.cmd in {HB_DSP_RPC_CMD_PING, HB_DSP_RPC_CMD_BUTT}:
                why = (
                    f"'{fault}' would never occur: command {fault.cmd:#x} is not an op; the core answers it itself. "
                    "'hbrt ops' lists the ops."
                )
                raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, why)
        for fault in faults:
            if fault.action == "lose-relay":
                self._lose_relay(fault)
            else:
                self._triggers[next(self._numbers)] = Trigger(fault)
        self._tell()
        return self.listing()

    def clear(self) -> None:
        """Forget all faults."""
        self._triggers.clear()
        self._tell()

    def listing(self) -> list[dict[str, Any]]:
        """The faults that are left, and how often each has occurred."""
        return [{"fault": str(one.fault), "came": one.fired} for one in self._triggers.values()]

    def refuses_alloc(self, size_bytes: int, client: int) -> str:
        """Return a sentence if an allocation is to be refused; empty if not."""
        for number, trigger in list(self._triggers.items()):
            if trigger.fault.action == "refuse-alloc" and trigger.is_due():
                self._discard_spent(number)
                sentence = f"Refused {size_bytes} bytes, as requested by '{trigger.fault}'."
                self._journal.find("injected", sentence, client=client)
                return sentence
        return ""

    def _tell(self) -> None:
        """Send the cores their faults, and only then have them check for faults."""
        for child in self._processes.children.values():
            child.send(event="inject", faults=self._faults_of(child.index))
        self._clients.check(Check.HOOKS, is_on=any(one.fault.action in CORE_ACTIONS for one in self._triggers.values()))

    def _faults_of(self, core: int) -> list[tuple[int, str]]:
        """Numbers and faults of a core; one that has already occurred keeps its remaining count."""
        return [
            (number, str(one.fault._replace(times=one.fault.times - one.fired)))
            for number, one in self._triggers.items()
            if one.fault.action in CORE_ACTIONS and one.fault.core == core
        ]

    def _on_injected(self, number: int) -> None:
        if number in self._triggers:
            self._triggers[number].fired += 1
            self._discard_spent(number)

    def _discard_spent(self, number: int) -> None:
        if self._triggers[number].is_spent:
            del self._triggers[number]

    def _lose_relay(self, fault: Fault) -> None:
        with suppress(BoardError, ProcessLookupError):
            pid = lock_holder(self._paths.relay_lock)
            if pid is None:
                raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, "The board has no relay now.")
            self._journal.find("injected", f"As requested, '{fault}' ends the relay, process {pid}.")
            os.kill(pid, signal.SIGKILL)
