"""Calls that were checked and mapped before, for as long as what they rest on holds.

A program calls an op with the same structure for every frame. Holding it to its rules and mapping its planes takes
about as long as a small image does, and both depend on three things alone: the structure's bytes, whose task it is, and
the tables of live blocks. A core grants the same views of a call's blocks again only while the last two are what they
were (see dsp_server.core.views), so a plan holds for as long as the views do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsp_server.runtime import context

MAX_REMEMBERED = 64


class Plan(NamedTuple):
    """A call that may run: what runs, the bytes that it computes on and that iDMA moves, the views of its blocks."""

    run: Callable[[], object]
    moved: tuple[int, int]
    input: memoryview
    output: memoryview


class Plans:
    """The plans of one op, by the bytes of the structure."""

    def __init__(self) -> None:
        self._plans: dict[bytes, Plan] = {}

    def get(self, raw: bytes, input: memoryview, output: memoryview) -> Plan | None:
        """The plan for a structure with these bytes in this input block, and this output block, if it still holds."""
        plan = self._plans.get(raw)
        return plan if plan is not None and plan.input is input and plan.output is output else None

    def put(self, raw: bytes, plan: Plan) -> None:
        """Remember a plan that was made after `get` had none."""
        if context.ddr is None:
            return  # without a board nothing reports a change
        if len(self._plans) >= MAX_REMEMBERED:
            self._plans.clear()
        self._plans[raw] = plan
