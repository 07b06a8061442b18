"""What a line of a dataset may name."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rknn_api.errors import RknnError, RknnStatus
from rknn_api.toolkit.dataset import Wanted, file_stems, samples

REAL = Wanted((1, 3, 4, 5), np.dtype(np.float32))


def written(folder: Path, lines: str) -> Path:
    (folder / "dataset.txt").write_text(lines, encoding="utf-8")
    return folder / "dataset.txt"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: np.save(path, np.full((1, 3, 4, 5), "a")), "is of <U1, but the model's input is of float32"),
        (lambda path: np.save(path, np.zeros((1, 3, 4, 5), complex)), "is of complex128, but"),
        (lambda path: np.save(path, np.zeros((0, 3, 4, 5))), r"has the shape \[0, 3, 4, 5\]"),
        (lambda path: path.with_suffix(".npy").touch(), "cannot be read: EOF"),
        (lambda path: path.with_suffix(".npy").write_bytes(b"PK\3\4 a zip file"), "cannot be read: the magic string"),
        (lambda _path: None, "names one.npy, which is not a file"),
    ],
)
def test_a_file_that_is_no_array_of_numbers_is_refused(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    make(tmp_path / "one")
    with pytest.raises(RknnError, match=why) as caught:
        list(samples(written(tmp_path, "one.npy"), [REAL]))
    assert caught.value.status == RknnStatus.RKNN_ERR_PARAM_INVALID


def test_whole_numbers_are_taken_as_real_ones_and_not_the_other_way(tmp_path: Path) -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(1, 4, 5, 3)
    np.save(tmp_path / "pixels.npy", pixels)
    np.save(tmp_path / "real.npy", pixels.astype(np.float64))
    # As an editor of another system writes it: a mark of the byte order, and two characters at the end of a line.
    dataset = written(tmp_path, "\ufeffpixels.npy\r\nreal.npy\r\n")
    for (found,) in samples(dataset, [REAL]):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, pixels.transpose(0, 3, 1, 2))
    with pytest.raises(RknnError, match="is of float64, but the model's input is of int64"):
        list(samples(dataset, [Wanted((1, 3, 4, 5), np.dtype(np.int64))]))


def test_a_damaged_picture_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(RknnError, match=r"^Line 3 of the dataset .*empty.jpg cannot be read: it is damaged"):
        list(samples(written(tmp_path, "\n\nempty.jpg\n"), [REAL]))


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("one.npy\n\nnone.jpg\n", r"^Line 3 of the dataset .* names none.jpg, which is not a file; a relative path"),
        ("one.npy\nfolder\n", r"^Line 2 of .* names .*folder, which is not a file"),
        ("one.npy\n my one.npy\n", "^Line 2 of .* has 2 files but the model has 1 input; .* spaces counts as several"),
        ("a\0b.npy", "which is not a file"),
    ],
)
def test_a_wrong_line_is_named_before_a_sample_is_read(tmp_path: Path, lines: str, why: str) -> None:
    np.save(tmp_path / "one.npy", np.zeros(REAL.shape))
    np.save(tmp_path / "my one.npy", np.zeros(REAL.shape))
    (tmp_path / "folder").mkdir()
    with pytest.raises(RknnError, match=why):
        next(iter(samples(written(tmp_path, lines), [REAL])))


def test_a_dataset_that_is_no_text_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(REAL.shape))
    with pytest.raises(RknnError, match=r"one.npy is not UTF-8 text; each line must be the path of a picture"):
        next(iter(samples(tmp_path / "one.npy", [REAL])))


def test_no_two_values_have_one_file() -> None:
    assert list(file_stems(["a/b", "a_b", "a b", "c.1", "x" * 5000]).values()) == [
        "a_b",
        "a_b_2",
        "a_b_3",
        "c.1",
        "x" * 100,
    ]
    assert len(set(file_stems(["a_b_2", "a_b", "a/b"]).values())) == 3
