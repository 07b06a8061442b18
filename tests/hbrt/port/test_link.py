"""hbrt port --link: the targets of a tree's CMake projects, as CMake builds them."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from hbrt.native.files import NotBuiltError, library
from hbrt.port.command import command
from hbrt.port.link import _by_depth, _reason
from tests.each import each

TREE = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.5)
set(CMAKE_C_COMPILER no-such-board-gcc)
project(one C)
message("")
find_package(NoSuchPackage REQUIRED core)
if(NOT NoSuchPackage_FOUND)
  message(FATAL_ERROR "no package")
endif()
option(WITH_KIND "" ON)
if(WITH_KIND AND CMAKE_VERSION VERSION_GREATER 3.4)
  set(KIND 2)
endif()
aux_source_directory(lib PARTS)
add_library(parts STATIC ${PARTS})
target_compile_definitions(parts PUBLIC KIND=${KIND})
foreach(name good bare lost)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} parts)
endforeach()
target_link_libraries(good dnn)
target_link_libraries(lost no_such_library)
""",
    "lib/part.c": "#if KIND != 2\n#error kind\n#endif\nint part(void) { return KIND; }\n",
    "good.c": '#include "dnn/hb_dnn.h"\nint part(void);\nint main(void) { return !hbDNNGetVersion() + part(); }\n',
    "bare.c": "int no_such_function(void);\nint main(void) { return no_such_function(); }\n",
    "lost.c": "int main(void) { return 0; }\n",
    "below/CMakeLists.txt": "project(two)\nadd_executable(two two.c)\n",
    "below/two.c": '#include "hb_dnn.h"\nint main(void) { return hbDNNRelease(0); }\n#error of two\n',
    "broken/CMakeLists.txt": "project(three C)\nno_such_command()\n",
    "broken/three.c": '#include "hb_dnn.h"\nint three;\n',
}


@pytest.mark.long
def test_targets_link_or_say_why_not(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("CMake is not installed.")
    try:
        library("libhbrt.so")
    except NotBuiltError as error:
        pytest.skip(str(error))
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    arguments = [str(tmp_path), ".", "--link"]
    answer = CliRunner().invoke(command, [*arguments, "--json"])
    assert answer.exit_code == 1, answer.output
    document = json.loads(answer.stdout)
    assert document["targets"] == {
        "bare": "undefined symbols: no_such_function",
        "good": "",
        "lost": "missing library: no_such_library",
        "parts": "",
        "below/two": "#error of two",
    }
    assert list(document["refused"]) == ["broken/CMakeLists.txt"]
    assert "no_such_command" in document["refused"]["broken/CMakeLists.txt"]
    assert list(document["failed"]) == ["below/two.c"]
    assert "CMakeFiles" not in {path.name for path in tmp_path.rglob("*")}
    assert "2 of 5 CMake targets link.\n" in (output := CliRunner().invoke(command, arguments).output)
    assert "  lost: missing library: no_such_library\n" in output


def test_what_a_linker_and_make_print_is_told_in_short() -> None:
    for messages, reason in {
        "ld: cannot find -lone: No such file\nld: cannot find -ltwo\nerror: ld": "missing library: one, two",
        "gmake: *** No rule to make target 'lib/liba.so', needed by 'b'.  Stop.": "missing library: lib/liba.so",
        "undefined reference to `f'\nundefined reference to `g'\nreference to `f'": "undefined symbols: f, g",
        "a.c:1:2: error: no kind\na.c:2:2: error: other\n": "no kind",
        'CMake Error at a:2 (two):\n  Unknown CMake command\n  "two".\n\nmore': 'Unknown CMake command "two".',
        "\nKilled\n": "Killed",
        "": "no message",
    }.items():
        assert _reason(messages) == reason


@each(
    "folders, levels",
    [
        (["a/b", "c", "a", "a/b/d"], [["a", "c"], ["a/b"], ["a/b/d"]]),
        ([".", "a", "ab"], [["."], ["a", "ab"]]),
        ([], []),
    ],
)
def test_projects_are_configured_from_the_top(folders: list[str], levels: list[list[str]]) -> None:
    assert list(_by_depth(folders)) == levels
