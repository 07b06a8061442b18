"""A fault as text, as data, and as a counter that determines when it is due. Pure.

``kill-core core=1 call=3`` kills core 1 in its third call from now on. Each core counts its own
ops, the daemon allocations. ``chance=0.1 seed=7`` instead draws randomly at each call, reproducibly.
"""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

CORE_ACTIONS: Final = {
    "kill-core": "the core's process dies in the call",
    "hang-core": "the call does not end",
    "delay": "the op starts ms milliseconds late",
    "fail-copy": "the op's next iDMA copy is refused with IDMA_ERR_BAD_TRANSFER",
}
ACTIONS: Final = {
    **CORE_ACTIONS,
    "refuse-alloc": "the allocation is refused with HB_SYS_OUT_OF_MEMORY",
    "lose-relay": "the board's relay dies at once",
}
_WHEN: Final = ("call", "times", "chance", "seed")
WORDS: Final = {
    **dict.fromkeys(CORE_ACTIONS, ("core", "cmd", *_WHEN)),
    "delay": ("core", "cmd", "ms", *_WHEN),
    "refuse-alloc": _WHEN,
    "lose-relay": (),
}
"""Words allowed for each action: others would have no effect, or keep the fault from ever occurring."""
MAX_CORE: Final = 63
MAX_CALL: Final = 1 << 31
_DEFAULT_MS = 100.0


class BadFaultError(ValueError):
    """A text is not a fault; the message names the error and the choices."""


class Fault(NamedTuple):
    """A fault, and when it occurs.

    Attributes:
        action: One of ACTIONS.
        core: The core that carries it out.
        call: The first call at which it may occur, from 1.
        times: Maximum number of occurrences.
        cmd: Only calls of this command count; -1 for all.
        ms: Length of a delay.
        chance: Probability per call; 1 for every call.
        seed: Seed of the random draws.
    """

    action: str
    core: int = 0
    call: int = 1
    times: int = 1
    cmd: int = -1
    ms: float = _DEFAULT_MS
    chance: float = 1.0
    seed: int = 0

    def __str__(self) -> str:
        default = Fault(self.action)
        given = [
            f"{name}={value:#x}" if name == "cmd" else f"{name}={value:g}"
            for name, value in self._asdict().items()
            if name != "action" and value != getattr(default, name)
        ]
        return " ".join([self.action, *given])


_MAX_DIGITS: Final = 32


def parse(text: str) -> Fault:
    """Parse a fault such as ``kill-core core=1 call=3``.

    Raises:
        BadFaultError: no action, or an invalid word.
    """
    action, *words = text.split() or [""]
    if action not in ACTIONS:
        hint = " Put a fault and its words in quotation marks, as in 'kill-core core=1'." if "=" in action else ""
        raise BadFaultError(f"Unknown fault {action!r}; known: {', '.join(ACTIONS)}.{hint}")
    values: dict[str, Any] = {}
    for word in words:
        name, _, raw = word.partition("=")
        if name not in Fault._fields[1:]:
            raise BadFaultError(f"Unknown fault word {word!r}; known: {', '.join(Fault._fields[1:])}, as in call=3.")
        if name not in WORDS[action]:
            takes = f"takes {', '.join(WORDS[action])}" if WORDS[action] else "occurs at once and takes no words"
            raise BadFaultError(f"{action!r} does not take {name!r}: it {takes}.")
        if len(raw) > _MAX_DIGITS:
            raise BadFaultError(f"Invalid {name}: its number has {len(raw)} characters; at most {_MAX_DIGITS}.")
        try:
            values[name] = float(raw) if name in {"ms", "chance"} else int(raw, 0)
        except ValueError:
            raise BadFaultError(f"{word!r} has no number after the equals sign.") from None
    fault = Fault(action, **values)
    return _checked(fault)


def _checked(fault: Fault) -> Fault:
    limits = {
        "core": (0, MAX_CORE),
        "call": (1, MAX_CALL),
        "times": (1, MAX_CALL),
        "cmd": (-1, 0xFFFF),
        "ms": (0, 1_000_000_000),
        "chance": (0, 1),
    }
    for name, (least, most) in limits.items():
        value = getattr(fault, name)
        if not least <= value <= most:
            raise BadFaultError(f"{name}={value} is out of range: use {least} to {most}.")
    return fault


class Trigger:
    """Counts the calls for a fault, and decides when it occurs."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.fired = 0
        self._calls = 0
        self._random = random.Random(fault.seed)  # noqa: S311 - repeatable, for a test

    def is_due(self, cmd: int = -1) -> bool:
        """Count a call; returns whether the fault occurs in it."""
        fault = self.fault
        if fault.cmd not in {-1, cmd} or self.is_spent:
            return False
        self._calls += 1
        if self._calls < fault.call or (fault.chance < 1 and self._random.random() >= fault.chance):
            return False
        self.fired += 1
        return True

    @property
    def is_spent(self) -> bool:
        """Whether it has occurred the maximum number of times."""
        return self.fired >= self.fault.times
