"""``rknn.utils.onnx_edit``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper

from hbrt.models.loading.model_file import read_file
from hbrt.models.spec.graph_edits import graph_inputs
from rknn_api.calls import Calls, path_of
from rknn_api.errors import invalid_parameter
from rknn_api.onnx_edit.graph import edited
from rknn_api.toolkit.dataset import Wanted, file_stems, samples

if TYPE_CHECKING:
    from onnx import ModelProto

    from rknn_api.onnx_edit.formula import Edit


def onnx_edit(
    model: str | Path,
    export_path: str | Path,
    inputs_transform: Mapping[str, str] | None = None,
    outputs_transform: Mapping[str, str] | None = None,
    dataset: str | Path | None = None,
) -> int:
    """Change the dimensions of inputs and outputs of an ONNX model.

    Args:
        model: Path of the ONNX file.
        export_path: Path of the file to write.
        inputs_transform: Formulas such as "a,b,c,d->1,a,d,b,c" by input name.
        outputs_transform: Likewise, by output name.
        dataset: Text file of samples for the model; a dataset for the new model is written next to ``export_path``, as
            dataset_for_NAME.txt, where NAME is the file's without its extension.

    Returns:
        0; -1 with a message on standard error.

    Source: RKNN SDK advanced guide (chapter 5), 5.13
    """
    calls = Calls()

    def edit() -> None:
        source, target = read_file(path_of(model, "model")).proto, path_of(export_path, "export_path")
        new, edits = edited(
            source,
            _formulas("inputs_transform", inputs_transform),
            _formulas("outputs_transform", outputs_transform),
        )
        onnx.save(new, target)
        if dataset is not None:
            _edit_dataset(source, edits, path_of(dataset, "dataset"), target)

    return calls.call("onnx_edit", edit)


def _formulas(name: str, given: Any) -> dict[str, str]:
    found = {} if given is None else given
    if not isinstance(found, Mapping) or not all(isinstance(one, str) for one in found.values()):
        raise invalid_parameter(f"{name} is {given!r}; pass a formula for each name: {{'x': 'a,b->b,a'}}.")
    return dict(found)


def _edit_dataset(model: ModelProto, edits: Mapping[str, Edit], dataset: Path, target: Path) -> None:
    """Write the samples with the new dimensions, and the text file that names them."""
    values = graph_inputs(model.graph)
    wanted = [
        Wanted(
            tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim),
            helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type),
        )
        for value in values
    ]
    lines, stems = [], file_stems(value.name for value in values)
    (model_stem,) = file_stems([target.stem]).values()  # a space would end the path in a line
    for number, arrays in enumerate(samples(dataset, wanted)):
        names = []
        for value, array in zip(values, arrays, strict=True):
            edit = edits.get(value.name)
            names.append(f"{model_stem}_{stems[value.name]}_{number}.npy")
            np.save(target.with_name(names[-1]), array if edit is None else edit.apply(array))
        lines.append(" ".join(names))
    text = "".join(f"{line}\n" for line in lines)
    target.with_name(f"dataset_for_{target.stem}.txt").write_text(text, encoding="utf-8")
