"""Status notifications: subscribers are notified when a process domain is up, has exited, was killed or crashed.

A thread polls the start counts of the cores of each subscribed domain, once per heartbeat of the cores. The cores of a
process domain crash and restart together, and that is reported once.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from fastrpc.wire import types, uri
from hbrt.ddr.layout import BEAT_SECONDS, CORE_EPOCH, CORE_STATE

if TYPE_CHECKING:
    from fastrpc.runtime import FastrpcRuntime

Listener = Callable[[int, int, int], object]
_EPOCH: Final = struct.Struct("<Q")
_RUNNING: Final = 1
_MAX_LOOKS: Final = 30  # a person may restart a single core of a domain


class Notifications:
    """The listeners of an attachment."""

    def __init__(self, here: FastrpcRuntime) -> None:
        self._session = here.session
        self._mask_of = here.domains.core_mask
        self._is_open: Callable[[int], bool] = lambda effective: bool(here.domains.of(effective).handles)
        self._listeners: dict[int, list[Listener]] = {}
        self._epochs: dict[int, tuple[int, ...]] = {}  # of a domain's cores, when it was last up
        self._down: set[int] = set()
        self._looks = 0  # for domains that are down
        self._expected: dict[int, int] = {}
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        here.on_domain = self._changed

    @classmethod
    def of(cls, here: FastrpcRuntime) -> Self:
        """Those of an attachment."""
        found = here.session.companions.get(cls)
        if found is None:
            found = here.session.companions.setdefault(cls, cls(here))
        assert isinstance(found, cls)  # noqa: S101 - its key
        return found

    def add(self, effective: int, listener: Listener) -> None:
        """Have ``listener(domain, session, status)`` called, in its own thread.

        Raises:
            AeeError: AEE_EINVALIDDOMAIN, AEE_ENOSESSION, or AEE_ECONNREFUSED: the board has no such domain.
        """
        self._mask_of(*uri.split_domain(effective))
        with self._lock:
            self._listeners.setdefault(effective, []).append(listener)
            self._epochs.setdefault(effective, self._epoch(effective))
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="hbrt-fastrpc-status", daemon=True)
                self._thread.start()

    def expect(self, effective: int, status: int) -> None:
        """Set the cause for the end of a process domain that this program is about to end."""
        self._expected[effective] = status

    def _changed(self, effective: int, *, is_up: bool) -> None:
        self._tell(effective, types.FASTRPC_USER_PD_UP if is_up else types.FASTRPC_USER_PD_EXIT)

    def _tell(self, effective: int, status: int) -> None:
        domain, session = uri.split_domain(effective)
        for listener in self._listeners.get(effective, [])[:]:
            listener(domain, session, status)

    def _epoch(self, effective: int) -> tuple[int, ...]:
        ddr_map = self._session.link.ddr.map
        return tuple(int(_EPOCH.unpack_from(ddr_map, at + CORE_EPOCH)[0]) for at in self._cores(effective))

    def _cores(self, effective: int) -> list[int]:
        """Where the records of a domain's cores are."""
        mask = self._mask_of(*uri.split_domain(effective))
        layout = self._session.link.ddr.layout
        return [layout.core(core) for core in range(mask.bit_length()) if mask >> core & 1]

    def _watch(self) -> None:
        pause = threading.Event()
        while not self._session.link.fault:
            for effective in list(self._epochs):
                try:
                    self._look(effective)
                except (ValueError, struct.error):
                    return  # the board's memory was closed in the meantime
            pause.wait(BEAT_SECONDS)

    def _look(self, effective: int) -> None:
        ddr_map = self._session.link.ddr.map
        is_running = all(ddr_map[at + CORE_STATE] == _RUNNING for at in self._cores(effective))
        epoch = self._epoch(effective)
        if epoch == self._epochs[effective] and is_running:
            return
        if effective not in self._down and self._is_open(effective):
            self._down.add(effective)
            self._tell(effective, self._expected.pop(effective, types.FASTRPC_USER_PD_EXCEPTION))
        self._looks += effective in self._down
        has_restarted = all(map(int.__lt__, self._epochs[effective], epoch)) or self._looks > _MAX_LOOKS
        if is_running and (effective not in self._down or has_restarted):
            self._looks = 0
            was_down = effective in self._down
            self._down.discard(effective)
            self._epochs[effective] = epoch
            if was_down:
                self._tell(effective, types.FASTRPC_DSP_SSR)
