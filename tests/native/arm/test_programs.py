"""Programs in C and C++ on private boards: what they print, what is said of their mistakes, how they end."""

import numpy as np

from tests.native.arm.conftest import Compile, Run


def softmax(*values: float) -> list[float]:
    powers = np.exp(np.array(values) - max(values))
    return list(powers / powers.sum())


def rows_of(text: str) -> list[list[float]]:
    return [[float(one) for one in line.split()] for line in text.splitlines()]


def test_the_sample_prints_the_row(compiled: Compile, run: Run) -> None:
    answer = run(compiled("softmax.c", "-std=c11"))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert np.allclose(rows_of(answer.stdout), [softmax(0, 1, 2, 3)], atol=2e-7)


def test_the_guides_program_prints_its_rows(compiled: Compile, run: Run) -> None:
    answer = run(compiled("guide.cc", "-std=c++17"))
    assert (answer.returncode, answer.stderr) == (0, "")
    expected = [softmax(0, 1, 2, 3), softmax(3, 2, 1, 0), softmax(-50, 0, 50, 50)]
    assert np.allclose(rows_of(answer.stdout), expected, atol=2e-7)
