"""A model's calibration dataset: a text file with one sample per line, and a picture or .npy file per input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.findings.text import counted
from hbrt.models.errors import one_line
from rknn_api.errors import RknnError, invalid_parameter
from rknn_api.run.feeds import converts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_STEM = 100  # file systems limit names to 255 bytes
PICTURES = frozenset({".bmp", ".jpeg", ".jpg", ".png"})


class Wanted(NamedTuple):
    """The requirements of a model's input.

    Attributes:
        shape: In the model's layout, which is NCHW for four dimensions.
        dtype: Type of the array to create.
        is_bgr: Whether pictures are converted to BGR instead of RGB.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_bgr: bool = False


def lines_of(dataset: str | Path) -> list[tuple[int, list[Path]]]:
    """The number of each line and the files of its sample.

    A relative path is relative to the dataset's folder, or to the working directory.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: the dataset cannot be read, or is empty.

    Source: RKNN-Toolkit2 API Reference (2.3.2), build, https://github.com/airockchip/rknn-toolkit2
    """
    path = Path(dataset)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise invalid_parameter(f"The dataset {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise invalid_parameter(
            f"The dataset {path} is not UTF-8 text; each line must be the path of a picture or an .npy file."
        ) from None
    lines = [
        (number, [_found(name, path.parent) for name in line.split()])
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise invalid_parameter(f"The dataset {path} has no lines; each must be the path of a picture or an .npy file.")
    return lines


def samples(dataset: str | Path, wanted: Sequence[Wanted]) -> Iterator[list[NDArray[Any]]]:
    """Arrays of each sample, one for each input, in the model's layout.

    Args:
        dataset: The text file.
        wanted: The requirements of each input.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: a line or a file does not fit, and which; raised before the first sample if
            no file has to be read to detect it.
    """
    lines = lines_of(dataset)
    for number, files in lines:
        if len(files) != len(wanted):
            hint = "; a path with spaces counts as several" if len(files) > len(wanted) else ""
            raise invalid_parameter(
                f"Line {number} of the dataset {dataset} has {counted(len(files), 'file')} but the model has "
                f"{counted(len(wanted), 'input')}; write one file for each, separated by spaces{hint}."
            )
        for file in files:
            if not file.is_file():
                raise invalid_parameter(
                    f"Line {number} of the dataset {dataset} names {file}, which is not a file; a relative path is "
                    "below "
                    "the dataset's folder, or below the working directory."
                )
    for number, files in lines:
        try:
            yield [read(file, one) for file, one in zip(files, wanted, strict=True)]
        except RknnError as error:
            raise invalid_parameter(f"Line {number} of the dataset {dataset}: {error.text}") from None


def read(file: Path, wanted: Wanted) -> NDArray[Any]:
    """An array for an input, from a picture, which is resized, or from an .npy file, which must have the right shape.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: the file cannot be read, or does not fit.
    """
    if file.suffix.lower() in {".npy", *PICTURES} and not file.is_file():
        raise invalid_parameter(f"No such file: {file}")
    if file.suffix.lower() == ".npy":
        try:
            with file.open("rb") as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise invalid_parameter(f"The file {file} cannot be read: {one_line(error)}.") from None
        return _fitted(array, wanted, file)
    if file.suffix.lower() in PICTURES:
        return _picture(file, wanted)
    raise invalid_parameter(f"The file {file} is neither a picture ({', '.join(sorted(PICTURES))}) nor an .npy file.")


def file_stems(values: Iterable[str]) -> dict[str, str]:
    """A unique file name for each value, without suffix; special characters become _."""
    found: dict[str, str] = {}
    for value in dict.fromkeys(values):
        stem = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in value)[:_MAX_STEM]
        taken, number = set(found.values()), 2
        found[value] = stem
        while found[value] in taken:
            found[value], number = f"{stem}_{number}", number + 1
    return found


def _found(name: str, folder: Path) -> Path:
    beside = folder / name
    return beside if beside.exists() else Path(name)


def _fitted(array: NDArray[Any], wanted: Wanted, file: Path) -> NDArray[Any]:
    shape = wanted.shape
    if not converts(array.dtype, wanted.dtype):
        raise invalid_parameter(f"The file {file} is of {array.dtype}, but the model's input is of {wanted.dtype}.")
    turned = array.transpose(0, 3, 1, 2) if array.ndim == 4 else array
    for one in (array, turned):
        if one.shape == shape:
            with np.errstate(over="ignore"):  # whoever uses the numbers checks whether they are finite
                return np.ascontiguousarray(one, wanted.dtype).reshape(shape)  # a scalar stays one
    raise invalid_parameter(
        f"The file {file} has the shape {list(array.shape)}, but the model's input has {list(shape)}; save an array "
        "with that shape."
    )


def _picture(file: Path, wanted: Wanted) -> NDArray[Any]:
    import cv2

    if len(wanted.shape) != 4 or wanted.shape[0] != 1 or wanted.shape[1] not in {1, 3}:
        raise invalid_parameter(
            f"The picture {file} does not fit an input of shape {list(wanted.shape)}; a picture has 1 or 3 channels; "
            "save an .npy file for it."
        )
    _, channels, height, width = wanted.shape
    picture = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR)
    if picture is None:
        raise invalid_parameter(f"The picture {file} cannot be read: it is damaged, or has an unknown format.")
    if picture.shape[:2] != (height, width):
        picture = cv2.resize(picture, (width, height))
    pixels = np.asarray(picture).reshape(height, width, channels)
    if channels == 3 and not wanted.is_bgr:
        pixels = pixels[..., ::-1]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], wanted.dtype)
