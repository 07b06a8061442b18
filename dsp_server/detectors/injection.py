"""Faults that a user injects into a core's calls: the core dies, hangs, starts late, or one of its copies fails.

An injected fault is reported before it happens, as a separate kind of finding, so nobody mistakes it for a bug.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from dsp_server import runtime
from dsp_server.hardware.transfers import BadTransfer

if TYPE_CHECKING:
    from dsp_server.detectors.call import Call
    from hbrt.injection.fault import Fault


@contextmanager
def watch(call: Call) -> Iterator[None]:
    """Inject the faults that are due in a call."""
    refused = None
    for number, trigger in runtime.context.faults.items():
        if trigger.is_due(call.cmd):
            fault = trigger.fault
            runtime.context.on_injected(number)
            runtime.find("injected", f"As requested, '{fault}' hits {call.who}.", call.place("injected", ""))
            if fault.action == "fail-copy":
                refused = fault
            else:
                _carry_out(fault)
    if refused is None:
        yield
        return
    engine: Any = call.idma
    engine.enqueue = lambda *_args, **_named: _refuse(engine, refused)
    try:
        yield
    finally:
        engine.__dict__.pop("enqueue", None)


def _carry_out(fault: Fault) -> None:
    if fault.action == "kill-core":
        os.kill(os.getpid(), signal.SIGKILL)
    while fault.action == "hang-core":
        time.sleep(1)
    time.sleep(fault.ms / 1000)


def _refuse(engine: Any, fault: Fault) -> NoReturn:
    """Refuse one copy; later copies succeed.

    Raises:
        BadTransfer: always.
    """
    del engine.enqueue
    raise BadTransfer(f"This copy is refused, as requested by '{fault}'.")
