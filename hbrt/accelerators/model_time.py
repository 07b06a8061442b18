"""What a run of an ONNX model takes on a chip, for the table of tasks: no model is refused for it. Needs onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hbrt.accelerators.chips import chip_named
from hbrt.accelerators.onnx_layers import layers_of_model
from hbrt.accelerators.time_model import run_us

if TYPE_CHECKING:
    from onnx import ModelProto


class ModelTime(NamedTuple):
    """A run on one core, alone on the DDR.

    Attributes:
        modelled_ns: Modelled time of a run; 0 where it is not known.
        ddr_bytes: Bytes that it moves.
    """

    modelled_ns: int = 0
    ddr_bytes: int = 0


def time_of_model(model: ModelProto, chip: str, float_bits: int | None) -> ModelTime:
    """Model a run; nothing is known of a chip without parameters, or of a model whose sizes only a run tells."""
    if (parameters := chip_named(chip)) is None:
        return ModelTime()
    try:
        layers = layers_of_model(model, float_bits)
        us = run_us(layers, parameters)
    except Exception:  # noqa: BLE001 - a model that cannot be estimated runs all the same
        return ModelTime()
    return ModelTime(round(1000 * us), round(sum(one.feature_bytes + one.weight_bytes for one in layers)))
