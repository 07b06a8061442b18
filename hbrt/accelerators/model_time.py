"""Modeled time of an ONNX model on a chip, for the task table; never refuses a model. Needs onnx."""

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
        modeled_ns: Modeled time of a run; 0 if unknown.
        ddr_bytes: DDR bytes that it moves.
    """

    modeled_ns: int = 0
    ddr_bytes: int = 0


def time_of_model(model: ModelProto, chip: str, float_bits: int | None) -> ModelTime:
    """Model a run; unknown for a chip without parameters, or a model whose sizes only a run determines."""
    if (parameters := chip_named(chip)) is None:
        return ModelTime()
    try:
        layers = layers_of_model(model, float_bits)
        us = run_us(layers, parameters)
    except Exception:  # noqa: BLE001 - a model that cannot be estimated runs all the same
        return ModelTime()
    return ModelTime(round(1000 * us), round(sum(one.feature_bytes + one.weight_bytes for one in layers)))
