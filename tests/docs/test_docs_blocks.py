"""The runner of pages: it must fail on a page that tells a story."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.each import each
from tools.docs_blocks import PageError, blocks, matches, run_page, section


def run(page: str, directory: Path, timeout_s: float = 10.0) -> list[int]:
    here = directory / "page"
    here.mkdir()
    return [block.line for block in run_page(page, here, os.environ, timeout_s)]


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n"


@each(
    "expected, printed, is_same",
    [
        ("a b\n", "a   b\n", True),
        ("pid ... up\n", "pid 12 up\n", True),
        ("... end", "all that\ncame before the end", True),
        ("a\n...\nb", "a\nb", True),
        ("a", "a b", False),
        ("b", "a b", False),
        ("...", "", True),
        ("1.5 (x)", "1x5 (x)", False),
    ],
)
def test_expected_output_is_compared_as_a_whole(expected: str, printed: str, is_same: bool) -> None:  # noqa: FBT001
    assert matches(expected, printed) is is_same


def test_a_page_runs_in_one_shell(tmp_path: Path) -> None:
    page = (
        fenced("python", "# say.py\nimport os\nprint(os.environ['WORD'], os.getcwd()[-4:])")
        + fenced("bash", "export WORD=hello; mkdir down; cp say.py down; cd down")
        + fenced("bash", "python3 say.py")
        + fenced("text", "hello down")
        + fenced("c", "int main(void) { return 1; }")
    )
    assert run(page, tmp_path) == [7, 10]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (fenced("bash", "false\necho later"), "failed with 1"),
        ("<!-- fails -->\n\n" + fenced("bash", "true"), "succeeded"),
        (fenced("bash", "echo one") + fenced("text", "two"), "the page shows\ntwo"),
        (fenced("bash", "exit 0"), "ended the shell"),
        (fenced("bash", "if"), "syntax error"),
    ],
)
def test_a_page_that_is_wrong_is_refused(page: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(PageError) as refusal:
        run(page, tmp_path)
    assert why in str(refusal.value)


def test_a_block_that_does_not_end_is_ended(tmp_path: Path) -> None:
    page = fenced("bash", "echo $$; sleep 600")
    with pytest.raises(PageError, match="ran longer than") as refusal:
        run(page, tmp_path, 0.5)
    shell = int(str(refusal.value).split()[-1])
    assert not Path(f"/proc/{shell}").exists()


def test_a_section_keeps_its_line_numbers() -> None:
    page = "# One\n\n```bash\na\n```\n\n## Two\n\n```bash\nb\n```\n"
    assert [(block.text, block.line) for block in blocks(section(page, "## Two"))] == [("b\n", 10)]
