"""The error for a task's status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastrpc.wire import uri
from fastrpc.wire.aee import Aee, AeeError, of_status, on_dsp
from hbrt.status import Status

if TYPE_CHECKING:
    from fastrpc.domains import Opened

_ENDED: Final = {
    int(Status.HB_DSP_CORE_LOST),
    int(Status.HB_DSP_WATCHDOG),
    int(Status.HB_DSP_BOARD_LOST),
    int(Status.HB_DSP_NOT_RUNNING),
    int(Status.HB_DSP_FORKED),
    int(Status.HB_DSP_RELAY_LOST),
}
_CODES: Final = {
    int(Status.HB_DSP_UNKNOWN_COMMAND): Aee.AEE_EUNABLETOLOAD,
    int(Status.HB_DSP_RUN_TASK_FAILED): on_dsp(Aee.AEE_EFAILED),
    int(Status.HB_DSP_OUT_OF_TCM): on_dsp(Aee.AEE_ENOMEMORY),
    int(Status.HB_DSP_TASK_NUM_EXCEED_LIMIT): Aee.AEE_EOUTOFHANDLES,
    int(Status.HB_SYS_OUT_OF_MEMORY): Aee.AEE_ENOMEMORY,
}
_STATUSES: Final = frozenset(int(one) for one in Status)


def error_of(status: int, text: str, opened: Opened | None) -> AeeError:
    """The error for a task's status; records which session has ended."""
    code = of_status(status)
    if code == on_dsp(Aee.AEE_ENOSUCHHANDLE) and opened is not None:
        where = f"{uri.suffix(*uri.split_domain(opened.domain))[6:]} (core {opened.mask.bit_length() - 1})"
        opened.ended = (
            f"The process domain {where} has restarted since the handle of {opened.uri} was opened: close "
            "it, and open another one."
        )
        return AeeError(Aee.AEE_ECONNRESET, opened.ended)
    if status in _ENDED:
        if opened is not None:
            opened.ended = f"The process domain of the handle of {opened.uri} has ended: {text}"
        return AeeError(Aee.AEE_ECONNRESET, text)
    if status in _CODES:
        return AeeError(_CODES[status], text)
    if status in _STATUSES:
        return AeeError(Aee.AEE_ERPC, text)
    _, _, said = text.partition("Its output:\n")
    return AeeError(code, said)
