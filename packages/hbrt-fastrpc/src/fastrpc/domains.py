"""The domains of this process, and their cores on the board.

A session of a domain is a process domain: a set of cores, named by the profile, that crash and restart together. The
sessions of a domain are assigned to the board's process domains in turn.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastrpc.wire import message, uri
from fastrpc.wire.aee import Aee, AeeError

if TYPE_CHECKING:
    from arm_client.session.session import Session


@dataclass
class Opened:
    """A handle.

    Attributes:
        remote: The DSP side's handle.
        mask: Its core of its process domain.
        domain: The effective domain.
        uri: As it was opened.
        ended: Why it is stale; empty if it is not.
    """

    remote: int
    mask: int
    domain: int
    uri: str
    ended: str = ""


@dataclass
class Domain:
    """A domain of this process.

    Attributes:
        priority: Of its tasks, in the board's numbering.
        is_unsigned: Whether the program requested unsigned skeletons.
        initmem_bytes: Memory requested for signed skeletons; 0 for no limit.
        handles: The open handles.
        placed: Cores of its interfaces, by their functions.
        settings: Requests of the program that have no effect here.
    """

    priority: int = message.task_priority(message.DEFAULT_PRIORITY)
    is_unsigned: bool = False
    initmem_bytes: int = 0
    handles: set[int] = field(default_factory=set)
    placed: dict[str, int] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)

    @property
    def limit_bytes(self) -> int:
        """Limit on its objects' allocations; 0 for none."""
        return message.UNSIGNED_BYTES if self.is_unsigned else self.initmem_bytes


class Domains:
    """The domains of one attachment, their sessions and contexts.

    Attributes:
        contexts: Effective domains of each context, by its number.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._domains: dict[int, Domain] = {}
        self._reserved: set[tuple[int, int]] = set()  # domains and sessions
        self.contexts: dict[int, tuple[int, ...]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def of(self, effective: int) -> Domain:
        """The domain of a number."""
        return self._domains.setdefault(effective, Domain())

    def reserve_session(self, domain: int) -> int:
        """An unreserved session of a domain.

        Raises:
            AeeError: AEE_ENOSESSION: all are.
        """
        with self._lock:
            for session in range(1, uri.SESSIONS):
                if (domain, session) not in self._reserved:
                    self._reserved.add((domain, session))
                    return session
        raise AeeError(Aee.AEE_ENOSESSION, f"All {uri.SESSIONS - 1} reservable sessions of the domain are reserved.")

    def release_session(self, effective: int) -> None:
        """Undo ``reserve_session``."""
        self._reserved.discard(uri.split_domain(effective))

    def add_context(self, domains: tuple[int, ...]) -> int:
        """Number some domains."""
        number = next(self._numbers)
        self.contexts[number] = domains
        return number

    def has(self, domain: int) -> bool:
        """Whether the board has a domain."""
        return domain == uri.DEFAULT_DOMAIN and self._session.link.core_count > 0

    def core_mask(self, domain: int, session: int) -> int:
        """The cores of a session's process domain, as a mask.

        Raises:
            AeeError: AEE_ECONNREFUSED: the board has no such domain.
        """
        if not self.has(domain):
            has = (
                "its cores belong to the domain cdsp"
                if self._session.link.core_count
                else "its profile has no DSP core"
            )
            name = self._session.link.paths.name
            raise AeeError(Aee.AEE_ECONNREFUSED, f"Board {name} has no {uri.DOMAINS[domain]}: {has}.")
        domains = self._session.profile.process_domains(self._session.link.core_count)
        return sum(1 << core for core in domains[session % len(domains)])

    def place(self, effective: int, symbol: str) -> int:
        """The core of an interface, as a mask: the interfaces of a domain are assigned to its cores in turn."""
        mask = self.core_mask(*uri.split_domain(effective))
        cores = [core for core in range(mask.bit_length()) if mask >> core & 1]
        placed = self.of(effective).placed
        return 1 << placed.setdefault(symbol, cores[len(placed) % len(cores)])
