"""Runs an op with checks turned on by its program or its board; a core without checks does not load this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.core.builtin import as_status, explain
from dsp_server.core.op_effects import sweep
from dsp_server.detectors.call import Call, run_checked
from dsp_server.hardware import cycles
from hbrt.findings.checks import Check
from hbrt.profiles.work import Work

if TYPE_CHECKING:
    from dsp_server.core.core_mailbox import Host
    from dsp_server.registry import Op, Registration

_HOOKS, _OF_DIRTY = int(Check.HOOKS), int(Check.COHERENCE | Check.MEMORY)  # plain ints: ``&`` on a flag costs more


def run_op(
    core: Host, op: Registration, function: Op, views: tuple[memoryview, memoryview], checks_on: int, slot: int
) -> int:
    """Run an op under its detectors, which may swap its engines; return its result or raise its exception.

    Args:
        core: The core that runs it; it has its own engines back on return.
        op: The op's registration.
        function: The op.
        views: Its input and output blocks.
        checks_on: Bit mask of the checks that are on.
        slot: The task's slot.
    """
    if checks_on & _HOOKS:  # the core got its instructions before this bit was set
        while core.mailbox.listen():
            pass
        if (recorder := runtime.context.recorders.get(runtime.context.client_id)) is not None:
            return _run_recorded(recorder, core, op, function, views, checks_on, slot)
    return _run(core, op, function, views, checks_on, slot)


def _run_recorded(
    recorder: runtime.Recorder,
    core: Host,
    op: Registration,
    function: Op,
    views: tuple[memoryview, memoryview],
    checks_on: int,
    slot: int,
) -> int:
    """Do what ``_run`` does, and add the call and its outcome to the program's recording."""
    with recorder.recording(core.mailbox.table, slot, op.name) as record:
        counter, tile_manager = core.engines.counter, core.engines.tile_manager
        before, work_before = counter.cycles, list(counter.work)
        tile_manager.peak_bytes = sum(tile_manager.used_bytes)
        status, text = 0, ""
        try:
            result = _run(core, op, function, views, checks_on, slot)
            status = as_status(result)
        except BaseException as error:
            status, text = explain(error, runtime.context.map_failure, op.name)
            raise
        finally:
            if record is not None:
                spent = Work(*map(int.__sub__, counter.work, work_before))
                ddr_bytes = spent.dma_bytes + spent.ddr_loads * cycles.DDR_LOAD_BYTES
                record.ended(status, text, counter.cycles - before, ddr_bytes, tile_manager.peak_bytes)
            tile_manager.peak_bytes = None
        return result


def _run(
    core: Host, op: Registration, function: Op, views: tuple[memoryview, memoryview], checks_on: int, slot: int
) -> int:
    engines = core.engines
    has_raised = True
    try:
        site = core.mailbox.table.site(slot)
        dirty = core.mailbox.table.take_dirty(slot) if checks_on & _OF_DIRTY else ()
        call = Call(op.cmd, op.name, views, engines, core.use_engines, Check(checks_on), site, dirty)
        result = run_checked(function, call)
        has_raised = False
    finally:
        if core.engines.idma is not engines.idma:
            sweep(op.cmd, op.name, core.engines.idma, core.engines.tile_manager, has_raised=has_raised)
            core.use_engines(*engines)
    return result
