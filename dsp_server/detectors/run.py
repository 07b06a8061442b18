"""Runs an op under the detectors of the checks that are on.

A detector is a file of this package with ``watch(call)``, a context manager around the op: before, it may put other
views or engines into the call; it says what it finds by ``call.find``.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dsp_server.detectors.call import Call, MistakeError
from hbrt.findings.checks import Check

if TYPE_CHECKING:
    from dsp_server.registry import Op

DETECTORS: Final[dict[Check, str]] = {Check.MEMORY: "dsp_server.detectors.memory"}
"""Check -> its module: the first is outermost, and sees what the op sees."""


def run_checked(function: Op, call: Call) -> int:
    """Run an op under the detectors of ``call.checks``; returns what it returns, raises what it raises.

    Raises:
        MistakeError: a detector found a mistake, under Check.FAIL_FAST.
    """
    try:
        with ExitStack() as stack:
            for check, module in DETECTORS.items():
                if call.checks & check:
                    stack.enter_context(import_module(module).watch(call))
            result = function(call.input, call.output, call.tile_manager)
        if call.mistake:
            raise MistakeError  # noqa: TRY301 - the same end as for one that a handler raised
    except MistakeError as error:
        error.args = (call.mistake,)  # one that a handler raised has no text
        raise
    finally:
        call.end()
    return result
