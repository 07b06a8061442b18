"""This runtime's use of onnxruntime: options, sessions, stopping a run, and the types reported by a session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import onnxruntime as ort
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto, helper

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import GraphError, Reason, incompatible, invalid, one_line
from hbrt.models.run.exact_integers import exact_integers
from hbrt.models.run.stop import QUIET

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NOT_KNOWN = ("is not a registered function/op", "No opset import for domain", "No Op registered for")
# onnxruntime's element type names that are not ONNX's in lower case.
_ELEMENTS = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}


class Saving(NamedTuple):
    """Where a session saves its prepared model.

    Attributes:
        model: The optimized graph.
        weights: Name of the file next to it with the weights, in the kernels' layout.
    """

    model: Path
    weights: str


def thread_count(threads: int | None) -> int:
    """Return a session's threads, at most the CPUs; half of them for None, since two cores share them."""
    cpus = len(os.sched_getaffinity(0))
    return max(1, min(threads or cpus // 2, cpus))


def session_options(threads: int | None = None) -> ort.SessionOptions:
    """Return the options of every session that a plan creates; benchmarks also use them with bare onnxruntime.

    Args:
        threads: As for ``thread_count``.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = thread_count(threads)
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    return options


def make_session(
    model: ModelProto, label: str, threads: int | None = None, saving: Saving | None = None
) -> ort.InferenceSession:
    """Create an onnxruntime session on the CPU with exact integers.

    Args:
        model: Not modified.
        label: What to call it in a message.
        threads: As for ``session_options``.
        saving: Where onnxruntime saves the prepared model; None for nowhere.

    Raises:
        GraphError: UNKNOWN_OP, INVALID or INCOMPATIBLE, with onnxruntime's reason; NO_MEMORY.
    """
    exact, config = exact_integers(model, saturates=_saturates())
    options = session_options(threads)
    if saving is not None:
        options.optimized_model_filepath = str(saving.model)
        config = config | {
            "session.optimized_model_external_initializers_file_name": saving.weights,
            "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
            "session.save_external_prepacked_constant_initializers": "1",
        }
    return _open(exact.SerializeToString(), options, config, label)


def open_saved(file: Path, label: str, threads: int | None = None) -> ort.InferenceSession:
    """Create a session from another's saved model; maps the weights.

    Raises:
        GraphError: as for ``make_session``.
    """
    options = session_options(threads)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # already optimized
    return _open(str(file), options, {}, label)


def _open(source: bytes | str, options: ort.SessionOptions, config: dict[str, str], label: str) -> ort.InferenceSession:
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    try:
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"], enable_fallback=0)
        session._model_bytes = None  # noqa: SLF001 - it keeps a second copy of the weights, to be made again from
        return session
    except Exception as error:  # noqa: BLE001 - its exceptions share no base; each is a model that it refused
        let_out(error)
        text = one_line(error)
        if any(sign in text for sign in _NOT_KNOWN):
            raise GraphError(Reason.UNKNOWN_OP, f"onnxruntime refuses {label}: {text}.") from None
        if _lacks_memory(text):
            raise GraphError(Reason.NO_MEMORY, f"onnxruntime ran out of memory for {label}: {text}") from None
        is_unknown = type(error).__name__ == "NotImplemented" or any(
            sign in text for sign in ("opset", "IR version", "NOT_IMPLEMENTED", "kernel")
        )
        refuse = incompatible if is_unknown else invalid
        raise refuse(f"onnxruntime refuses {label}: {text}") from None


@cache
def _saturates() -> bool:
    """Whether this CPU adds uint8 x int8 products in 16 bits: an x86 without VNNI. True if unknown."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return not re.search(r"^flags\b.*\b(avx512_vnni|avx_vnni)\b", text, re.MULTILINE)


def run_failed(error: Exception) -> GraphError:
    """Return RUN_FAILED with onnxruntime's reason; NO_MEMORY if the host had none for a value inside the graph."""
    text = one_line(error)
    reason = Reason.NO_MEMORY if _lacks_memory(text) else Reason.RUN_FAILED
    hint = "; the graph may not accept inputs of these sizes" if "broadcast" in text else ""
    return GraphError(reason, f"onnxruntime: {text}{hint}")


def _lacks_memory(text: str) -> bool:
    return any(sign in text for sign in ("Failed to allocate memory", "bad allocation", "std::bad_alloc"))


def check_shape(name: str, result: NDArray[Any], target: NDArray[Any]) -> None:
    """Refuse a result whose size differs from the model's.

    Raises:
        GraphError: RUN_FAILED.
    """
    if result.shape != target.shape:
        raise GraphError(
            Reason.RUN_FAILED,
            f"The output {name!r} has the shape {list(result.shape)}, but the model says {list(target.shape)}.",
        )


def output_types(outputs: Iterable[tuple[str, str, list[Any] | None]]) -> dict[str, ValueInfoProto]:
    """Return the types of a session's outputs, inferred by onnxruntime. A scalar looks like an unknown rank: no shape.

    Args:
        outputs: Name, type and shape in onnxruntime's notation.

    Raises:
        GraphError: INCOMPATIBLE: a type that cannot be passed between sessions.
    """
    return {name: ValueInfoProto(name=name, type=_type_of(kind, shape)) for name, kind, shape in outputs}


def _type_of(text: str, shape: list[Any] | None) -> TypeProto:
    found = re.fullmatch(r"(tensor|seq|optional|sparse_tensor)\((.+)\)", text)
    if found is None:
        raise incompatible(f"A value of type {text} cannot be passed between parts of the model.")
    kind, inner = found[1], found[2]
    if kind == "tensor":
        element = _ELEMENTS.get(inner) or TensorProto.DataType.Value(inner.upper())
        return helper.make_tensor_type_proto(element, _sizes(shape))
    if kind == "sparse_tensor":
        raise incompatible(f"A value of type {text} cannot be passed between parts of the model.")
    make = helper.make_sequence_type_proto if kind == "seq" else helper.make_optional_type_proto
    return make(_type_of(inner, None))


def _sizes(shape: list[Any] | None) -> list[int | str | None] | None:
    return None if not shape else [size if isinstance(size, (int, str)) and size != "" else None for size in shape]
