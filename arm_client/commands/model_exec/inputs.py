"""The inputs of ``hrt_model_exec``: pictures, regions of them, .npy, .bin, .txt files, or random numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from hbrt.dnn_types import hbDNNRoi

if TYPE_CHECKING:
    from arm_client.dnn import Model, Tensor
    from arm_client.dnn.python.runner import Runner

PICTURES = {".jpg", ".jpeg", ".png"}
SUFFIXES = (*sorted(PICTURES), ".npy", ".bin", ".txt")
SEED = 0


@dataclass
class Frame:
    """All inputs of one run of a model.

    Attributes:
        values: An array for each tensor, in order, as for TensorBuffer.put; bytes are the memory's contents.
        shapes: Sizes for each of the model's inputs with data-dependent sizes; None for the others.
        rois: Regions of the pictures, for resizer inputs.
        pictures: Rows and columns of these pictures.
    """

    values: list[NDArray[Any] | bytes] = field(default_factory=list)
    shapes: list[tuple[int, ...] | None] = field(default_factory=list)
    rois: list[hbDNNRoi] = field(default_factory=list)
    pictures: list[tuple[int, int]] = field(default_factory=list)

    def runner(self, model: Model) -> Runner:
        """New tensors that hold the frame."""
        from arm_client.dnn.python.runner import Runner

        runner = Runner(
            model.handle,
            [tensor.spec for tensor in model.inputs],
            [tensor.spec for tensor in model.outputs],
            shapes=self.shapes,
            rois=self.rois,
            pictures=self.pictures,
        )
        try:
            for buffer, value in zip(runner.inputs, self.values, strict=True):
                if isinstance(value, bytes):
                    buffer.put_raw(value)
                else:
                    buffer.put(value)
        except BaseException:
            runner.free()
            raise
        return runner


def frame_of(model: Model, files: str, roi: str, valid_shape: str, *, roi_infer: bool) -> Frame:
    """Build a frame from the flags.

    Args:
        model: The model.
        files: ``--input_file``; random numbers when it is empty.
        roi: ``--roi``.
        valid_shape: ``--input_valid_shape``.
        roi_infer: Whether resizer inputs are wanted.

    Raises:
        click.UsageError: the flags do not fit each other or the model.
        HbrtError, ModelError, OSError: a file does not fit its input, or cannot be read.
    """
    rois = rois_of(roi)
    batches = _batches(model, rois, roi_infer=roi_infer)
    tensors = _elements(model) * batches if roi_infer else list(model.inputs)
    shapes = _shapes_of(model, valid_shape)
    paths = [Path(part.strip()) for part in files.split(",") if part.strip()]
    if paths and len(paths) != len(tensors):
        names = ", ".join(tensor.name for tensor in tensors)
        raise click.UsageError(f"The model takes {len(tensors)} inputs ({names}); --input_file has {len(paths)}.")
    frame = Frame(shapes=shapes, rois=rois)
    rng = np.random.default_rng(SEED)
    for at, tensor in enumerate(tensors):
        index = at % len(model.inputs)
        if is_resizer(tensor):
            if paths:
                picture = _whole(_read_picture(_checked(paths[at], tensor), tensor))
            else:
                picture = _random_picture(rng, rois[len(frame.pictures)])
            frame.pictures.append((picture.shape[0], picture.shape[1]))
            frame.values.append(_encoded(picture, tensor))
            continue
        value = value_of(paths[at], tensor, shapes[index]) if paths else _random(rng, tensor, shapes[index])
        if tensor.spec.is_dynamic and not isinstance(value, bytes):
            shapes[index] = tuple(value.shape)
        frame.values.append(value)
    return frame


def _elements(model: Model) -> list[Tensor]:
    """The inputs for hbDNNRoiInfer: one batch element each."""
    from arm_client.dnn.python.easy import Tensor
    from arm_client.dnn.python.runner import beside_regions

    return [Tensor(beside_regions(tensor.spec)) for tensor in model.inputs]


def _batches(model: Model, rois: list[hbDNNRoi], *, roi_infer: bool) -> int:
    """Number of repetitions of all inputs: one, or the number of regions per resizer input."""
    resizers = sum(map(is_resizer, model.inputs))
    if roi_infer != bool(resizers):
        raise click.UsageError(
            f"The model {model.name} has {'resizer inputs, pass' if resizers else 'no resizer input, leave out'} "
            f"--roi_infer=true."
        )
    if not roi_infer:
        if rois:
            raise click.UsageError("--roi is for models with resizer inputs, with --roi_infer=true.")
        return 1
    if not rois or len(rois) % resizers:
        raise click.UsageError(
            f"The model {model.name} has {resizers} resizer inputs, --roi has {len(rois)} regions: give one for each, "
            f'as in --roi="2,4,123,125;6,8,111,113", or a multiple of that.'
        )
    return len(rois) // resizers


def rois_of(text: str) -> list[hbDNNRoi]:
    """Regions: ``left,top,right,bottom`` with semicolons between them; corners are inclusive.

    Raises:
        click.UsageError: invalid syntax; names the region.
    """
    rois = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        try:
            left, top, right, bottom = (int(number) for number in part.split(","))
        except ValueError:
            raise click.UsageError(
                f"Invalid --roi {part!r}: expected left,top,right,bottom, with ; between regions."
            ) from None
        rois.append(hbDNNRoi(left, top, right, bottom))
    return rois


def is_resizer(tensor: Tensor) -> bool:
    """Whether an input takes a region of a picture."""
    return tensor.spec.image is not None and tensor.spec.image.is_resizer


def _shapes_of(model: Model, text: str) -> list[tuple[int, ...] | None]:
    """``--input_valid_shape``: sizes with commas, inputs with semicolons between them; empty for fixed ones."""
    parts = text.split(";") if text.strip() else [""] * len(model.inputs)
    if len(parts) != len(model.inputs):
        raise click.UsageError(
            f"--input_valid_shape has {len(parts)} shapes, the model {len(model.inputs)} inputs; write "
            f"one for each, separated by ;, and leave it empty for inputs of known size."
        )
    shapes: list[tuple[int, ...] | None] = []
    for part, tensor in zip(parts, model.inputs, strict=True):
        try:
            shapes.append(tuple(int(size) for size in part.split(",")) if part.strip() else None)
        except ValueError:
            raise click.UsageError(
                f"Invalid --input_valid_shape {part!r} of {tensor.name}: expected sizes separated by commas."
            ) from None
    return shapes


def _checked(path: Path, tensor: Tensor) -> Path:
    """An existing file with a suitable suffix.

    Raises:
        click.UsageError: the suffix is not that of a picture (for a region) or of numbers (for a tensor), or there is
            no such file.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(f"{path}: the name must end with one of {', '.join(SUFFIXES)}.")
    if suffix in PICTURES and tensor.spec.image is None:
        raise click.UsageError(
            f"{path} is a picture; {tensor.name} takes {tensor.spec.tensor_type.name}: give .npy, .bin or .txt. If it "
            "is a picture, say so in a file next to the model with its name and the suffix .yaml: "
            "'input_parameters: {input_type_rt: rgb, input_layout_rt: NHWC}'."
        )
    if is_resizer(tensor) and suffix not in PICTURES:
        raise click.UsageError(
            f"{path}: {tensor.name} takes a region of a picture, whose sides must be in the file: give .jpg or .png."
        )
    if not path.is_file():
        raise click.UsageError(f"No such file: {path}")
    return path


def value_of(path: Path, tensor: Tensor, shape: tuple[int, ...] | None = None) -> NDArray[Any] | bytes:
    """A file's value for a tensor, as for ``forward``; bytes are the contents of the tensor's memory.

    Args:
        path: A picture, .npy, .bin or .txt.
        tensor: The tensor.
        shape: Sizes of an input with data-dependent sizes.

    Raises:
        click.UsageError: it does not fit. OSError: it cannot be read.
    """
    suffix = _checked(path, tensor).suffix.lower()
    if suffix in PICTURES:
        once = _encoded(_fitted(_read_picture(path, tensor), *tensor.spec.sides), tensor)
        return np.tile(once, tensor.spec.valid_shape[0])  # each picture of a batch
    if suffix == ".npy":
        values = _loaded(path)
        is_real = np.issubdtype(values.dtype, np.floating)
        return tensor.quantize(values) if is_real and not tensor.spec.image else values
    if suffix == ".bin":
        data = path.read_bytes()
        if tensor.spec.image:
            return np.frombuffer(data, np.uint8)
        if len(data) == tensor.spec.aligned_bytes:
            return data
        return _shaped(path, np.frombuffer(data, np.uint8), tensor, shape)
    try:
        numbers = np.array(path.read_text(encoding="utf-8").replace(",", " ").split(), tensor.properties.dtype)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"{path} is not made of numbers of {tensor.properties.dtype}: {error}.") from None
    return numbers if tensor.spec.image else _shaped(path, numbers, tensor, shape)


def _loaded(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    with path.open("rb") as file:
        try:
            found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise click.UsageError(f"{path} is not an array as numpy.save writes it: {error}") from None
    return found


def _shaped(path: Path, values: NDArray[Any], tensor: Tensor, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Values of a file in the tensor's shape; bytes become its type first."""
    sizes = shape or tensor.spec.valid_shape
    if -1 in sizes:
        raise click.UsageError(f"{tensor.name} has the shape {list(sizes)}; give the sizes with --input_valid_shape.")
    dtype = np.dtype(tensor.properties.dtype)
    wanted = int(np.prod(sizes))
    if path.suffix.lower() == ".txt":
        if values.size < wanted:
            raise click.UsageError(f"{path} holds {values.size} numbers; {tensor.name} takes {wanted}: {list(sizes)}.")
        return values[:wanted].reshape(sizes)  # as on the board: what is beyond is dropped
    if values.size != wanted * dtype.itemsize:
        raise click.UsageError(
            f"{path} has {values.size} bytes; {tensor.name} takes {wanted * dtype.itemsize} ({dtype} of the shape "
            f"{list(sizes)}), or {tensor.spec.aligned_bytes} as laid out in memory."
        )
    return values.view(dtype).reshape(sizes)


def _read_picture(path: Path, tensor: Tensor) -> NDArray[np.uint8]:
    """A file as BGR, (H, W, 3)."""
    from arm_client.commands.run.pictures import need_opencv

    need_opencv()
    import cv2

    found = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if found is None:
        raise click.UsageError(f"{path} is not a picture that OpenCV can read, for {tensor.name}.")
    return np.asarray(found, np.uint8)


def _whole(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture without the last row or column that NV12 has no pair for."""
    return picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2]


def _fitted(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """A picture resized separately in each direction: by area when shrinking, otherwise bilinear."""
    import cv2

    if picture.shape[:2] == (height, width):
        return picture
    shrinks = picture.shape[0] >= height and picture.shape[1] >= width
    resized: Any = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def _encoded(picture: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.uint8]:
    """The bytes of a picture as an image input takes them, rows without padding."""
    from arm_client.dnn.tensors.images import encode

    spec = tensor.spec
    is_video = spec.image is not None and spec.image.video_range
    planes = encode(picture, spec.tensor_type, spec.layout, video_range=is_video)
    return np.concatenate([plane.reshape(-1) for plane in planes])


def _random(rng: np.random.Generator, tensor: Tensor, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Random measurement data: bytes of a picture, any integer of a quantized input, reals in 0..1, otherwise 0 or 1.

    0 and 1 are valid as indices, sizes and truth values, the usual meanings of other integers.
    """
    spec = tensor.spec
    if spec.image:
        return rng.integers(0, 256, spec.aligned_bytes, np.uint8)
    sizes = shape or spec.valid_shape
    if -1 in sizes:
        raise click.UsageError(
            f"{tensor.name} has the shape {list(sizes)}, where the data decides -1: give --input_file, or "
            f"--input_valid_shape for random numbers."
        )
    if spec.quantization is not None:
        from arm_client.dnn.spec.dtypes import LIMITS

        low, high = LIMITS[spec.tensor_type]
        return rng.integers(low, high, sizes, endpoint=True).astype(spec.graph_dtype)
    if np.issubdtype(spec.graph_dtype, np.floating):
        return rng.random(sizes).astype(spec.graph_dtype)
    return rng.integers(0, 2, sizes).astype(spec.graph_dtype)


def _random_picture(rng: np.random.Generator, roi: hbDNNRoi) -> NDArray[np.uint8]:
    """A picture just large enough for a region."""
    height, width = (max(side, 1) // 2 * 2 + 2 for side in (roi.bottom, roi.right))
    return rng.integers(0, 256, (height, width, 3), np.uint8)
