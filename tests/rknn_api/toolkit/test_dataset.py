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
        (lambda path: np.save(path, np.full((1, 3, 4, 5), "a")), "is of <U1, and the model's input of float32"),
        (lambda path: np.save(path, np.zeros((1, 3, 4, 5), complex)), "is of complex128, and"),
        (lambda path: np.save(path, np.zeros((0, 3, 4, 5))), r"has the shape \[0, 3, 4, 5\]"),
        (lambda path: path.with_suffix(".npy").touch(), "cannot be read: EOF"),
        (lambda path: path.with_suffix(".npy").write_bytes(b"PK\3\4 a zip file"), "cannot be read: the magic string"),
        (lambda _path: None, "cannot be read: .*No such file"),
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
    with pytest.raises(RknnError, match="is of float64, and the model's input of int64"):
        list(samples(dataset, [Wanted((1, 3, 4, 5), np.dtype(np.int64))]))


def test_a_picture_that_is_not_there_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    for name, why in (("none.jpg", "is not there"), ("empty.jpg", "it is damaged, or of another kind")):
        with pytest.raises(RknnError, match=why):
            list(samples(written(tmp_path, name), [REAL]))


def test_no_two_values_have_one_file() -> None:
    assert list(file_stems(["a/b", "a_b", "a b", "c.1", "x" * 5000]).values()) == [
        "a_b",
        "a_b_2",
        "a_b_3",
        "c.1",
        "x" * 100,
    ]
    assert len(set(file_stems(["a_b_2", "a_b", "a/b"]).values())) == 3
