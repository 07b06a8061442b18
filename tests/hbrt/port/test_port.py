"""hbrt port: what it finds in a tree, how the tree builds, where to begin, and its exit code."""

import json
import platform
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from hbrt.native.files import NotBuiltError, library
from hbrt.port.build import _fastrpc_headers, _has_hexagon
from hbrt.port.build_files import above, read_build_files
from hbrt.port.command import command
from hbrt.port.headers import package_flags
from hbrt.port.scan import scan
from tests.each import each


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/main.cc": '#include "dnn/hb_dnn.h"\n#include "own.h"\nint main() { return hbDNNRelease(0) + OWN; }\n',
        "inc/own.h": "#define OWN 1\n#define HB_DNN_OWN 2\n// hbDNNOnlyInAComment\n",
        "CMakeLists.txt": "target_link_libraries(main dnn hbucp opencv_world ${OpenCV_LIBS} pthread) # x264\n",
        "run.py": "import numpy\nimport helper\nfrom hobot_dnn import pyeasy_dnn\nimport no_such_module.part\n",
        "helper.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    try:
        library("libhbrt.so")
    except NotBuiltError as error:
        pytest.skip(str(error))
    return tmp_path


def test_a_tree_is_read(tree: Path) -> None:
    found = scan(tree)
    assert ([one.path for one in found.units], found.works) == (["src/main.cc"], ["hbDNNRelease", "hobot_dnn"])
    assert (found.missing, found.headers, found.libraries) == ([], [], ["opencv_world"])
    assert found.modules == ["no_such_module.part"]


def test_python_names_of_a_vendor_that_are_not_here_are_missing(tree: Path) -> None:
    text = "from hobot_vio import libsrcampy as cam, gone\ncam.Camera()\ncam.Radar()\nimport helper\nhelper.any()\n"
    text += "try:\n    import no_such_choice\nexcept ImportError:\n    import numpy\n"
    text += "try:\n    from hobot_vio import no_choice\nexcept ImportError:\n    pass\n"
    (tree / "run.py").write_text(text)
    found = scan(tree)
    assert (found.missing, found.modules) == (["hobot_vio.gone", "hobot_vio.libsrcampy.Radar"], [])


def test_what_objects_of_a_vendor_have_not_is_missing(tree: Path) -> None:
    text = """from hobot_vio import libsrcampy as cam
class Eye:
    def __init__(self, given):
        self.camera = cam.Camera()
        self.given = given
        self.given.any(x=1)
camera, other = cam.Camera(), cam.Camera()
shown = cam.Display()
mixed = cam.Display()
mixed = open("file")
shown.display(0, width=1, depth=2)
shown.display(0, **{"any": 1})
shown.take(None)
shown.hide()
shown._sizes
shown.own = 1
mixed.any(x=1)
Eye(1).camera.any()
def look(eye):
    eye.camera.any()
    return cam.Camera(lens=1)
def see(self):
    self.camera.zoom(2)
from pyCauchyKesai import IONArrayDesc
told = IONArrayDesc(None, [1])
told.shape
try:
    shown.choice()
except AttributeError:
    pass
"""
    (tree / "run.py").write_text(text)
    name = "hobot_vio.libsrcampy"
    expected = [
        f"{name}.Camera(lens=)",
        f"{name}.Camera.zoom",
        f"{name}.Display.display(depth=)",
        f"{name}.Display.hide",
    ]
    assert scan(tree).missing == expected


@each("caught", ["", " Exception", " (OSError, BaseException) as error"])
def test_what_works_without_an_attribute_is_not_missing(tree: Path, caught: str) -> None:
    text = f"""from hobot_vio import libsrcampy as cam
camera = cam.Camera()
camera.label = "front"
print(camera.label)
camera.get_img = print
camera.get_img(end="")
if hasattr(camera, "zoom") and getattr(camera, "focus", None):
    camera.zoom(camera.focus)
try:
    camera.choice(cam.Camera(lens=1))
except{caught}:
    camera.gone()
"""
    (tree / "run.py").write_text(text)
    assert scan(tree).missing == ["hobot_vio.libsrcampy.Camera.gone"]


def test_a_tree_below_a_folder_named_build_is_read_and_finds_every_header_of_the_compiler(tree: Path) -> None:
    below = tree / "build" / "demo"
    below.mkdir(parents=True)
    (below / "main.c").write_text('#include "rga/im2d.h"\n#include "im2d.h"\n#include "hb_ucp.h"\n#include "gone.h"\n')
    assert [one.path for one in scan(tree).units] == ["src/main.cc"]
    found = scan(below)
    assert ([one.path for one in found.units], found.headers) == (["main.c"], ["gone.h"])


def test_what_is_missing_is_named_and_fails(tree: Path) -> None:
    (tree / "src" / "more.c").write_text('#include "vio/camera.h"\nint more(void) { return hbDNNTeleport(); }\n')
    answer = CliRunner().invoke(command, [str(tree)])
    assert answer.exit_code == 1
    assert "1 of 2 C, C++ and IDL files build as they are." in answer.output
    assert "src/more.c: vio/camera.h: No such file or directory" in answer.output
    assert "Not here, of the vendors' APIs: hbDNNTeleport" in answer.output
    assert "Where to begin: install what vio/camera.h comes with" in answer.output
    document = json.loads(CliRunner().invoke(command, [str(tree), "--json"]).output)
    assert (document["missing"], list(document["failed"])) == (["hbDNNTeleport"], ["src/more.c"])


def test_a_source_that_is_not_utf_8_is_compiled(tree: Path) -> None:
    (tree / "src" / "main.cc").write_bytes(b'#include "hb_dnn.h"\nint main() { return "\xc9"; }\n')
    answer = CliRunner().invoke(command, [str(tree), "--json"])
    assert answer.exit_code == 1, answer.output
    assert "const char" in json.loads(answer.stdout)["failed"]["src/main.cc"]


def test_a_header_that_is_named_with_its_library_s_folder_finds_others_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed.")
    for name, text in {
        "include/own9/part/a.h": "",
        "include/alone/part/a.h": "",
        "own9.pc": "Name: own9\nDescription: one\nVersion: 9\nCflags: -I/far/own9\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("hbrt.port.headers._USR", tmp_path)
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    assert package_flags("own9/part/a.h") == ("-I/far/own9",)
    assert package_flags("alone/part/a.h") == ()


def test_a_tree_that_builds_is_good(tree: Path) -> None:
    (tree / "run.py").unlink()
    answer = CliRunner().invoke(command, [str(tree)])
    assert (answer.exit_code, "Where to begin: run it" in answer.output) == (0, True), answer.output


def test_a_tree_without_a_vendor_s_api_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return none; }\n")
    answer = CliRunner().invoke(command, [str(tmp_path)])
    assert (answer.exit_code, answer.output) == (0, "No file here uses a vendor's API; nothing was compiled.\n")


def test_headers_are_no_units_and_do_not_stand_before_the_system_s(tree: Path) -> None:
    (tree / "json").mkdir()
    (tree / "json" / "features.h").write_text("#include <string>\n")  # the C library's headers include <features.h>
    (tree / "inc" / "parts.hpp").write_text("template <class T> struct Part : Unknown<T> {};\n")
    answer = CliRunner().invoke(command, [str(tree), "--json"])
    document = json.loads(answer.stdout)
    assert (document["units"], document["failed"]) == (["src/main.cc"], {})


def test_a_tree_s_own_names_that_look_like_a_vendor_s_are_not_missing(tree: Path) -> None:
    (tree / "inc" / "own.h").write_text(
        "#define OWN 1\nenum { HB_DNN_OWN, HB_DNN_OTHER = 3 };\ntypedef struct { int rknn_count; } one;\n"
        "static int of(int *rknn_ctx) { return *rknn_ctx + HB_DNN_OTHER; }\n"
    )
    assert scan(tree).missing == []


def test_names_in_expressions_are_not_the_tree_s_own(tree: Path) -> None:
    (tree / "src" / "main.cc").write_text(
        "int of(int flags, int *rknn_ctx) {\n  if (flags && RKNN_FLAG_LATER) return flags & RKNN_FLAG_NEWEST;\n"
        "  return flags * RKNN_MAX_LATER;\n}\nenum { OWN_KIND = RKNN_KIND_LATER };\n"
    )
    assert scan(tree).missing == ["RKNN_FLAG_LATER", "RKNN_FLAG_NEWEST", "RKNN_KIND_LATER", "RKNN_MAX_LATER"]


def test_a_tree_that_includes_a_vendor_s_header_alone_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text('#include "remote.h"\nint main(void) { return no_such_thing; }\n')
    (tmp_path / "run.py").write_text("import no_such_module\n")
    answer = CliRunner().invoke(command, [str(tmp_path)])
    assert (answer.exit_code, "main.c: " in answer.output) == (1, True), answer.output


def test_a_tree_s_copy_of_a_vendor_s_header_and_its_own_functions_are_not_missing(tree: Path) -> None:
    (tree / "inc" / "rknn_api.h").write_text("int rknn_teleport(int context);\nint rknn_fly(int context);\n")
    (tree / "src" / "more.c").write_text(
        "void *rknn_process(void *given) { return given; }\nint main(void) { return rknn_fly(!rknn_process(0)); }\n"
    )
    assert scan(tree).missing == ["rknn_fly"]


def test_units_are_compiled_with_what_cmake_defines_and_the_nearest_headers(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "one/src/main.c": '#include "kind.h"\n#include "base/part.h"\n#include "other.h"\n'
        "int main(void) { return ONE + TWO + KIND + PART - OTHER; }\n",
        "one/parts/kind/inc/kind.h": "#ifdef ONE\n#define KIND 1\n#endif\n",
        "one/lib/base/part.h": "#define PART 1\n",
        "one/CMakeLists.txt": 'add_definitions(-DONE=1 -fno-rtti "-DFOUR -DFIVE" -DSIX="net")\n'
        "target_compile_definitions(main PRIVATE TWO=2)\n"
        "if(ANDROID)\n  add_definitions(-DTHREE)\nendif()\n# add_definitions(-DSEVEN)\n",
        "another/inc/kind.h": "#error another program's\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (given := tmp_path_factory.mktemp("given")).joinpath("other.h").write_text("#define OTHER 4\n")
    monkeypatch.setenv("CPATH", str(given))
    document = json.loads(CliRunner().invoke(command, [str(tree), "one", "--json"]).stdout)
    assert (document["units"], document["failed"], document["headers"]) == (["one/src/main.c"], {}, [])
    (main,) = scan(tree, ("one",)).units
    assert main.given[0].macros == ["FIVE", "FOUR", "ONE=1", 'SIX="net"', "TWO=2"]


def test_build_files_give_folders_macros_and_standards() -> None:
    root = "project(a)\nset(LIBS ${CMAKE_SOURCE_DIR}/lib)\nset(CMAKE_CXX_STANDARD 14)\nset(CMAKE_BUILD_TYPE Release)\n"
    below = 'include_directories(../inc ${LIBS}/one "${PROJECT_SOURCE_DIR}/two" ${GONE}/x /usr/include '
    below += "${CMAKE_SYSTEM_NAME})\n"
    below += "set(MORE a)\n" + 'set(MORE "${MORE} ${MORE}")\n' * 40
    make = "INC = src\nCFLAGS += -I$(INC)/a -I../up -std=c99 -DONE\nifdef X\nCFLAGS += -DTWO\nendif\n"
    texts = {"CMakeLists.txt": root, "a.mk": "F += -DFAR\n"}
    read = read_build_files({**texts, "sub/CMakeLists.txt": below, "sub/Makefile": make})
    assert [one.folders for one in above(read, "sub/src/main.cc")] == [
        ["inc", "lib/one", "two", "/usr/include", "sub/Linux"],
        ["sub/src/a", "up"],
        [],
        [],
    ]
    assert [one.macros for one in above(read, "sub/main.cc")] == [[], ["ONE"], ["NDEBUG"], []]
    assert [one.standards for one in above(read, "sub/main.cc")] == [{}, {"": "c99"}, {"++": "gnu++14"}, {}]


def test_a_macro_of_some_recipes_of_a_makefile_is_a_choice() -> None:
    rules = "a.o: a.c\n\t$(CC) -DBITS=32 -DALL -c a.c\nb.o: b.c\n\t$(CC) -DBITS=64 -DALL \\\n\t-c b.c\n\techo\n"
    (given,) = read_build_files({"Makefile": f"CFLAGS = -DFLAG\n{rules}"}).values()
    assert (given.macros, given.choices) == (["ALL", "FLAG"], ["BITS=32", "BITS=64"])
    (given,) = read_build_files({"Makefile": f"{rules}c.o: c.c\n\t$(CC) $(OWN) -c c.c\nOWN = -DOWN\n"}).values()
    assert (given.macros, given.choices) == ([], ["ALL", "BITS=32", "BITS=64", "OWN"])


def test_a_unit_searches_the_folders_that_its_includes_need(tree: Path) -> None:
    for name, text in {
        "one/src/main.c": '#include "../inc/a.h"\n#include <part/b.h>\n#include "c.h"\n#include "hb_dnn.h"\n',
        "one/inc/a.h": '#include "d.h"\n#include "e.h"\n',
        "one/lib/part/b.h": "",
        "two/inc/c.h": "#error of another program\n",
        "one/third/c.h": "",
        "one/chip/e.h": "",
        "one/src/chip/e.h": "",
        "one/CMakeLists.txt": "include_directories(third chip)\ninclude_directories(src/chip)\n",
        "one/inc/d.h": "",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (unit,) = scan(tree, ("one/src/main.c",)).units
    assert unit.searched.folders == {"one/lib", "one/third", "one/src/chip"}
    assert unit.searched.others == {"hb_dnn.h"}
    with pytest.raises(FileNotFoundError, match="to compile"):
        scan(tree, ("three",))


def test_a_unit_that_includes_the_trees_copy_of_a_vendors_header_is_a_user(tree: Path) -> None:
    for name, text in {"include/im2d.h": "", "CMakeLists.txt": "include_directories(include)\n"}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "one" / "turn.c").parent.mkdir()
    (tree / "one" / "turn.c").write_text('#include "im2d.h"\n')
    found = scan(tree)
    assert "one/turn.c" in {unit.path for unit in found.units}
    assert "im2d.h" in found.vendor_headers


def test_names_of_the_2d_engine_count(tree: Path) -> None:
    (tree / "inc" / "im2d_expand.h").write_text("int importbuffer_GraphicBuffer(void *one);\n")
    (tree / "src" / "turn.cc").write_text(
        '#include "RgaApi.h"\n#include "im2d_expand.h"\n#include "im2d.hpp"\n'
        "int imown(int one) { return one; }\nint turn(void) {\n"
        "  auto one = wrapbuffer_virtualaddr(nullptr, 2, 2, RK_FORMAT_RGB_888);\n  imread(one);  // imcrop(one)\n"
        "  return imown(1) + imresize(one, one) + c_RkRgaInit();\n}\n"
    )
    found = scan(tree, ("src/turn.cc",))
    assert [name for name in found.works if name != "hobot_dnn"] == [
        "c_RkRgaInit", "imresize", "wrapbuffer_virtualaddr",
    ]  # fmt: skip
    assert not found.missing


def test_a_unit_for_another_board_builds_with_the_macro_of_its_condition(tree: Path) -> None:
    build = (
        "if(SOC STREQUAL other)\n  add_definitions(-DOTHER)\nendif()\nbuildtarget(NAME two SRCS two.cc DEFS TWO FOUR)\n"
    )
    (tree / "CMakeLists.txt").write_text(build)
    for name in ("OTHER", "TWO", "THREE"):
        (tree / "src" / f"{name}.cc").write_text(f"#ifndef {name}\n#error not {name}\n#endif\n")
    document = json.loads(CliRunner().invoke(command, [str(tree), "--json"]).stdout)
    assert document["failed"] == {"src/THREE.cc": "#error not THREE"}
    assert document["macros"] == {"src/OTHER.cc": "OTHER", "src/TWO.cc": "TWO"}
    assert "src/TWO.cc builds only with -DTWO." in CliRunner().invoke(command, [str(tree)]).output


def test_what_a_header_has_only_for_the_board_is_found(tree: Path) -> None:
    if platform.machine() == "aarch64":
        pytest.skip("the compiler defines the macro here")
    (tree / "inc" / "drm.h").write_text("#ifdef __aarch64__\nint of_board(void);\n#endif\n")
    texts = {"a": "return of_board()", "b": 'asm("ldp x0, x1, [sp]"); return of_board()', "c": "return none()"}
    for name, text in texts.items():
        (tree / "src" / f"{name}.cc").write_text(f'#include "drm.h"\nint use_{name}() {{ {text}; }}\n')
    document = json.loads(CliRunner().invoke(command, [str(tree), "--json"]).stdout)
    assert document["macros"] == {"src/a.cc": "__aarch64__"}
    assert sorted(document["failed"]) == ["src/b.cc", "src/c.cc"]


def test_units_beside_a_vendor_s_user_are_compiled_and_others_are_not(tree: Path) -> None:
    for name in ("src/helper.cc", "far/any.cc"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("int any;\n")
    assert [one.path for one in scan(tree).units] == ["src/helper.cc", "src/main.cc"]


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No guest is installed, but a compiler for Hexagon code is."""
    for function, nothing in {"_entries": lambda _: {}, "native_folders": list}.items():
        monkeypatch.setattr(f"hbrt.borders.guests.{function}", nothing)
    monkeypatch.setattr("hbrt.port.build.hexagon_compiler", lambda *_: ["cc"])
    for cached in (_has_hexagon, _fastrpc_headers):
        cached.cache_clear()
    yield
    for cached in (_has_hexagon, _fastrpc_headers):
        cached.cache_clear()


def test_the_guest_of_a_python_module_is_where_to_begin(
    tree: Path, core_alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del core_alone
    (tree / "run.py").write_text("from rknnlite.api import RKNNLite\n")
    monkeypatch.setattr("hbrt.port.scan.find_spec", lambda _: None)
    answer = CliRunner().invoke(command, [str(tree)])
    assert "Where to begin: rknnlite.api needs hbrt-rknn, which is " in answer.output


@each(
    "text, guest",
    [
        ('#include "rknn_api.h"\nint main(void) { return rknn_destroy(0); }\n', "rknn_api.h needs hbrt-rknn"),
        ('#include "rga/im2d.h"\nint main(void) { return 0; }\n', "im2d.h needs hbrt-rknn"),
        ('#include "remote.h"\n#include "HAP_farf.h"\nint main(void) { return 0; }\n', "HAP_farf.h needs hbrt-fastrpc"),
    ],
)
def test_a_guest_that_is_not_installed_is_where_to_begin(tree: Path, core_alone: None, text: str, guest: str) -> None:
    del core_alone
    (tree / "src" / "more.c").write_text(text)
    answer = CliRunner().invoke(command, [str(tree), "src/more.c"])
    assert answer.exit_code == 1, answer.output
    assert f"Where to begin: {guest}, which is " in answer.output


def test_a_cmakelists_has_what_the_files_it_includes_give() -> None:
    texts = {
        "demo/CMakeLists.txt": "set(UTILS ../utils)\ninclude(GNUInstallDirs)\ninclude(${UTILS}/CMakeLists.txt)\n",
        "utils/CMakeLists.txt": 'include("${CMAKE_CURRENT_LIST_DIR}/more.cmake")\ninclude(../utils/CMakeLists.txt)\n',
        "utils/more.cmake": "add_definitions(-DMORE)\ninclude_directories(${CMAKE_CURRENT_LIST_DIR}/include ../own)\n",
    }
    read = read_build_files(texts)
    assert (read["demo/CMakeLists.txt"].macros, read["demo/CMakeLists.txt"].folders) == (
        ["MORE"],
        ["utils/include", "own"],
    )
    assert "utils/more.cmake" not in read


def test_an_idl_file_of_types_alone_is_a_unit_if_it_is_named(tree: Path) -> None:
    (tree / "types.idl").write_text("typedef sequence<octet> bytes;\n")
    document = json.loads(CliRunner().invoke(command, [str(tree), "types.idl", "--json"]).stdout)
    assert (document["units"], document["failed"]) == (["types.idl"], {})
    assert [unit.path for unit in scan(tree, (".",)).units] == ["src/main.cc"]


def test_a_path_that_begins_like_an_option_is_a_file(tree: Path) -> None:
    (tree / "-O7.cc").write_text('#include "hb_dnn.h"\nint any;\n')
    answer = CliRunner().invoke(command, ["--json", "--", str(tree), "-O7.cc"])
    document = json.loads(answer.stdout)
    assert (document["units"], document["failed"]) == (["-O7.cc"], {})


def test_a_compilation_that_does_not_end_is_killed_and_has_failed(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path_factory.mktemp("compiler") / "slow"
    slow.write_text("#!/bin/sh\nsleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CXX", str(slow))
    monkeypatch.setattr("hbrt.port.build.TIMEOUT_S", 0.2)
    document = json.loads(CliRunner().invoke(command, [str(tree), "--json"]).stdout)
    assert document["failed"] == {"src/main.cc": "did not end within 0.2 s"}


@pytest.mark.long
@pytest.mark.skipif(find_spec("ziglang") is None, reason="no compiler for Hexagon code")
def test_interfaces_and_hexagon_code_build(tmp_path: Path) -> None:
    for name, text in {
        "good.idl": "interface good : remote_handle64 { long f(in sequence<octet> x, rout long y); };\n",
        "bad.idl": "interface bad { long f(in union x); };\n",
        "host.c": '#include "good.h"\nint main(void) { return good_open("", 0); }\n',
        "dsp/imp.c": '#include "HAP_farf.h"\n#include "good.h"\nHVX_Vector of(int x) { return Q6_V_vsplat_R(x); }\n',
        "dsp/more.c": 'int more(void) { __asm__("{ r0 = #1 }"); return no_such; }\n',
        "dsp/code.S": "f: { r1:0 = memd(r0) }\n jumpr r31\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    imp = tmp_path / "dsp" / "imp.c"
    imp.write_text("#include <hexagon_types.h>\n#include <hexagon_protos.h>\n" + imp.read_text())
    document = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).stdout)
    assert document["units"] == ["bad.idl", "dsp/code.S", "dsp/imp.c", "dsp/more.c", "good.idl", "host.c"]
    assert set(document["failed"]) == {"bad.idl", "dsp/more.c"}
    assert "bad.idl:1" in document["failed"]["bad.idl"]
    assert document["headers"] == []


def test_where_to_begin_is_a_header_that_a_unit_wants(tree: Path) -> None:
    (tree / "inc" / "unused.h").write_text('#include "another.h"\n')
    (tree / "src" / "main.cc").write_text('#include "dnn/hb_dnn.h"\n#include "gone.h"\n')
    assert "Where to begin: install what gone.h comes with" in CliRunner().invoke(command, [str(tree)]).output
