"""Runs an op under the detectors for the checks that are on.

A detector is a module of this package with ``watch(call)``, a context manager around the op: before the op it may
replace the call's views or engines; it reports findings with ``call.find``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from dsp_server.detectors.call import Call, MistakeError
from hbrt.findings.checks import Check

if TYPE_CHECKING:
    from dsp_server.registry import Op

Watch: TypeAlias = Callable[[Call], AbstractContextManager[None]]
DETECTORS: Final = {
    int(Check.MEMORY): "dsp_server.detectors.memory",
    int(Check.DMA): "dsp_server.detectors.dma",
    int(Check.COHERENCE): "dsp_server.detectors.coherence",
    int(Check.HOOKS): "dsp_server.detectors.injection",
}
"""Check -> its module; the first is outermost, and sees what the op sees. Plain ints: ``&`` on a flag costs more."""


def run_checked(function: Op, call: Call) -> int:
    """Run an op under the detectors of ``call.checks``; return its result or raise its exception.

    Raises:
        MistakeError: a detector found a mistake, under Check.FAIL_FAST.
    """
    try:
        checks = int(call.checks)
        watches = [_watch_of(module) for check, module in DETECTORS.items() if checks & check]
        with watches[0](call) if len(watches) == 1 else _all(watches, call):
            result = function(call.input, call.output, call.tile_manager)
    finally:
        call.end()
    if call.mistake:
        raise MistakeError(call.mistake)
    return result


def _watch_of(name: str) -> Watch:
    module = sys.modules.get(name) or import_module(name)  # importlib's import_module alone costs an extra call
    watch: Watch = module.watch
    return watch


@contextmanager
def _all(watches: Iterable[Watch], call: Call) -> Iterator[None]:
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch(call))
        yield
