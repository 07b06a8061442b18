"""Calls that were checked and mapped before, for as long as what they rest on holds.

A program calls an op with the same structure for every frame. Holding it to its rules and mapping its planes takes
about as long as a small image does, and both depend on three things alone: the structure's bytes, whose task it is, and
the tables of live blocks, whose generation is in the header of the DDR file (as in dsp_server.views).
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from numpy.typing import NDArray

from dsp_server.runtime import context
from hbrt.layout import TABLES_GENERATION

MOST_REMEMBERED = 64
_GENERATION_END = TABLES_GENERATION + 8

Param = TypeVar("Param")
State = tuple[int, bytes]


class Plan(NamedTuple, Generic[Param]):
    """A call that may run: its structure, the planes of src and dst as arrays, and what it costs."""

    param: Param
    sources: tuple[NDArray[Any], ...]
    targets: tuple[NDArray[Any], ...]
    modelled_cycles: int
    output: memoryview


class Plans(Generic[Param]):
    """The plans of one op."""

    def __init__(self) -> None:
        self._plans: dict[bytes, Plan[Param]] = {}
        self._state: State | None = None

    def get(self, raw: bytes, output: memoryview) -> Plan[Param] | None:
        """The plan for a structure with these bytes and this output block, if it still holds."""
        state = _state()
        if state is None or state != self._state or len(self._plans) >= MOST_REMEMBERED:
            self._plans.clear()
            self._state = state
            return None
        plan = self._plans.get(raw)
        return plan if plan is not None and plan.output is output else None

    def put(self, raw: bytes, plan: Plan[Param]) -> None:
        """Remember a plan that was made after `get` had none."""
        if self._state is not None:
            self._plans[raw] = plan


def _state() -> State | None:
    """Whose task it is, and the generation of the tables; None without a board, where nothing tells of a change."""
    ddr = context.ddr
    return None if ddr is None else (context.client_id, ddr.map[TABLES_GENERATION:_GENERATION_END])
