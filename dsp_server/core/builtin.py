"""What the core itself answers: PING, the command list, unknown commands; and what an op's return value means."""

from __future__ import annotations

import struct
import traceback
from pathlib import Path

from dsp_server import runtime
from dsp_server.core.views import RangeRefused, Views
from dsp_server.errors import ParameterError
from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.registry import Registry, range_name
from hbrt.borders import guests
from hbrt.borders.traces import beyond
from hbrt.cv.image import CvRuleError
from hbrt.findings.record import Place
from hbrt.mailbox.table import Request
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING

_PACKAGED = "dsp_server.ops."
_MAX_NEAREST = 3
# How many frames of an exception's traceback lie above the op.
_CALLERS = (
    *(str(Path(__file__).parents[1] / name) for name in ("core", "detectors", "c_images")),
    *guests.folders("arm_client", "dsp_server", "hbrt"),
)
_LISTING_HEADER = struct.Struct("<II")
_LISTING_RECORD = struct.Struct("<II56s")


def answer_builtin(registry: Registry, views: Views, request: Request) -> tuple[int, str]:
    """Return status and text for a command that no image registers: PING, BUTT (the listing), or unknown.

    Raises:
        RangeRefused: the output block of BUTT cannot be used.
    """
    if request.cmd == HB_DSP_RPC_CMD_PING:
        given = (
            ("input", request.input_phy, request.input_bytes),
            ("output", request.output_phy, request.output_bytes),
        )
        blocks = [f"the {name} block {phy:#x}+{size:#x}" for name, phy, size in given if phy]
        if blocks:
            runtime.find(
                "ping-blocks",
                f"PING (command {request.cmd:#x}) was sent with {' and '.join(blocks)}, "
                "which no op reads or writes. Did you forget to set rpcCmd? If you meant PING, pass no blocks.",
                Place("submitted", cmd=request.cmd, phy_addr=request.input_phy, size_bytes=request.input_bytes),
            )
        return 0, ""
    if request.cmd == HB_DSP_RPC_CMD_BUTT:
        output = views.get(request.output_phy, request.output_bytes, request.client)
        listing = pack_listing([(r.cmd, r.latency_us, r.name) for r in registry.listing()])
        if len(output) < _LISTING_HEADER.size:
            return Status.HB_DSP_INVALID_ARGUMENT, (
                "Command 0xffff writes the list of registered commands to the output block, which needs at least "
                f"{_LISTING_HEADER.size} bytes, {len(listing)} for the whole list; got {len(output)}."
            )
        size = min(len(listing), len(output))
        output[:size] = listing[:size]
        return 0, ""
    return Status.HB_DSP_UNKNOWN_COMMAND, (
        f"No op is registered for command {request.cmd:#x}. {_known(registry, request.cmd)}"
        f"{_missing_call(registry, request.cmd)}"
    )


def _known(registry: Registry, cmd: int) -> str:
    """Say how many ops are registered, and name those with the nearest command numbers."""
    known = registry.listing()
    if not known:
        return "The image registered no ops."
    nearest = sorted(sorted(known, key=lambda one: abs(one.cmd - cmd))[:_MAX_NEAREST], key=lambda one: one.cmd)
    names = ", ".join(f"{one.cmd:#x} {one.name}" for one in nearest)
    if len(known) == len(nearest):
        return f"The image registered {names}."
    return (
        f"The image registered {len(known)} ops; the nearest are {names}. 'hbrt ops' (board.ops() in Python) lists all."
    )


def _missing_call(registry: Registry, cmd: int) -> str:
    """Hint for an image without the packaged ops: in C the macro needs no parentheses, in Python it does."""
    whose = range_name(cmd)
    has_packaged = any(one.source.startswith(_PACKAGED) and range_name(one.cmd) == whose for one in registry.listing())
    if whose not in {"nn", "cv"} or has_packaged:
        return ""
    return f" To register the packaged ops, call HB_DSP_REGISTER_{whose.upper()}_ALL() in main(), with parentheses."


def pack_listing(ops: list[tuple[int, int, str]]) -> bytes:
    """Pack BUTT's answer: u32 count, u32 record bytes (64), then records {u32 cmd; u32 latency_us; char name[56]}."""
    records = b"".join(_LISTING_RECORD.pack(cmd, latency, name.encode()[:55]) for cmd, latency, name in ops)
    return _LISTING_HEADER.pack(len(ops), _LISTING_RECORD.size) + records


def as_status(returned: object) -> int:
    """Convert an op's return value to a C int.

    Raises:
        TypeError: not an integer. OverflowError: too large for a C int.
    """
    try:
        value: int = returned.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        raise TypeError(
            f"The op returned {returned!r}; an op must return an int, 0 for success. Did you forget 'return 0'?"
        ) from None
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"The op returned {value}, which does not fit a C int.")
    return int(value)


def is_refusal(error: BaseException) -> bool:
    """Whether an op's exception means that it refused the call; any other exception is a bug in the op."""
    return isinstance(error, (RangeRefused, ParameterError, CvRuleError))


def explain(error: BaseException, map_failure: str, op: str = "The op") -> tuple[int, str]:
    """Return status and text for an op's exception: refused ranges and TCM have statuses of their own.

    Args:
        error: The exception. A refusal's text is one sentence, a failure's is a traceback.
        map_failure: Why the op's last mapping failed; empty if none did.
        op: How that sentence names the op, such as "softmax (command 0x400)".
    """
    if isinstance(error, RangeRefused):
        return error.status, str(error)
    if is_refusal(error):
        return Status.HB_DSP_RUN_TASK_FAILED, f"{op} refused the call: {error} {map_failure}".rstrip()
    trace = beyond(error, lambda frame: frame.f_code.co_filename.startswith(_CALLERS))
    text = "".join(traceback.format_exception(type(error), error, trace, limit=-20)).rstrip()
    if map_failure:
        text = f"{text}\n{map_failure}"
    status = Status.HB_DSP_OUT_OF_TCM if isinstance(error, OutOfTcm) else Status.HB_DSP_RUN_TASK_FAILED
    return status, text
