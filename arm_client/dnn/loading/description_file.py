"""The YAML file next to a model, with the vendor compiler's keys: what a compiled model would contain. Pure.

`model.onnx` is described by `model.yaml` or `model.yml`. Keys may be in the compiler's sections (model_parameters,
input_parameters, compiler_parameters; others are ignored) or all at the top level. Values for several inputs are
separated by `;`, in the order of input_name. docs/dnn-tensors.md lists the keys.

Source: RDK toolchain manual (rdk_doc), model conversion, for names, values and pairs of types,
https://github.com/D-Robotics/rdk_doc/blob/main/docs/07_Advanced_development/04_toolchain_development/intermediate/ptq_process.md
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from arm_client.dnn.errors import ModelError, incompatible, one_line
from arm_client.dnn.loading.description import Description, InputDescription
from hbrt.borders import yaml_text
from hbrt.dnn_types import hbDNNTensorLayout
from hbrt.status import Status

if TYPE_CHECKING:
    from onnx import ModelProto

SUFFIXES = (".yaml", ".yml")
METADATA_KEY = "hbrt.description"
MAX_BYTES = 1 << 20
MAX_BATCH = 4096
SECTIONS = ("model_parameters", "input_parameters", "compiler_parameters")
INPUT_KEYS = (
    "input_name",
    "input_type_rt",
    "input_layout_rt",
    "input_type_train",
    "input_layout_train",
    "input_space_and_range",
    "input_shape",
    "input_batch",
    "norm_type",
    "mean_value",
    "scale_value",
    "std_value",
)
OTHER_INPUT_KEYS = ("separate_batch", "separate_name", "quanti_type")
"""Other accepted keys: two of the compiler's that have no effect here, and the emulator's own."""
LAYOUTS = {"nhwc": hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC, "nchw": hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW}
TRAINED = {
    "nv12": ("yuv444", "rgb", "bgr"),
    "yuv444": ("yuv444", "rgb", "bgr"),
    "rgb": ("rgb", "bgr"),
    "bgr": ("bgr", "rgb"),
    "gray": ("gray",),
    "featuremap": ("featuremap",),
}
"""input_type_rt, and the compatible values of input_type_train."""

NORMS = {
    "no_preprocess": (),
    "data_mean": ("mean_value",),
    "data_scale": ("scale_value",),
    "data_std": ("std_value",),
    "data_mean_and_scale": ("mean_value", "scale_value"),
    "data_mean_and_std": ("mean_value", "std_value"),
}
"""norm_type, and the keys it requires."""

SOURCES = ("ddr", "pyramid", "resizer")
QUANTI_TYPES = ("scale", "shift")


def beside(model: Path) -> Path | None:
    """Return a model's description file (same name with .yaml or .yml), or None if there is none."""
    return next((path for suffix in SUFFIXES if (path := model.with_suffix(suffix)).is_file()), None)


def of_model(path: Path | None, model: ModelProto, input_names: Sequence[str]) -> Description:
    """Return a model's description: from the file next to it, else from its metadata, else empty.

    Args:
        path: Path of the model; None for bytes.
        model: The model; its metadata_props may hold a description under METADATA_KEY.
        input_names: The graph's inputs, in its order.

    Raises:
        ModelError: as `read`.
    """
    file = beside(path) if path is not None else None
    if file is not None:
        return read(file, input_names)
    inside = next((entry.value for entry in model.metadata_props if entry.key == METADATA_KEY), "")
    return parse(inside, input_names, "The description in the model's metadata")


def read(path: Path, input_names: Sequence[str]) -> Description:
    """Read a description.

    Args:
        path: A YAML file.
        input_names: The graph's inputs, in its order.

    Raises:
        ModelError: CAN_NOT_OPEN_FILE; INCOMPATIBLE_MODEL with the key, the value and what is allowed.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ModelError(
            Status.HB_DNN_CAN_NOT_OPEN_FILE, f"Cannot read the model description {path}: {error.strerror}."
        ) from None
    if len(data) > MAX_BYTES:
        raise incompatible(f"{path} is larger than {MAX_BYTES} bytes, too large for a model description.")
    return parse(data, input_names, str(path))


def parse(text: str | bytes, input_names: Sequence[str], label: str = "the description") -> Description:
    """Parse a description.

    Args:
        text: YAML.
        input_names: The graph's inputs, in its order.
        label: Name of the text in error messages.

    Raises:
        ModelError: as `read`.
    """
    try:
        loaded = yaml_text.load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise incompatible(f"{label} is not YAML: {one_line(error)}.") from None
    if not isinstance(loaded or {}, dict):
        raise incompatible(f"{label} contains a {type(loaded).__name__}: write keys and values, such as input_type_rt.")
    return _Reader(loaded or {}, tuple(input_names), label).description()


class _Reader:
    """The keys of one file."""

    def __init__(self, loaded: dict[Any, Any], input_names: tuple[str, ...], label: str) -> None:
        self._label = label
        self._graph_names = input_names
        self._values: dict[Any, Any] = {key: value for key, value in loaded.items() if key not in SECTIONS}
        if "batch" in self._values:
            self._values.setdefault("input_batch", self._values["batch"])
        for section in SECTIONS:
            inner = loaded.get(section)
            if inner is not None and not isinstance(inner, dict):
                raise self._wrong(section, inner, "keys and values")
            self._values |= inner or {}
        known = (*INPUT_KEYS, *OTHER_INPUT_KEYS)
        for key in self._values:
            text = str(key)
            in_section = key in (loaded.get("input_parameters") or {})
            if text not in known and (in_section or (text.startswith("input") and text != "input_source")):
                near = difflib.get_close_matches(text, known, 1) or INPUT_KEYS
                raise incompatible(f"{label}: {text} is not a key of input_parameters; known: {', '.join(near)}.")

    def description(self) -> Description:
        names = self._names()
        columns = {key: self._column(key, names) for key in INPUT_KEYS if key not in {"input_name", "input_batch"}}
        sources = self._sources()
        inputs = {}
        for at, name in enumerate(names):
            row = {key: column[at] for key, column in columns.items()}
            inputs[name] = self._input(name, row, sources.get(name))
        prefix = self._values.get("output_model_file_prefix")
        if prefix is not None and not isinstance(prefix, str):
            raise self._wrong("output_model_file_prefix", prefix, "a name")
        quanti = self._choice("quanti_type", self._values.get("quanti_type"), QUANTI_TYPES) or "scale"
        return Description(prefix or None, inputs, self._batch(), quanti == "shift")

    def _wrong(self, key: str, value: object, wanted: str) -> ModelError:
        text = repr(value)
        return incompatible(f"{self._label}: {key} is {text if len(text) < 80 else text[:80] + '...'}; give {wanted}.")

    def _names(self) -> tuple[str, ...]:
        given = self._split("input_name", self._values.get("input_name"))
        names = tuple(name for name in given if name)
        if not names:
            described = [key for key in INPUT_KEYS if key not in {"input_name", "input_batch"} and key in self._values]
            if len(self._graph_names) > 1 and described:
                raise incompatible(
                    f"{self._label}: {described[0]} is set without input_name, but the model has the inputs "
                    f"{', '.join(self._graph_names)}; list them in input_name, separated by ';'."
                )
            return self._graph_names[:1] if described or "input_source" in self._values else ()
        for name in names:
            if name not in self._graph_names:
                raise self._wrong("input_name", name, f"inputs of the model: {', '.join(self._graph_names)}")
        if len(set(names)) < len(names):
            raise self._wrong("input_name", ";".join(names), "each input once")
        return names

    def _split(self, key: str, value: object) -> list[str]:
        """Split a value into parts: text at each `;`, a list into its items."""
        if value is None:
            return []
        if isinstance(value, list):
            if any(isinstance(item, (list, dict)) for item in value):
                raise self._wrong(key, value, "one value for each input, separated by ';'")
            return ["" if item is None else str(item).strip() for item in value]
        if isinstance(value, dict):
            raise self._wrong(key, value, "one value for each input, separated by ';'")
        parts = [part.strip() for part in str(value).split(";")]
        return parts[:-1] if parts[-1] == "" else parts

    def _column(self, key: str, names: tuple[str, ...]) -> list[str | None]:
        """Return one value per input; None where the file has none ('' or None in the compiler's format)."""
        parts = self._split(key, self._values.get(key))
        if not parts:
            return [None] * len(names)
        if len(parts) != len(names):
            raise incompatible(
                f"{self._label}: {key} has {len(parts)} values for {len(names)} inputs ({', '.join(names)}); give one "
                "value per input, separated by ';'."
            )
        return [None if part in {"", "None", "none"} else part for part in parts]

    def _choice(self, key: str, value: object, allowed: Sequence[str]) -> str | None:
        if value is None or value == "":
            return None
        text = str(value).lower()
        if text not in allowed:
            raise self._wrong(key, value, "one of " + ", ".join(allowed))
        return text

    def _input(self, name: str, row: dict[str, str | None], source: str | None) -> InputDescription:
        type_rt = self._choice("input_type_rt", row["input_type_rt"], tuple(TRAINED)) or "featuremap"
        trained = self._choice("input_type_train", row["input_type_train"], sorted(set(sum(TRAINED.values(), ()))))
        if trained is None:
            if type_rt == "nv12":
                raise incompatible(
                    f"{self._label}: the input {name!r} is nv12, but graphs are not trained on nv12; set "
                    f"input_type_train to its training format: {', '.join(TRAINED['nv12'])}."
                )
            trained = type_rt
        if trained not in TRAINED[type_rt]:
            raise incompatible(
                f"{self._label}: the input {name!r} has input_type_rt {type_rt} and input_type_train {trained}; "
                f"{type_rt} goes with {', '.join(TRAINED[type_rt])}."
            )
        space = self._choice("input_space_and_range", row["input_space_and_range"], ("regular", "bt601_video"))
        is_video = space == "bt601_video"
        if is_video and (type_rt != "nv12" or trained == "yuv444"):
            raise incompatible(
                f"{self._label}: the input {name!r} has input_space_and_range bt601_video, which sets "
                f"the conversion from nv12 to rgb or bgr; but it is {type_rt} for a graph trained on "
                f"{trained}. Remove the key."
            )
        if type_rt == "featuremap":
            self._check_featuremap(name, row)
        source = source or "ddr"
        if source != "ddr" and type_rt not in {"nv12", "gray"}:
            raise incompatible(
                f"{self._label}: the input {name!r} comes from the {source} and is {type_rt}; a "
                f"{source} delivers nv12 or gray."
            )
        mean, scale = self._norm(name, row, channels=1 if type_rt == "gray" else 3)
        return InputDescription(
            type_rt=type_rt,
            type_train=trained,
            layout_rt=self._layout("input_layout_rt", row),
            layout_train=self._layout("input_layout_train", row),
            mean=mean,
            scale=scale,
            source=source,
            shape=self._shape(row["input_shape"]),
            video_range=is_video,
        )

    def _layout(self, key: str, row: dict[str, str | None]) -> hbDNNTensorLayout | None:
        name = self._choice(key, row[key], tuple(LAYOUTS))
        return None if name is None else LAYOUTS[name]

    def _check_featuremap(self, name: str, row: dict[str, str | None]) -> None:
        norm = row["norm_type"]
        if norm not in {None, "no_preprocess"}:
            raise incompatible(
                f"{self._label}: the input {name!r} is a featuremap with norm_type {norm}; only images are normalized: "
                "give no_preprocess."
            )

    def _norm(
        self, name: str, row: dict[str, str | None], channels: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return mean and factor. Without norm_type, whatever values are given apply."""
        norm = self._choice("norm_type", row["norm_type"], tuple(NORMS))
        given = [key for key in ("mean_value", "scale_value", "std_value") if row[key] is not None]
        needed = given if norm is None else list(NORMS[norm])
        if {"scale_value", "std_value"} <= set(needed):
            raise incompatible(f"{self._label}: the input {name!r} has both scale_value and std_value; give only one.")
        numbers: dict[str, NDArray[np.float32]] = {}
        for key in needed:
            text = row[key]
            if text is None:
                raise incompatible(f"{self._label}: norm_type {norm} of the input {name!r} requires {key}; add it.")
            numbers[key] = self._numbers(key, text, channels)
        scale = numbers.get("scale_value", np.ones(1, np.float32))
        if "std_value" in numbers:
            with np.errstate(divide="ignore", over="ignore"):
                scale = np.float32(1) / numbers["std_value"]
            if not np.isfinite(scale).all():
                raise self._wrong("std_value", row["std_value"], "numbers other than 0")
        return numbers.get("mean_value", np.zeros(1, np.float32)), scale

    def _numbers(self, key: str, text: str, channels: int) -> NDArray[np.float32]:
        try:
            with np.errstate(over="ignore"):  # infinite as a float32, which is refused below
                found = np.array([float(part) for part in text.replace(",", " ").split()], np.float32)
        except ValueError:
            raise self._wrong(key, text, "numbers, separated by spaces") from None
        if found.size not in {1, channels} or not np.isfinite(found).all():
            wanted = "one finite number" if channels == 1 else f"one finite number, or {channels} separated by spaces"
            raise self._wrong(key, text, wanted)
        return found

    def _shape(self, text: str | None) -> tuple[int, ...] | None:
        if text is None:
            return None
        parts = [part.strip() for part in text.lower().split("x")]
        if not all(part.isascii() and part.isdecimal() and 0 < int(part) < 1 << 31 for part in parts):
            raise self._wrong("input_shape", text, "sizes above 0 with an x between them, as 1x3x224x224")
        return tuple(int(part) for part in parts)

    def _batch(self) -> int | None:
        value = self._values.get("input_batch")
        if value is None or value == "":
            return None
        parts = self._split("input_batch", value)
        number = parts[0] if parts else ""
        if len(set(parts)) != 1 or not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MAX_BATCH):
            raise self._wrong("input_batch", value, f"one number of 1..{MAX_BATCH}")
        return int(number)

    def _sources(self) -> dict[str, str]:
        """Return sources by input. The compiler takes a mapping or its text; `_default_value` covers unnamed inputs."""
        value = self._values.get("input_source")
        if isinstance(value, str):
            try:
                value = yaml_text.load(value)
            except (yaml.YAMLError, ValueError):
                raise self._wrong("input_source", value, 'a mapping, as {"data": "pyramid"}') from None
        if value is None:
            return {}
        if isinstance(value, str):
            value = {"_default_value": value}
        if not isinstance(value, dict):
            raise self._wrong("input_source", value, 'a mapping, as {"data": "pyramid"}')
        found = {}
        for key, source in value.items():
            if key != "_default_value" and key not in self._graph_names:
                raise self._wrong("input_source", key, f"inputs of the model: {', '.join(self._graph_names)}")
            found[str(key)] = self._choice("input_source", source, SOURCES) or "ddr"
        default = found.pop("_default_value", None)
        return found if default is None else dict.fromkeys(self._graph_names, default) | found
