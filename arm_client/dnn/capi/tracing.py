"""Models in a trace: the work of the BPU cores, and the trace requested by HB_DNN_ENABLE_PERFETTO.

Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.6.3,
https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
Emulator: the other processes of the board are traced as well; configuration fields other than trace_record_file have no
effect; an existing file is refused when the first model is loaded.
"""

from __future__ import annotations

import atexit
import os
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from arm_client.dnn import environment
from arm_client.dnn.errors import ModelError
from arm_client.dnn.run.plan import Plan
from arm_client.tracing import program
from hbrt.control.ask import ask
from hbrt.errors import BoardError, WrongUseError
from hbrt.status import Status
from hbrt.trace.kinds import EventKind
from hbrt.trace.save import check_name, save

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.dnn.cores.bpu import Bpu
    from arm_client.session.session import Session
    from hbrt.models.run.steps import StepTime
    from hbrt.trace.ring import Ring

_begun: list[Path] = []  # the file of this process's trace


def note_models(bpu: Bpu) -> None:
    """Make a process's BPU cores record their work while one of its sessions is traced."""
    follow = partial(_follow, bpu)
    program.listeners.append(follow)
    for ring in program.rings:
        follow(ring)


def _follow(bpu: Bpu, ring: Ring | None) -> None:
    bpu.on_run = None if ring is None else partial(_note_run, ring)
    Plan.tracer = None if ring is None else partial(_note_step, bpu, ring)


def _note_step(bpu: Bpu, ring: Ring, step: StepTime) -> None:
    text = ring.text(f"{step.name} ({step.processor})")
    ring.note(EventKind.SEGMENT, step.start_ns, step.end_ns, unit=max(bpu.current_core(), 0), text=text)


def _note_run(ring: Ring, core: int, work: Any) -> Callable[[], None]:
    """Record a model run from now until the returned function is called."""
    start_ns = monotonic_ns()
    text = ring.text(", ".join(dict.fromkeys(model.name for model in work.models)) or "resize")
    return lambda: ring.note(EventKind.MODEL, start_ns, monotonic_ns(), -work.order[0], unit=core, text=text)


def begin() -> None:
    """Start the trace requested by the environment, once per process.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT: the configuration cannot be read, or its file cannot be written.
    """
    file = environment.trace_file()
    if file is None or _begun:
        return
    try:
        check_name(file)
    except WrongUseError as error:
        raise ModelError(Status.HB_DNN_INVALID_ARGUMENT, str(error)) from None
    if file.exists():
        raise ModelError(
            Status.HB_DNN_INVALID_ARGUMENT,
            f"The trace file {file} already exists, and Perfetto does not overwrite: delete it first.",
        )
    _begun.append(file)
    from arm_client.session.session import default

    try:
        session = default()  # models need the board's memory anyway
        was_on = ask(session.link.paths, "trace", do="on", events=0)["was_on"]
    except BoardError as error:
        environment.warn(f"Not tracing: {error}")
        return
    if session.link.on_asked is not None:
        session.link.on_asked()
    atexit.register(_end, os.getpid(), session, "flush" if was_on else "off", file)  # before the session ends


def _end(pid: int, session: Session, do: str, file: Path) -> None:
    """Write the trace while the board is still running."""
    if os.getpid() != pid:
        return
    try:
        directory = ask(session.link.paths, "trace", do=do, events=0)["directory"]
        if file.exists():
            raise WrongUseError(f"{file} has been created meanwhile.")
        save(Path(directory), file)
    except BoardError as error:
        environment.warn(f"The trace is lost: {error}")
