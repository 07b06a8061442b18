"""Kernels: compiled when numba is there, kept on disk where only we may write, None otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hbrt import jit
from hbrt.jit import Kernel, cache_directory, numba_module
from tests.limits import PATIENCE_S

needs_numba = pytest.mark.skipif(numba_module() is None, reason="numba is not installed (extra pointcloud)")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    numba_module.cache_clear()
    yield
    monkeypatch.undo()
    numba_module.cache_clear()


def triple(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    for i in range(values.shape[0]):
        values[i] *= 3


@needs_numba
def test_the_compiled_loop_computes_what_the_loop_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = Kernel(triple)
    compiled = kernel.compiled()
    assert compiled is not None
    assert compiled is kernel.compiled()
    by_loop, by_machine = np.arange(5), np.arange(5)
    kernel.loop(by_loop)
    compiled(by_machine)
    assert by_machine.tolist() == by_loop.tolist() == [0, 3, 6, 9, 12]
    assert list((tmp_path / "hbrt" / "kernels").rglob("*triple*.nbc"))
    assert list(Path(__file__).parent.rglob("*triple*.nb*")) == []


@needs_numba
def test_the_programs_own_functions_stay_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = numba_module().config.CACHE_DIR
    Kernel(triple).compiled()
    assert before == numba_module().config.CACHE_DIR


COMPILES = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import loops
loops.kernel.compiled()(np.arange(3))
print(sum(loops.kernel.compiled().stats.cache_hits.values()), sum(loops.kernel.compiled().stats.cache_misses.values()))
"""
LOOPS = """
from hbrt.jit import Kernel

@Kernel
def kernel(values):
    for i in range(values.shape[0]):
        values[i] += 1
"""


@pytest.mark.long
@needs_numba
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS, encoding="utf-8")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILES, str(tmp_path)]
    runs = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        for _ in range(2)
    ]
    assert [run.stdout.split() for run in runs] == [["0", "1"], ["1", "0"]]


def test_without_numba_there_is_no_compiled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(jit, "import_module", refuse)
    assert Kernel(triple).compiled() is None


@needs_numba
def test_numbas_own_setting_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_module().config, "DISABLE_JIT", 1)
    numba_module.cache_clear()
    assert Kernel(triple).compiled() is None


def test_the_directory_is_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_directory() == tmp_path / "cache" / "hbrt" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert cache_directory() == tmp_path / "me" / ".cache" / "hbrt" / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_directory() == tmp_path / "numba"


def test_a_home_that_cannot_be_written_falls_back_to_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cache_directory() == tmp_path / f"hbrt-{os.getuid()}-kernels"
    assert (tmp_path / f"hbrt-{os.getuid()}-kernels").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["open", "link", "file"])
def test_a_directory_that_others_could_have_filled_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / f"hbrt-{os.getuid()}-kernels"
    if damage == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777)
    assert cache_directory() is None
    kernel = Kernel(triple)
    if numba_module() is not None:
        compiled = kernel.compiled()
        assert compiled is not None
        values = np.arange(3)
        compiled(values)  # for this process alone
        assert values.tolist() == [0, 3, 6]


@Kernel
def twice(value: int) -> int:
    return 2 * value


def quadruple(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    for i in range(values.shape[0]):
        values[i] = twice(twice(values[i]))


@needs_numba
def test_a_kernel_may_call_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = Kernel(quadruple).compiled()
    assert compiled is not None
    by_loop, by_machine = np.arange(3), np.arange(3)
    quadruple(by_loop)
    compiled(by_machine)
    assert by_machine.tolist() == by_loop.tolist() == [0, 4, 8]
    assert list((tmp_path / "hbrt" / "kernels").rglob("*quadruple*.nbc"))
