"""Calls that have been checked and mapped before, kept as long as what they depend on stays the same.

A program calls an op with the same structure for every frame. Checking its rules and mapping its planes takes about
as long as processing a small image, and both depend on only three things: the structure's bytes, whose task it is, and
the tables of live blocks. A core returns the same views of a call's blocks only while the last two have not changed
(see dsp_server.core.views), so a plan is valid as long as the views are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsp_server.runtime import context

MAX_REMEMBERED = 64


class Plan(NamedTuple):
    """A call that may run: what to run, how many bytes it computes on and iDMA moves, and the views of its blocks."""

    run: Callable[[], object]
    moved: tuple[int, int]
    input: memoryview
    output: memoryview


class Plans:
    """The plans of one op, by the structure's bytes."""

    def __init__(self) -> None:
        self._plans: dict[bytes, Plan] = {}

    def get(self, raw: bytes, input: memoryview, output: memoryview) -> Plan | None:
        """Return the plan for a structure with these bytes, in this input and this output block, if still valid."""
        plan = self._plans.get(raw)
        return plan if plan is not None and plan.input is input and plan.output is output else None

    def put(self, raw: bytes, plan: Plan) -> None:
        """Remember a plan that was made because `get` had none."""
        if context.ddr is None:
            return  # without a board nothing reports changes
        if len(self._plans) >= MAX_REMEMBERED:
            self._plans.clear()
        self._plans[raw] = plan
