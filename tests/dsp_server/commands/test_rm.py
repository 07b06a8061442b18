"""``hbrt rm`` and ``hbrt prune``: what stopped boards have left goes, what runs and what is the user's stays."""

from __future__ import annotations

from tests.shared import Shell


def test_a_stopped_board_is_removed_and_a_running_one_refused(shell: Shell) -> None:
    shell.good("start")
    answer = shell.hbrt("rm", "default")
    assert (answer.returncode, "already running" in answer.stderr) == (2, True), answer
    shell.good("stop")
    assert "Removed board default: " in shell.good("rm", "default")
    assert not (shell.home / "default").exists()
    answer = shell.hbrt("rm", "default")
    assert (answer.returncode, "default" in answer.stderr) == (2, True), answer


def test_prune_removes_all_stopped_boards_and_nothing_else(shell: Shell) -> None:
    for name in ("one", "two"):
        shell.good("start", "--board", name, "--cores", "1")
    shell.good("stop", "--board", "one")
    mine = shell.home / "mine"
    mine.mkdir(mode=0o700)
    (mine / "model-a.onnx").write_text("")
    assert shell.json("prune") == {"home": str(shell.home), "removed": ["one"], "kept": []}
    assert sorted(path.name for path in shell.home.iterdir()) == ["mine", "two"]
    assert "No stopped board" in shell.good("prune")
