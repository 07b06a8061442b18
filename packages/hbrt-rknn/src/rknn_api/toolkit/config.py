"""The arguments of ``RKNN.config``, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf, isfinite, prod
from operator import index
from typing import Any

from rknn_api.errors import RknnError, invalid_parameter
from rknn_api.platforms import Platform, platform_of
from rknn_api.toolkit.sparsity import MODES

Shapes = tuple[tuple[int, ...], ...]
"""A shape for each input."""

_DEFAULT_PLATFORM = "rk3566"
_DTYPES = ("w8a8", "w8a16", "w4a16", "w4a8", "w16a16i", "w16a16i_dfp")
_OLD_DTYPES = {
    "asymmetric_quantized-8": "w8a8",
    "asymmetric_quantized-16": "w16a16i",
}  # used by programs for toolkits before 2.0
_SPARSE = ("rk3576", "rv1126b")
_ALGORITHMS = ("normal", "mmse", "kl_divergence", "gdq")
_RUN_HERE = {
    "quantized_dtype": ("w8a8", "w8a16", "w4a16", "w16a16i"),
    "quantized_algorithm": ("normal", "mmse", "kl_divergence"),
}
_NO_EFFECT: dict[str, Any] = {
    "compress_weight": False,
    "op_target": None,
    "quantize_weight": False,
    "remove_reshape": False,
    "enable_flash_attention": False,
    "quantized_hybrid_level": 0,
    "disable_rules": [],
    "sram_prefer": False,
    "nbuf_prefer": False,
    "check_data": [],
    "output_tensor_type": None,  # as programs for earlier toolkits have it
}
"""Accepted without effect on results here: the default of each."""

_THRESHOLDS = {"auto_hybrid_cos_thresh": 0.98, "auto_hybrid_euc_thresh": inf}


@dataclass(frozen=True)
class Config:
    """How a model is converted.

    Attributes:
        platform: Target chip.
        mean_values: By input, one number per channel; may be empty.
        std_values: Likewise.
        is_bgr: By input: whether pictures of the dataset are converted to BGR.
        quantized_dtype: "w8a8", "w8a16", "w4a16" or "w16a16i".
        quantized_algorithm: "normal" (minimum and maximum), "mmse" or "kl_divergence".
        per_channel: Whether weights have a scale per output channel instead of one.
        optimization_level: 0 leaves the graph unchanged; 1 to 3 fold constants and batch norms.
        custom_string: Stored in the model file.
        remove_weight: Whether the model file omits the weights.
        single_core_mode: Whether the model uses one core.
        model_pruning: Whether all-zero channels are removed.
        dynamic_input: Sets of shapes, the largest first.
        sparse: None: treated like any weights; "": sparse weights are reported; a mask of ``sparsity.MODES``: applied
            to the others.
        min_cos: A layer whose own result has a smaller cosine is proposed to stay in real numbers.
        max_euc: Likewise a layer whose own result has a larger distance.
        warnings: Messages about accepted arguments without effect.
    """

    platform: Platform
    mean_values: tuple[tuple[float, ...], ...] = ()
    std_values: tuple[tuple[float, ...], ...] = ()
    is_bgr: tuple[bool, ...] = ()
    quantized_dtype: str = "w8a8"
    quantized_algorithm: str = "normal"
    per_channel: bool = True
    optimization_level: int = 3
    custom_string: str = ""
    remove_weight: bool = False
    single_core_mode: bool = False
    model_pruning: bool = False
    dynamic_input: tuple[Shapes, ...] = ()
    sparse: str | None = None
    min_cos: float = 0.98
    max_euc: float = inf
    warnings: tuple[str, ...] = field(default=(), compare=False)


NAMES = (
    "mean_values",
    "std_values",
    "quant_img_RGB2BGR",
    "quantized_dtype",
    "quantized_algorithm",
    "quantized_method",
    "float_dtype",
    "optimization_level",
    "target_platform",
    "custom_string",
    "remove_weight",
    "single_core_mode",
    "model_pruning",
    "dynamic_input",
    "sparse_infer",
    "inputs_yuv_fmt",
    *_THRESHOLDS,
    *_NO_EFFECT,
)
"""The parameters of ``RKNN.config``."""


def read_config(given: Mapping[str, Any]) -> Config:
    """Check the arguments of ``RKNN.config``.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: unknown argument, with the nearest one; invalid value.

    Source: RKNN-Toolkit2 API Reference (2.3.2), config, https://github.com/airockchip/rknn-toolkit2
    """
    for name in given:
        if name not in NAMES:
            near = get_close_matches(name, NAMES, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(NAMES)}."
            raise invalid_parameter(f"config has no argument {name!r}; {hint}")
    args = {name: value for name, value in given.items() if value is not None}
    if (made_of := args.get("inputs_yuv_fmt")) is not None:
        raise invalid_parameter(
            f"Invalid inputs_yuv_fmt {made_of!r}: models here take only RGB; leave it None, and convert."
        )
    warnings = [
        f"{name} has no effect in this emulator."
        for name, default in _NO_EFFECT.items()
        if args.get(name, default) != default
    ]
    if "target_platform" not in args:
        warnings.append(f"target_platform is not given; {_DEFAULT_PLATFORM} is assumed.")
    platform = platform_of(str(args.get("target_platform", _DEFAULT_PLATFORM)))
    if args.get("float_dtype", "float16") != "float16":
        raise _wrong("float_dtype", args["float_dtype"], "must be 'float16'")
    means = _numbers("mean_values", args.get("mean_values", ()))
    stds = _numbers("std_values", args.get("std_values", ()))
    if any(not number for one in stds for number in one):
        raise _wrong("std_values", args["std_values"], "it is a divisor, so none of its numbers may be 0")
    if args.get("remove_weight") and args.get("dynamic_input"):
        raise _wrong(
            "remove_weight", args["remove_weight"], "a model with dynamic_input cannot share another's weights"
        )
    min_cos, max_euc = (_threshold(name, args.get(name, default)) for name, default in _THRESHOLDS.items())
    return Config(
        platform,
        means,
        stds,
        _flags(args.get("quant_img_RGB2BGR", False)),
        _dtype(args.get("quantized_dtype", "w8a8"), platform),
        _choice("quantized_algorithm", args.get("quantized_algorithm", "normal"), _ALGORITHMS),
        _method(args.get("quantized_method", "channel")) == "channel",
        _level(args.get("optimization_level", 3)),
        _custom_string(args.get("custom_string", "")),
        _flag("remove_weight", args),
        _flag("single_core_mode", args),
        _flag("model_pruning", args),
        _dynamic(args.get("dynamic_input", ()), platform),
        _sparse(args.get("sparse_infer", False), platform),
        min_cos=min_cos,
        max_euc=max_euc,
        warnings=tuple(warnings),
    )


def _wrong(name: str, value: object, rule: str) -> RknnError:
    said, end = repr(value), "" if rule.endswith("?") else "."
    return invalid_parameter(f"{name} is {said if len(said) < 200 else f'{said[:200]}...'}; {rule}{end}")


def _choice(name: str, value: object, known: Sequence[str]) -> str:
    if value not in known:
        near = get_close_matches(str(value), known, 1)
        raise _wrong(name, value, f"did you mean {near[0]!r}?" if near else f"it must be one of {', '.join(known)}")
    here = _RUN_HERE[name]
    if value not in here:
        raise _wrong(
            name, value, f"this emulator quantizes with onnxruntime, which supports {' or '.join(map(repr, here))}"
        )
    return str(value)


def _dtype(value: object, platform: Platform) -> str:
    dtype = _choice("quantized_dtype", _OLD_DTYPES.get(str(value), value), _DTYPES)
    if dtype not in platform.dtypes:
        raise _wrong("quantized_dtype", value, f"{platform.name} supports {', '.join(map(repr, platform.dtypes))}")
    return dtype


def _method(value: object) -> str:
    if isinstance(value, str) and value.startswith("group"):
        raise _wrong("quantized_method", value, "groups are for four-bit weights, which this emulator does not support")
    if value not in ("layer", "channel"):  # it may be a list
        raise _wrong("quantized_method", value, "it must be 'layer' or 'channel'")
    return str(value)


def _level(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 3:
        raise _wrong("optimization_level", value, "it must be 0 to 3")
    return int(value)


def _custom_string(value: object) -> str:
    if not isinstance(value, str) or len(value.encode()) >= 1024:
        raise _wrong("custom_string", value, "it must be a string of fewer than 1024 bytes")
    return value


def _numbers(name: str, value: object) -> tuple[tuple[float, ...], ...]:
    """Numbers by input and channel: [[1, 2, 3]], or [1, 2, 3] for a model with one input."""
    rule = "it must be a list with one list of numbers, one per channel, for each input"
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, value, rule)
    nested = [list(value)] if value and not any(isinstance(one, (list, tuple)) for one in value) else value
    try:
        found = tuple(tuple(float(number) for number in one) if one is not None else () for one in nested)
    except (TypeError, ValueError):
        raise _wrong(name, value, rule) from None
    if not all(isfinite(number) for one in found for number in one):
        raise _wrong(name, value, rule)
    return found


def _threshold(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= inf:
        raise _wrong(name, value, "it must be a number of 0 or more")
    return float(value)


def _flag(name: str, args: Mapping[str, Any]) -> bool:
    value = args.get(name, False)
    if not isinstance(value, int) or value not in {0, 1}:
        raise _wrong(name, value, "it must be True or False")
    return bool(value)


def _flags(value: object) -> tuple[bool, ...]:
    flags = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(one, bool) for one in flags):
        raise _wrong("quant_img_RGB2BGR", value, "it must be True or False, or a list with one for each input")
    return tuple(flags)


def _sparse(value: object, platform: Platform) -> str | None:
    if value is False:
        return None
    if value is not True and value not in MODES:
        raise _wrong("sparse_infer", value, f"it must be True, False, or a mask: {', '.join(map(repr, MODES))}")
    if platform.name not in _SPARSE:
        raise _wrong("sparse_infer", value, f"{platform.name} has no sparse inference; only {' and '.join(_SPARSE)} do")
    return "" if value is True else str(value)


def _dynamic(value: Any, platform: Platform) -> tuple[Shapes, ...]:
    """Sets of shapes, the largest first; sets of the same size keep their order."""
    rule = "it must be a list of sets, each with a shape for each input, such as [[[1,3,224,224]],[[1,3,160,160]]]"
    try:
        sets = [tuple(tuple(index(size) for size in shape) for shape in one) for one in value]
    except (TypeError, ValueError):
        raise _wrong("dynamic_input", value, rule) from None
    if not sets:
        return ()
    if not platform.has_general_api:
        raise _wrong("dynamic_input", value, f"{platform.name} only runs models with one shape")
    counts = {tuple(len(shape) for shape in one) for one in sets}
    if len(counts) > 1 or not sets[0] or any(size < 1 for one in sets for shape in one for size in shape):
        raise _wrong("dynamic_input", value, f"{rule}; all sets must have the same number of inputs and dimensions")
    return tuple(dict.fromkeys(sorted(sets, key=elements, reverse=True)))


def elements(shapes: Shapes) -> int:
    """Elements of all inputs together, which determine the largest set."""
    return sum(map(prod, shapes))
