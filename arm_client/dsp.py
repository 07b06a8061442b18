"""``hbDSP*``: remote calls to the DSP, in the vendor's names, argument order and codes. No call raises."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, cast

from arm_client.cabi.arguments import deref, integer, is_function, short_repr, takes
from arm_client.cabi.last_error import RequestRefusedError, note, returning_status
from arm_client.session.process import process
from arm_client.sys import as_mem, attached
from hbrt import status as codes
from hbrt.board.forked import mark, notice
from hbrt.borders.interrupts import let_out
from hbrt.status import Status
from hbrt.structures import initializer
from hbrt.types import (
    HB_DSP_CORE_ANY,
    HB_DSP_RPC_CMD_BUTT,
    HB_DSP_RPC_CMD_PING,
    HB_DSP_RPC_PRIORITY_LOWEST,
    HB_DSP_VERSION_MAJOR,
    HB_DSP_VERSION_MINOR,
    HB_DSP_VERSION_PATCH,
    hbDSPRpcCtrlParam,
    hbDSPTask_t,
    hbSysMem,
)

_CTRL = struct.Struct("<iii4xq8x")
_MEM = struct.Struct("<QQI4x")
_MAX_WAIT_MS = (1 << 31) - 1  # maximum of a C int; 24 days
# Commands without an op, which take no input, and the message if they get one.
_NO_OPS = {
    int(HB_DSP_RPC_CMD_BUTT): "rpcCmd is HB_DSP_RPC_CMD_BUTT (0xffff), as set by HB_DSP_INITIALIZE_RPC_CTRL_PARAM: "
    "this lists the registered commands in the output block, regardless of the input.",
    int(
        HB_DSP_RPC_CMD_PING
    ): "rpcCmd is HB_DSP_RPC_CMD_PING (0), as in a zeroed structure: this reaches a core but reads and "
    "writes nothing, regardless of the blocks.",
}
_returns_status = returning_status(RequestRefusedError, lambda error, _: (error.status, error.text))
_initialize = initializer(hbDSPRpcCtrlParam(HB_DSP_CORE_ANY, HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_PRIORITY_LOWEST))


def HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl: hbDSPRpcCtrlParam) -> None:
    """Set the manual's defaults: any core, command BUTT, priority LOWEST, customId 0. A macro in C, a call here."""
    target = deref(ctrl, hbDSPRpcCtrlParam)
    if target is not None:
        _initialize(target)


def hbDSPRpc(task: hbDSPTask_t, input: hbSysMem | None, output: hbSysMem | None, ctrl: hbDSPRpcCtrlParam) -> int:
    """Submit one task.

    Args:
        task: Out: handle, for hbDSPWaitTaskDone and hbDSPReleaseTask.
        input: Block with the packed parameters; addresses inside it are physical. May be None.
        output: Block that the op writes, or None.
        ctrl: Core, command, priority, customId.

    Returns:
        0; HB_DSP_INVALID_ARGUMENT, _INVALID_CORE, _INVALID_PRIORITY, _INVALID_ADDRESS, _UNALIGNED_ADDRESS,
        _TASK_NUM_EXCEED_LIMIT, _NOT_RUNNING, _BOARD_LOST or _FORKED. An unknown command is reported by the wait.

    Source: DSP runtime API manual (J5 OE 1.1.77), 10.3.1.1.2,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/DSPRuntimeAPIManual
    """
    here = process.default
    if (
        here is None
        or type(task) is not hbDSPTask_t
        or type(ctrl) is not hbDSPRpcCtrlParam
        or type(input) is not hbSysMem
        or type(output) is not hbSysMem
    ):
        return _rpc_slow(task, input, output, ctrl)
    tasks = here.tasks
    handle = tasks.rpc(ctrl, input, output)
    if handle:
        task.value = handle
        return 0
    core, cmd, priority, custom_id = _CTRL.unpack_from(ctrl)
    in_phy, _, in_bytes = _MEM.unpack_from(input)
    out_phy, _, out_bytes = _MEM.unpack_from(output)
    handle = tasks.submit(cmd, priority, core, custom_id, in_phy, in_bytes, out_phy, out_bytes)
    if handle < 0:
        if here.link.fault:  # the board may have been restarted: attach again
            return _rpc_slow(task, input, output, ctrl)
        return note(handle, tasks.why())
    task.value = handle
    if cmd in _NO_OPS and in_bytes:
        _tell_forgotten_command(cmd)
    return 0


@_returns_status
def _rpc_slow(task: Any, input: Any, output: Any, ctrl: Any) -> None:
    """HbDSPRpc for the first call, for NULL blocks, and for arguments passed by reference."""
    out = deref(task, hbDSPTask_t)
    how = deref(ctrl, hbDSPRpcCtrlParam)
    blocks = []
    for name, given in (("input", input), ("output", output)):
        block = as_mem(given)
        if block is None and given is not None:
            raise _refusal(f"The {name} is {short_repr(given)}; pass an hbSysMem or None.")
        blocks.append((block.phyAddr, block.memSize) if block is not None else (0, 0))
    if out is None or how is None:
        name, given, kind = ("task", task, "hbDSPTask_t") if out is None else ("ctrl", ctrl, "hbDSPRpcCtrlParam")
        raise _refusal(f"The {name} is {short_repr(given)}; pass an {kind}.")
    notice()
    here = process.default
    if here is not None and here.link.fault == Status.HB_DSP_FORKED:
        # The blocks belong to the parent, whatever board this finds.
        raise RequestRefusedError(here.link.fault, here.link.why_faulty())
    tasks = attached().tasks
    (in_phy, in_bytes), (out_phy, out_bytes) = blocks
    handle = tasks.submit(how.rpcCmd, how.priority, how.dspCoreId, how.customId, in_phy, in_bytes, out_phy, out_bytes)
    if handle < 0:
        raise RequestRefusedError(handle, tasks.why())
    out.value = handle
    if how.rpcCmd in _NO_OPS and in_bytes:
        _tell_forgotten_command(how.rpcCmd)


def _tell_forgotten_command(cmd: int) -> None:
    """Warn about an input for a list or ping command: the program probably forgot to set its command."""
    from arm_client.cabi.call_site import call_site
    from arm_client.cabi.say import warn_once

    warn_once(f"{call_site()}: {_NO_OPS[cmd]} Set ctrl.rpcCmd to the op's command.")


def hbDSPWaitTaskDone(task: hbDSPTask_t, timeout: int) -> int:
    """Wait for a task.

    Args:
        task: Handle that hbDSPRpc filled.
        timeout: Milliseconds; <= 0 waits forever (as hbDNNWaitTaskDone).

    Returns:
        0 if the op returned 0; HB_DSP_TIMEOUT (the task keeps running); the op's own nonzero value;
        HB_DSP_RUN_TASK_FAILED, _UNKNOWN_COMMAND, _CORE_LOST, _WATCHDOG, _TASK_CANCELLED, _OUT_OF_TCM;
        HB_DSP_INVALID_TASK_HANDLE, _TASK_RELEASED, _FOREIGN_TASK_HANDLE; HB_DSP_BOARD_LOST. ``last_error()`` has the
        text.
    """
    here = process.default
    handle = task.value if type(task) is hbDSPTask_t else _handle(task)
    if here is None or not handle or handle < 0:
        return note(*_why_no_task(handle))
    if type(timeout) is not int or timeout > _MAX_WAIT_MS:
        limit_ms = _milliseconds(timeout)
        if limit_ms is None:
            return note(Status.HB_DSP_INVALID_ARGUMENT, f"Invalid timeout {short_repr(timeout)}: use milliseconds.")
        timeout = limit_ms
    status = here.tasks.wait(handle, timeout)
    return note(status, here.why(status)) if status else 0


def hbDSPReleaseTask(task: hbDSPTask_t) -> int:
    """Release a task, once per hbDSPRpc. A queued task is canceled; a running one finishes and its result is dropped.

    Returns:
        0; HB_DSP_INVALID_TASK_HANDLE, _TASK_RELEASED (a second release) or _FOREIGN_TASK_HANDLE.
    """
    here = process.default
    handle = task.value if type(task) is hbDSPTask_t else _handle(task)
    if here is None or not handle or handle < 0:
        return note(*_why_no_task(handle))
    if not mark[0]:
        notice()
    if here.notifier.watched:
        here.notifier.settle(handle)
    status = here.tasks.release(handle)
    return note(status, here.tasks.why()) if status else 0


@_returns_status
def hbDSPSetTaskDoneCb(
    task: hbDSPTask_t, callback: Callable[[hbDSPTask_t, int, Any], None], userdata: Any = None
) -> None:
    """Call ``callback(task, status, userdata)`` in a thread of the runtime when the task ends.

    If it has already ended, call it at once. The callback is a Python function, or an hbDSPTaskDoneCb, whose userdata
    is a void pointer. The prototype is the emulator's choice, taken from hbDNNSetTaskDoneCb.

    Returns:
        0; HB_DSP_INVALID_ARGUMENT if the callback is not callable, or not with userdata; or a bad handle's status.
    """
    notice()
    here = process.default
    handle = _handle(task)
    if here is None or handle <= 0:
        raise RequestRefusedError(*_why_no_task(handle))
    if not is_function(callback):  # a C program that passes no function would crash later
        raise _refusal(f"The callback {short_repr(callback)} is not callable.")
    if not takes(callback, userdata):
        raise _refusal(
            f"userdata is {short_repr(userdata)}, which the function pointer does not take: pass an address, byref() "
            "of a ctypes object, or None; or pass the Python function itself, which takes any object."
        )
    tasks = here.tasks
    if tasks.state(handle) is None:
        # Not a live handle: this only reports which kind.
        raise RequestRefusedError(tasks.release(handle), tasks.why())
    token = hbDSPTask_t(handle)
    here.notifier.add(handle, lambda status: callback(token, status, userdata))


def hbDSPGetVersion() -> str:
    """Return the version of the emulated DSP runtime API, and of the emulator."""
    from hbrt import __version__

    return f"{HB_DSP_VERSION_MAJOR}.{HB_DSP_VERSION_MINOR}.{HB_DSP_VERSION_PATCH} (hbrt {__version__} emulator)"


def hbDSPGetErrorDesc(code: int) -> str:
    """Return the message for a status code; a value that is not a runtime code came from an op."""
    number = integer(code)
    return codes.describe(number) if number is not None else f"{short_repr(code)} is not a status code."


def _milliseconds(timeout: object) -> int | None:
    """Convert anything but a small plain int to whole milliseconds; None if it is not a number."""
    whole = integer(timeout)
    try:
        limit_ms = float(cast("Any", timeout)) if whole is None and not isinstance(timeout, (str, bytes)) else whole
        return None if limit_ms is None else math.ceil(min(limit_ms, _MAX_WAIT_MS))
    except Exception as error:  # noqa: BLE001 - NaN, or whatever an object's own code raises
        let_out(error)
        return None


def _handle(task: object) -> int:
    """Return the handle in an argument; 0 for NULL, -1 if it is not a handle."""
    found = deref(task, hbDSPTask_t)
    if found is not None:
        return found.value or 0
    number = integer(task)
    return -1 if number is None else number


def _why_no_task(handle: int | None) -> tuple[int, str]:
    if handle is not None and handle > 0:
        why = f"The task {handle:#x} does not belong to this process, which has no attachment."
        return Status.HB_DSP_FOREIGN_TASK_HANDLE, why
    why = "The task handle is null or not an hbDSPTask_t; hbDSPRpc fills one."
    return Status.HB_DSP_INVALID_TASK_HANDLE, why


def _refusal(sentence: str) -> RequestRefusedError:
    return RequestRefusedError(Status.HB_DSP_INVALID_ARGUMENT, sentence)
