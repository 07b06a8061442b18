"""Samples that make pictures: their libraries, and one sheet with all pictures."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arm_client.commands.run.samples import arguments_of, tree_of
from arm_client.sample import PICTURE
from hbrt.lazy import how_to_install
from hbrt.native.hexagon_flags import QEMU, qemu

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHEET_NAME = "contact_sheet.png"
TILE_WIDTH, TILE_HEIGHT, LABEL_HEIGHT, GAP = 240, 180, 22, 10
COLUMNS = 6


class PictureError(OSError):
    """Pictures cannot be read or written; the message names the file, or the library to install."""


def take_pictures(samples: dict[str, Path]) -> bool:
    """Whether one of the samples reads a picture."""
    return any("input_file" in arguments_of(file) for file in samples.values())


def need_opencv() -> None:
    """Report missing inputs before a board is started in vain.

    Raises:
        PictureError: OpenCV is not installed.
    """
    if find_spec("cv2") is None:
        raise PictureError(
            "These samples read and write pictures with OpenCV, which this Python does not have: "
            f"{how_to_install('cv')}."
        )


_MODELS = ("onnx", "onnxruntime", "cv2", "yaml")
NEEDED = {
    "dnn": _MODELS,
    "rknn": (*_MODELS, "rknn", "rknnlite"),
    "fastrpc": ("fastrpc",),
    "hexagon": ("fastrpc", "ziglang", QEMU),
}
"""An extra -> the libraries and the program that samples need with it."""
_SUBJECTS = {"fastrpc": "FastRPC needs", "hexagon": "Hexagon code needs"}


def extras_of(file: Path) -> list[str]:
    """The extras that a sample needs: those with the name of its group, of itself, or of a library that it imports."""
    nodes = list(ast.walk(tree_of(file)))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return [extra for extra in NEEDED if extra in {file.parent.name, file.stem, *imported}]


def missing_for(extra: str) -> list[str]:
    """Names of packages that samples need from an extra and that are not installed."""
    return [name for name in NEEDED[extra] if find_spec(name) is None and not (name == QEMU and qemu())]


def need(extra: str) -> None:
    """Report missing packages before a board is started in vain.

    Raises:
        PictureError: something that samples need with this extra is not installed.
    """
    if missing := missing_for(extra):
        how = how_to_install(extra, is_guest=extra in {"fastrpc", "rknn"})
        system = " QEMU is of the system (Debian: apt install qemu-user)." if QEMU in missing else ""
        raise PictureError(
            f"{_SUBJECTS.get(extra, 'Models need')} {', '.join(missing)}, which this Python does not have: "
            f"{how}.{system}"
        )


def is_picture(file: Path) -> bool:
    """Whether OpenCV can read a file."""
    import cv2

    return cv2.imread(str(file), cv2.IMREAD_COLOR) is not None


def contact_sheet(directory: Path, picture: Path | None, made: list[tuple[str, Path]]) -> Path | None:
    """Write the sheet of the samples' results for a picture.

    Args:
        directory: Of the sheet.
        picture: Their input; None for the default one.
        made: Name and file of each result.

    Returns:
        The sheet's file; None if nothing was written.
    """
    if not made:
        return None
    file = directory / SHEET_NAME
    write_contact_sheet(file, [("the picture", picture or Path(PICTURE)), *made])
    return file


def write_contact_sheet(file: Path, pictures: list[tuple[str, Path]]) -> None:
    """Write all pictures onto one, in rows of six, each with its name below.

    Args:
        file: PNG file to write.
        pictures: Name and file of each.

    Raises:
        PictureError: one cannot be read, or the sheet cannot be written; names the file.
    """
    import cv2
    import numpy as np

    rows = -(-len(pictures) // COLUMNS)
    columns = min(len(pictures), COLUMNS)
    step_x, step_y = TILE_WIDTH + GAP, TILE_HEIGHT + LABEL_HEIGHT + GAP
    sheet = np.full((rows * step_y + GAP, columns * step_x + GAP, 3), 245, np.uint8)
    for index, (name, picture_file) in enumerate(pictures):
        picture = cv2.imread(str(picture_file), cv2.IMREAD_COLOR)
        if picture is None:
            raise PictureError(f"{picture_file} is not a picture that OpenCV can read.")
        left, top = GAP + index % COLUMNS * step_x, GAP + index // COLUMNS * step_y
        tile = _fitted(picture)
        x, y = left + (TILE_WIDTH - tile.shape[1]) // 2, top + (TILE_HEIGHT - tile.shape[0]) // 2
        sheet[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
        at = (left, top + TILE_HEIGHT + LABEL_HEIGHT - 6)
        cv2.putText(sheet, name, at, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (30, 30, 30), 1, cv2.LINE_AA)
    if not cv2.imwrite(str(file), sheet):
        raise PictureError(f"{file} could not be written.")


def _fitted(picture: Any) -> NDArray[np.uint8]:
    """The picture, scaled to the size of a tile."""
    import cv2

    height, width = picture.shape[:2]
    scale = min(TILE_WIDTH / width, TILE_HEIGHT / height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    shrunk: Any = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)
    fitted: NDArray[np.uint8] = shrunk
    return fitted
