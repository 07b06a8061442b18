"""What libhbrt.so and arm_client tell each other: versions, and addresses turned into lines."""

import ctypes
import shutil
from pathlib import Path

import pytest

from arm_client.c_library import connect
from arm_client.c_library.call_sites import CallSites
from hbrt.native.files import library
from hbrt.native.symbolizer import Symbolizer


def test_a_library_of_another_version_is_refused() -> None:
    host = (ctypes.c_uint32 * 64)(99)
    with pytest.raises(ValueError, match=r"a different version of hbrt \(layout 99, not \d+\).*'hbrt cc'"):
        connect(ctypes.addressof(host))


def test_a_place_is_looked_up_once_and_without_information_it_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Ignorant:
        def __init__(self, path: str) -> None:
            assert path == "/some/where/prog+ram"

        def line_of(self, offset: str) -> str:
            asked.append(offset)
            return ""

        def detach_in_child(self) -> None:
            """As of a symbolizer: later tests of this process fork."""

    monkeypatch.setattr("arm_client.c_library.call_sites.Symbolizer", Ignorant)
    sites = CallSites(lambda: b"/some/where/prog+ram+0x12")
    assert [sites(), sites()] == ["prog+ram+0x12"] * 2
    assert asked == ["0x12"]
    assert CallSites(lambda: None)() == ""


@pytest.mark.skipif(
    not any(map(shutil.which, ("llvm-symbolizer", "addr2line"))), reason="neither llvm-symbolizer nor addr2line is here"
)
def test_a_symbolizer_that_has_died_is_left_alone(tmp_path: Path) -> None:
    try:
        file = library("libhbrt.so")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    symbolizer = Symbolizer(str(file))
    symbolizer._process.kill()
    symbolizer._process.wait()
    assert symbolizer.line_of("0x10") == ""
    assert symbolizer.line_of("0x10") == ""
    nothing = Symbolizer(str(tmp_path / "no-such-file"))
    assert nothing.line_of("0x10") == ""
    nothing._end()
