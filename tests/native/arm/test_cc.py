"""hbrt cc: what it hands to the compiler, what it refuses, what other build tools read of it."""

import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hbrt.cc import toolchain
from hbrt.cc.toolchain import Flags, arm_flags, command_line, compiler_of, fitted
from hbrt.native.elf import machine_of
from hbrt.native.files import library
from hbrt.native.image_flags import image_flags
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import PROGRAMS, SAMPLES, Compile, Run, cc
from tests.shared import in_process

FLAGS = Flags(("-Iheaders",), ("-lhbrt",))


def test_the_first_source_names_the_program_unless_the_user_does() -> None:
    assert command_line(["cc"], FLAGS, ["-O2", "a/main.c", "b.c"]) == [
        *("cc", "-g", "-Iheaders", "-O2", "a/main.c", "b.c", "-o", "main", "-lhbrt")
    ]
    assert command_line(["cc"], FLAGS, ["main.c", "-ofirst"])[-2:] == ["-ofirst", "-lhbrt"]
    assert "-o" not in command_line(["cc"], FLAGS, ["main.o"])


def test_what_does_not_link_gets_no_library() -> None:
    assert command_line(["cc"], FLAGS, ["-c", "main.c"]) == ["cc", "-g", "-Iheaders", "-c", "main.c"]


def test_c_among_cplusplus_stays_c() -> None:
    line = command_line(["c++"], FLAGS, ["main.cc", "part.c"])
    assert line[3:8] == ["main.cc", "-x", "c", "part.c", "-x"]


def test_sanitizers_are_the_compilers() -> None:
    line = command_line(["cc"], FLAGS, ["main.c"], "address,undefined")
    assert {"-fsanitize=address,undefined", "-fno-omit-frame-pointer"} <= set(line)


def test_the_compiler_is_that_of_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    assert compiler_of(["a.c"], ["gcc", "clang", "g++"]) == ["gcc"]
    assert compiler_of(["a.c", "b.cpp"], ["gcc", "clang", "clang++"]) == ["clang++"]
    with pytest.raises(FileNotFoundError, match=r"No C\+\+ compiler found .*CXX"):
        compiler_of(["b.cpp"], ["gcc"])
    monkeypatch.setenv("CC", "ccache gcc-12")
    assert compiler_of(["a.c"], []) == ["ccache", "gcc-12"]


def test_what_cannot_be_compiled_is_refused(compiled: Compile, tmp_path: Path) -> None:
    del compiled
    answer = cc("no-such-file.c", cwd=tmp_path)
    assert (answer.returncode, "No such file: no-such-file.c" in answer.stderr) == (2, True)
    (tmp_path / "bad.c").write_text("int main(void) { return hbSysAllocMem(; }\n")
    answer = cc("bad.c", cwd=tmp_path)
    assert (answer.returncode, "bad.c:1" in answer.stderr) == (1, True)


def test_what_a_guest_brings_that_is_not_installed_is_named(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled
    (tmp_path / "own.h").write_text("#include <rknn_api.h>\n")
    (tmp_path / "main.c").write_text('#include "own.h"\nint main(void) { return 0; }\n')
    (tmp_path / "plain.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "bad.c").write_text("#include <rga.h>\nint main(void) { return no_such_thing; }\n")
    (own := tmp_path / "own").mkdir()
    (own / "rga.h").touch()
    (own / "librga.a").touch()
    monkeypatch.setattr("hbrt.borders.guests._entries", lambda _: {})
    monkeypatch.setattr("hbrt.borders.guests.native_folders", list)
    for arguments, name in ((["main.c"], "rknn_api.h"), (["plain.c", "-lrga"], "librga")):
        paths = [tmp_path / one if one.endswith(".c") else one for one in arguments]
        answer = in_process("cc", *paths, "-o", tmp_path / "made")
        assert answer.exit_code == 3, answer.output
        assert answer.output.startswith(f"Error: {name} needs hbrt-rknn, which is ")
    assert in_process("cc", tmp_path / "bad.c", "-I", own, f"-L{own}", "-lrga").exit_code == 1  # the program's own


def test_several_files_of_both_languages_make_one_program(compiled: Compile, run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part.c"
    part.write_text(
        '#include "hb_sys.h"\nint part(void) { int *new = 0; hbSysMem m; return hbSysAllocMem(&m, 0) + !!new; }\n'
    )
    main = tmp_path / "main.cc"
    main.write_text(
        '#include <dnn/hb_sys.h>\nextern "C" int part();\nint main() { return part() != HB_SYS_INVALID_ARGUMENT; }\n'
    )
    assert run(compiled(str(main), str(part))).returncode == 0


def test_flags_build_a_program_without_hbrt(compiled: Compile, run: Run, tmp_path: Path) -> None:
    del compiled
    source = tmp_path / "main.c"
    source.write_text(
        '#include "hb_sys.h"\nint main(void) { return hbSysAllocMem(0, 1) != HB_SYS_INVALID_ARGUMENT; }\n'
    )
    flags = cc("--print-flags", cwd=tmp_path).stdout.split()
    subprocess.run(["cc", source, "-o", tmp_path / "plain", *flags], check=True, timeout=PATIENCE_S)
    assert run(tmp_path / "plain").returncode == 0
    assert flags == [*arm_flags().compile, *arm_flags().link]


def test_without_guests_no_linker_state_is_changed(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    del compiled
    linked = [flag for link in (arm_flags().link, image_flags([])[1]) for flag in link]
    assert linked.count("-Wl,--as-needed") == linked.count("-Wl,--no-as-needed")
    assert not any("state" in flag for flag in linked)  # zig's linker has no --push-state
    monkeypatch.setattr("hbrt.borders.guests.native_folders", list)
    assert not any("as-needed" in flag for flag in (*arm_flags().link, *image_flags([])[1]))


@pytest.mark.long
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")
def test_zig_links_programs_and_images(
    compiled: Compile, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path / "cache"))
    image = PROGRAMS.parents[1] / "dsp" / "images" / "ops.c"
    for arguments in ((SAMPLES / "softmax.c", "-o", "softmax"), ("--dsp", image, "-o", "ops.so")):
        answer = cc(*arguments, cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr
    assert run(tmp_path / "softmax").returncode == 0


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config is here")
def test_pkg_config_knows_hbrt(compiled: Compile, tmp_path: Path) -> None:
    del compiled
    folder = cc("--pkg-config-dir", cwd=tmp_path).stdout.strip()
    answer = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "hbrt"],
        env={"PKG_CONFIG_PATH": folder, "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(arm_flags().compile) <= set(answer.stdout.split())
    assert "-lhbrt" in answer.stdout
    assert folder.startswith(sys.prefix)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake is here")
def test_cmake_finds_hbrt(compiled: Compile, run: Run, tmp_path: Path) -> None:
    del compiled
    folder = cc("--cmake-dir", cwd=tmp_path).stdout.strip()
    (tmp_path / "main.c").write_text(
        '#include "dnn/hb_sys.h"\nint main(void) { return hbSysAllocMem(0, 1) != HB_SYS_INVALID_ARGUMENT; }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nfind_package(hbrt REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user hbrt::hbrt)\n"
    )
    build = tmp_path / "build"
    for line in (["cmake", "-B", str(build), f"-Dhbrt_DIR={folder}", str(tmp_path)], ["cmake", "--build", str(build)]):
        subprocess.run(line, check=True, capture_output=True, timeout=PATIENCE_S)
    assert run(build / "user").returncode == 0


BOARDS = """
cmake_minimum_required(VERSION 3.0)
project(user CXX)
set(CMAKE_CXX_FLAGS "-std=c++11 -Wl,-unresolved-symbols=ignore-in-shared-libs")
file(READ "/sys/class/boardinfo/soc_name" SOC)
string(TOUPPER "${SOC}" SOC)
add_definitions(-DSOC_${SOC})
file(WRITE ${CMAKE_BINARY_DIR}/list.txt "a;b" "c")
file(READ ${CMAKE_BINARY_DIR}/list.txt LIST)
message(STATUS "list ${LIST}")
set(DNN_PATH "/usr/include/dnn")
include_directories(${DNN_PATH})
link_directories(/usr/hobot/lib)
find_library(HBUCP hbucp REQUIRED)
add_executable(user main.cc)
target_link_libraries(user dnn ${HBUCP} rt pthread dl)
add_subdirectory(npu)
"""
NPU = """\
set(CMAKE_CXX_FLAGS "-march=armv8.2-a")
add_library(rga SHARED IMPORTED)
set_target_properties(rga PROPERTIES IMPORTED_LOCATION ${CMAKE_SOURCE_DIR}/3rdparty/aarch64/librga.so)
add_executable(npu npu.cc)
target_link_libraries(npu /usr/local/lib/librknnrt.so rga ${CMAKE_SOURCE_DIR}/own/librknn_api.a)
"""
NPU_SOURCE = """\
#include "rknn_api.h"
#include "im2d.h"
#ifdef __cplusplus
extern "C"
#endif
int own(void);
int main(void) { return own() || rknn_destroy(7) != RKNN_ERR_CTX_INVALID || !imStrError_t(IM_STATUS_SUCCESS); }
"""


def archive(target: Path) -> None:
    """Build an archive with the function ``own``, for this machine."""
    target.parent.mkdir()
    (source := target.with_suffix(".c")).write_text("int own(void) { return 0; }\n")
    subprocess.run(["cc", "-c", source, "-o", source.with_suffix(".o")], check=True, timeout=PATIENCE_S)
    subprocess.run(["ar", "rcs", target, source.with_suffix(".o")], check=True, timeout=PATIENCE_S)


def of_board(source: Path, target: Path) -> None:
    """Write a library as one for a 32-bit ARM machine, by its header."""
    target.parent.mkdir(parents=True)
    data = bytearray(source.read_bytes())
    data[18:20] = (40).to_bytes(2, "little")
    target.write_bytes(data)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake is here")
def test_a_boards_cmakelists_builds_as_it_is(compiled: Compile, run: Run, tmp_path: Path) -> None:
    del compiled
    folder = cc("--cmake-dir", cwd=tmp_path).stdout.strip()
    (tmp_path / "main.cc").write_text(
        "#ifdef SOC_S100\n#include <hb_ucp.h>\n#endif\n"
        "int main() { return hbUCPFree(nullptr) != HB_SYS_INVALID_ARGUMENT; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(BOARDS)
    archive(tmp_path / "own" / "librknn_api.a")
    of_board(library("librga.so"), tmp_path / "3rdparty" / "aarch64" / "librga.so")
    (tmp_path / "npu").mkdir()
    (tmp_path / "npu" / "npu.cc").write_text(NPU_SOURCE)
    (tmp_path / "npu" / "CMakeLists.txt").write_text(NPU)
    build = tmp_path / "build"
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={folder}/toolchain.cmake"
    lines = ["cmake", "-B", str(build), toolchain, str(tmp_path)], ["cmake", "--build", str(build)]
    said = [subprocess.run(line, check=True, capture_output=True, text=True, timeout=PATIENCE_S) for line in lines]
    assert "list a;bc" in said[0].stdout
    assert "/usr/local/lib/librknnrt.so is replaced by hbrt's own librknnrt.so." in said[0].stdout
    assert f"{tmp_path}/3rdparty/aarch64/librga.so is replaced by hbrt's own librga.so." in said[0].stdout
    assert "librknn_api" not in said[0].stdout
    assert run(build / "user").returncode == 0
    assert run(build / "npu" / "npu").returncode == 0


def test_a_boards_options_fit_this_machine(compiled: Compile, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "npu.c"
    source.write_text(NPU_SOURCE)
    archive(own := tmp_path / "own" / "librknn_api.a")
    of_board(library("librknnrt.so"), there := tmp_path / "armhf" / "librknnrt.so")
    assert run(compiled(str(source), "-march=armv8.2-a", str(there), "librga.so.2", str(own))).returncode == 0
    assert (machine_of(there), machine_of(own)) == (40, machine_of(library("libhbrt.so")))
    plain = ["-O2", "-lrknnrt", str(library("librga.so")), "-o", "aarch64/librga.so", "libown.so", "gone/liblog.a"]
    assert fitted(plain) == (plain, [])
    given, notes = fitted(["/usr/lib/librknnmrt.a", "-mcpu=cortex-a76"])
    on_arm = platform.machine() in {"aarch64", "arm64"}
    assert given == [str(library("librknnmrt.so")), *(["-mcpu=cortex-a76"] if on_arm else [])]
    source.write_text('#include "rkllm.h"\n')
    refusal = "hbrt does not offer RKLLM: the format of .rkllm files is not public"
    assert refusal in cc("-c", source, cwd=tmp_path).stderr
    for linked in ("-lrkllmrt", "lib/librkllmrt.so"):
        assert f"Cannot link {linked}: {refusal}" in cc(source, linked, cwd=tmp_path).stderr
    assert notes[0] == "/usr/lib/librknnmrt.a is replaced by hbrt's own librknnmrt.so."


def test_on_an_arm_host_a_shared_library_is_the_vendors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "IS_ARM", True)
    shutil.copy(library("librknnrt.so"), given := tmp_path / "librknnrt.so")
    archive(own := tmp_path / "own" / "librknn_api.a")
    assert fitted([str(given), str(own)])[0] == [str(library("librknnrt.so")), str(own)]
    assert fitted([str(library("librga.so"))]) == ([str(library("librga.so"))], [])


def test_a_program_links_the_vendors_library_by_its_name(compiled: Compile, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "vendors.c"
    source.write_text('#include "hb_sys.h"\nint main(void) { return hbSysFreeMem(0) != HB_SYS_INVALID_ARGUMENT; }\n')
    assert run(compiled(str(source), "-ldnn", "-lhbucp")).returncode == 0


NEON = "#include <arm_neon.h>\nint main(void) { return !vgetq_lane_s32(vdupq_n_s32(1), 0); }\n"


@pytest.mark.skipif(platform.machine() in {"aarch64", "arm64"}, reason="the compiler has NEON itself")
def test_neon_is_simdes_where_it_is_and_a_sentence_elsewhere(compiled: Compile, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "neon.c"
    source.write_text(NEON)
    answer = cc("-E", "-nostdinc", source, cwd=tmp_path)
    assert answer.returncode == 1
    assert "needs SIMDe on this CPU: install it (Debian, Ubuntu: apt install libsimde-dev)" in answer.stderr
    stand_in = tmp_path / "simde" / "arm" / "neon.h"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(
        "#ifndef SIMDE_ENABLE_NATIVE_ALIASES\n#error\n#endif\n"
        "#define vdupq_n_s32(value) (value)\n#define vgetq_lane_s32(vector, lane) (vector)\n"
    )
    assert run(compiled(str(source), f"-I{tmp_path}")).returncode == 0
