"""A model of real numbers becomes one of integers, by onnxruntime's static quantiser: QuantizeLinear, DequantizeLinear.

The ranges are gathered here, by the program's own ops where the model has some, which onnxruntime cannot run.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, TensorProto
from onnxruntime.quantization import CalibrationMethod, QuantType
from onnxruntime.quantization.calibrate import HistogramCollector, TensorData, TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

from hbrt.models.errors import one_line
from hbrt.models.spec.graph_edits import graph_inputs, with_outputs
from rknn_api.container import NORMALISED
from rknn_api.errors import invalid_model, invalid_parameter
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner
from rknn_api.toolkit.config import Config
from rknn_api.toolkit.mean_squares import Histogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranges = Mapping[str, tuple[float, float]]
_BINS = 128  # as onnxruntime has it for entropy


def activations(model: ModelProto) -> list[str]:
    """Names of the values of float32 that nodes make or programs give, in the order of the graph."""
    graph = model.graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    names = [value.name for value in graph_inputs(graph)]
    names += [name for node in graph.node if node.op_type != "Constant" for name in node.output if name]
    return [name for name in names if types.get(name) == TensorProto.FLOAT]


def ranges_of(
    model: ModelProto, ops: CustomOps, samples: Iterable[Sequence[NDArray[Any]]], algorithm: str, levels: int = 255
) -> dict[str, tuple[float, float]]:
    """Range of each activation over a dataset.

    Args:
        model: Of real numbers, with the types of its values.
        ops: The program's.
        samples: Arrays for the inputs, in the graph's layout.
        algorithm: "normal": the least and the largest number; "kl_divergence" and "mmse": the range that loses
            least, by entropy and by the mean of the squares.
        levels: Steps of the quantised numbers.

    Raises:
        RknnError: RKNN_ERR_FAIL: the model cannot be run; RKNN_ERR_PARAM_INVALID: a value is no number.
    """
    names = activations(model)
    given = [value.name for value in graph_inputs(model.graph)]
    runner = GraphRunner(with_outputs(model, names), "the model", ops)
    collector = HistogramCollector("entropy", False, _BINS, _BINS, 99.999, "same")
    found: dict[str, tuple[float, float]] = {}
    histograms: dict[str, Histogram] = {}
    for arrays in samples:
        feeds = dict(zip(given, arrays, strict=True))
        values = {**feeds, **runner.run(feeds)}
        seen = {name: values[name] for name in names if values[name].size and values[name].dtype == np.float32}
        for name, array in seen.items():
            low, high = float(array.min()), float(array.max())
            if not np.isfinite([low, high]).all():
                raise invalid_parameter(
                    f"The value {name!r} is {low} to {high} on the dataset, which is no range. Look at the dataset, "
                    "and at mean_values and std_values."
                )
            before = found.get(name, (low, high))
            found[name] = (min(low, before[0]), max(high, before[1]))
            if algorithm == "mmse":
                histograms.setdefault(name, Histogram()).add(array)
        if algorithm == "kl_divergence":
            with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does
                collector.collect({name: [array] for name, array in seen.items()})
    runner.close()
    found |= {name: histogram.best(*found[name], levels) for name, histogram in histograms.items()}
    if algorithm == "kl_divergence":
        with contextlib.redirect_stdout(io.StringIO()):
            found = {
                name: (float(one[0]), float(one[1])) for name, one in collector.compute_collection_result().items()
            }
    return found


def quantised(model: ModelProto, config: Config, ranges: Ranges, exclude: Sequence[str] = ()) -> ModelProto:
    """The model with QuantizeLinear and DequantizeLinear around what is quantised.

    Args:
        model: Of real numbers, with the types of its values; is not changed.
        config: Says types, and whether weights have a scale a channel.
        ranges: Of the activations.
        exclude: Names of nodes that stay in real numbers.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: onnxruntime cannot quantise it, and why.

    Source: onnxruntime documentation, Quantize ONNX Models,
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    is_wide = config.quantized_dtype == "w8a16"
    tensors = {
        name: TensorData(lowest=np.array(low, np.float32), highest=np.array(high, np.float32))
        for name, (low, high) in ranges.items()
    }
    options = {
        "ActivationSymmetric": is_wide,
        "WeightSymmetric": True,
        "UseQDQContribOps": is_wide and _opset(model) < 21,  # ONNX has 16 bits from 21 on
    }
    own = [node.name for node in copy.graph.node if node.name.startswith(NORMALISED)]
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns of each tensor without a range
    try:
        quantizer = QDQQuantizer(
            copy,
            config.per_channel,
            False,
            QuantType.QInt8,
            QuantType.QInt16 if is_wide else QuantType.QInt8,
            TensorsData(CalibrationMethod.MinMax, tensors),
            [],
            [*own, *exclude],
            sorted({*QLinearOpsRegistry, *QDQRegistry}),
            options,
        )
        quantizer.quantize_model()
        quantizer.model.topological_sort()
    except Exception as error:
        text = f"{type(error).__name__}: {one_line(error)}"
        raise invalid_model(f"onnxruntime cannot quantise the model: {text}.") from error
    finally:
        logger.setLevel(level)
    made: ModelProto = quantizer.model.model
    return made


def _opset(model: ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), default=1)
