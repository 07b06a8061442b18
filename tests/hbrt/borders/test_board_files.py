"""board_files: what a program finds that this machine has not."""

import builtins
import io
import os
import platform
from pathlib import Path

import pytest

from hbrt.borders import board_files


def test_files_of_a_board_are_found_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((builtins, "open"), (io, "open"), (os, "listdir"), (os.path, "exists"), (os.path, "isfile")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setattr(platform, "machine", platform.machine)
    monkeypatch.setattr(board_files, "_shown", {})
    own = platform.machine()
    (tmp_path / "own").write_text("own")
    paths = [str(tmp_path / name) for name in ("compatible", "video0", "own")]
    assert board_files.show(dict(zip(paths, ("chip", None, "other"), strict=True)), machine="m68k") == paths[:2]
    assert [Path(one).read_text() for one in (paths[0], paths[2])] == ["chip", "own"]
    assert Path(paths[0]).read_bytes() == b"chip"
    assert sorted(os.listdir(str(tmp_path))) == ["compatible", "own", "video0"]  # noqa: PTH208 - what programs call
    assert [os.path.exists(one) for one in (paths[1], str(tmp_path / "none"))] == [True, False]  # noqa: PTH110
    assert [os.path.isfile(one) for one in paths] == [True, False, True]  # noqa: PTH113
    with pytest.raises(FileNotFoundError):
        Path(paths[1]).read_text()  # a device is not read
    names: dict[str, object] = {"platform": platform}
    exec(compile("machine = platform.machine()", "program.py", "exec"), names)  # noqa: S102 - a program's file
    assert names["machine"] == "m68k"
    assert os.uname().machine == own
