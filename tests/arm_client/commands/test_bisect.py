"""``hbrt bisect``: the commit since which a command fails, found next to the work tree, which stays as it is."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.shared import Shell

CHECK = ("sh", "-c", "test $(cat number) -lt 3")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five commits, whose file holds 0 to 4; the checked-out folder is one below the top."""
    for key, value in (("NAME", "n"), ("EMAIL", "n@example.org")):
        monkeypatch.setenv(f"GIT_AUTHOR_{key}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{key}", value)
    inside = tmp_path / "dsp"
    inside.mkdir()
    _git(tmp_path, "init", "-q")
    for number in range(5):
        (inside / "number").write_text(str(number))
        _git(tmp_path, "add", "-A")
        _git(tmp_path, "commit", "-qm", f"number {number}")
    return inside


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_first_commit_that_fails_is_named_and_nothing_is_left(repository: Path, shell: Shell) -> None:
    shell.cwd = repository
    (repository / "number").write_text("not committed")
    told = json.loads(shell.good("bisect", "--json", "HEAD~4", "--", *CHECK))
    assert (told["subject"], told["files"]) == ("number 3", ["dsp/number"])
    assert (repository / "number").read_text() == "not committed"
    assert len(_git(repository, "worktree", "list").splitlines()) == 1
    code, said = shell.refused("bisect", "HEAD~4", "--bad", "HEAD~2", "--", *CHECK)
    assert (code, "must fail for HEAD~2: it exited with code 0" in said) == (2, True)
    code, said = shell.refused("bisect", "HEAD~1", "--", *CHECK)
    assert (code, "must succeed for HEAD~1: it exited with code 1" in said) == (2, True)
    code, said = shell.refused("bisect", "none", "--", *CHECK)
    assert (code, "git rev-parse failed" in said) == (2, True)
