"""What a run of a model takes on the board, beside what ``hrt_model_exec perf`` measures on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arm_client.session.session import attached
from hbrt.accelerators.chips import chip_named, run_of
from hbrt.accelerators.onnx_layers import UnknownSizesError, layers_of_model

if TYPE_CHECKING:
    from onnx import ModelProto


def modelled_run(model: ModelProto) -> dict[str, Any]:
    """A run on one core of this process's board, in milliseconds, by the model's layers; ``why_not`` where none is."""
    board = attached().profile.chip
    if chip_named(board) is None:
        return {"board": board, "why_not": f"no parameters of {board} are fitted or assumed"}
    try:
        run = run_of(layers_of_model(model), board)
    except UnknownSizesError as error:
        return {"board": board, "why_not": str(error)}
    low_ms, run_ms, high_ms = (us / 1000 for us in (run.low_us, run.us, run.high_us))
    return {"board": board, "run_ms": run_ms, "low_ms": low_ms, "high_ms": high_ms, "assumed": run.why}


def modelled_text(run: dict[str, Any]) -> str:
    """It as a sentence."""
    if "why_not" in run:
        return f"Modelled for {run['board']}: nothing, since {run['why_not'].rstrip('.')}."
    assumed = f" Assumed: {run['assumed']}." if run["assumed"] else ""
    return (
        f"Modelled for {run['board']} by the model's layers: a run takes {run['run_ms']:.3f}ms on one core, 90 % of "
        f"such {run['low_ms']:.3f} to {run['high_ms']:.3f}ms; the figures above are measured on this machine.{assumed}"
    )
