"""Images as Hexagon code, which QEMU runs: their interfaces, HVX, and what becomes of those that end or hang."""

import contextlib
import ctypes
import importlib
import importlib.util
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrpc
from dsp_server import runtime
from fastrpc.dsp.hexagon import HEAD, MAP, Program
from fastrpc.wire.aee import Aee, AeeError
from tests.limits import PATIENCE_S
from tests.waiting import until

HERE = Path(__file__).parent / "idl"
HBRT = [sys.executable, "-m", "hbrt"]

pytestmark = [
    pytest.mark.long,  # the first compilation of all compiles the C library, too
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang, the extra hexagon, is not here"),
    pytest.mark.skipif(shutil.which("qemu-hexagon") is None, reason="qemu-hexagon is not here (Debian: qemu-user)"),
]


def run(*command: object, timeout_s: float = PATIENCE_S) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated files, and images as Hexagon code."""
    made = tmp_path_factory.mktemp("hexagon")
    for name in ("parts", "hvx", "kernel"):
        run(*HBRT, "idl", HERE / f"{name}.idl", "--out", made)
        sources = [HERE / f"{name}_imp.c", made / f"{name}_skel.c"]
        strict = ["-Wall", "-Wextra", "-Werror", f"-I{made}"]
        line = [*HBRT, "cc", "--dsp", "--target", "hexagon", *strict, *sources, "-o", made / f"lib{name}_skel.so"]
        run(*line, timeout_s=5 * PATIENCE_S)  # the first time of all, the C library is compiled, too
    return made


def test_a_program_calls_every_form_of_parameters(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*HBRT, "cc", f"-I{folder}", HERE / "parts_program.c", folder / "parts_stub.c", "-o", folder / "program")
    monkeypatch.setenv("HBRT_IMAGE", str(folder / "libparts_skel.so"))
    monkeypatch.setenv("HBRT_BOARD", "none-runs")
    monkeypatch.setenv("HBRT_PROFILE", "sd865")
    assert run(folder / "program") == "all is well\n"


@pytest.fixture
def hvx(folder: Path, dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("hvx_stub")
    with dsp_board_factory(image=folder / "libhvx_skel.so", profile="sd865"):
        yield module.Hvx
    for name in ("hvx_stub", "hvx_idl"):
        sys.modules.pop(name, None)


def test_vectors_of_128_bytes(hvx: Callable[[], Any]) -> None:
    shared = fastrpc.from_array(np.arange(128, dtype=np.uint8))
    with hvx() as one:
        for other, dot in ((bytes([200] * 128), 4400), (bytes([1] * 128), 22)):
            sums, told = one.add(shared, other, 128)
            assert list(sums) == [min(at + other[0], 255) for at in range(128)]
            assert told == dot
        assert one.threads(4) == 4 * 1000


@pytest.mark.parametrize("asks", [False, True])
def test_a_thread_that_logs_or_asks_while_its_task_ends(hvx: Callable[[], Any], *, asks: bool) -> None:
    with hvx() as one:
        for _ in range(20_000):  # a word that crosses the end is rare
            one.tell(asks)


def test_more_foreign_memory_than_a_program_maps(hvx: Callable[[], Any]) -> None:
    def foreign(value: int) -> np.ndarray[Any, Any]:
        fd = os.memfd_create("foreign")
        os.ftruncate(fd, mmap.PAGESIZE)
        array = np.frombuffer(mmap.mmap(fd, mmap.PAGESIZE), np.uint8)
        assert fastrpc.remote_register_buf(array.ctypes.data, array.size, fd) == 0
        os.close(fd)
        array[:] = value
        return array

    with hvx() as one:
        arrays = [foreign(at % 200) for at in range(1030)]  # a program maps 1,024
        for at in (*range(1030), *range(1030)):
            assert one.add(arrays[at][:128], arrays[0][:128], 128)[0][0] == at % 200
        for array in arrays:
            assert fastrpc.remote_register_buf(array.ctypes.data, array.size, -1) == 0


def test_the_kernel_of_a_dsp(folder: Path, dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    with (
        dsp_board_factory(image=folder / "libkernel_skel.so", profile="sd865"),
        importlib.import_module("kernel_stub").Kernel() as one,
    ):
        assert [one.check() for _ in range(2)] == [0, 0], "the line of kernel_imp.c that does not hold"
    for name in ("kernel_stub", "kernel_idl"):
        del sys.modules[name]


@pytest.mark.parametrize("way", [0, 1])
def test_a_program_that_crashes_costs_its_call(hvx: Callable[[], Any], way: int) -> None:
    with hvx() as one:
        with pytest.raises(AeeError) as failed:
            one.crash(way)
        assert failed.value.code == Aee.AEE_ECONNRESET
    with hvx() as other:
        assert other.threads(1) == 1000


def test_a_program_that_closes_all_descriptors_is_replaced(hvx: Callable[[], Any]) -> None:
    def works() -> bool:
        try:
            with hvx() as other:
                return bool(other.threads(1) == 1000)
        except AeeError:
            return False

    with hvx() as one, contextlib.suppress(AeeError):
        one.crash(3)
    until(works)


def test_a_process_that_an_image_forks_serves_no_tasks(hvx: Callable[[], Any]) -> None:
    with hvx() as one:
        one.crash(4)
        for _ in range(10):  # handles that only one of the two knew
            with hvx() as other:
                assert (one.threads(1), other.threads(1)) == (1000, 1000)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_program_that_hangs_costs_its_call(
    folder: Path, dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "0" if is_killed else "5000")  # of opening and threads(1), too
    with dsp_board_factory(image=folder / "libhvx_skel.so", profile="sd865", cores=1, fresh=True) as board:
        hvx = importlib.import_module("hvx_stub").Hvx
        for _ in range(2):
            with hvx() as one:
                assert one.threads(1) == 1000
                core = board.status()["cores"][0]["pid"]
                (program,) = Path(f"/proc/{core}/task/{core}/children").read_text().split()
                if is_killed:
                    threading.Timer(0.5, os.kill, (int(program), signal.SIGKILL)).start()
                with pytest.raises(AeeError) as failed:
                    one.crash(2)
                assert failed.value.code == Aee.AEE_ECONNRESET
                process = Path("/proc", program, "exe")
                until(lambda process=process: not process.exists())  # type: ignore[misc]
    for name in ("hvx_stub", "hvx_idl"):
        del sys.modules[name]


def test_vectors_in_print(tmp_path: Path) -> None:
    program = tmp_path / "vectors"
    strict = ["-Wall", "-Wextra", "-Werror"]
    source = HERE.parent / "programs" / "vectors.c"
    run(*HBRT, "cc", "--dsp", "--target", "hexagon", *strict, source, "-o", program, timeout_s=5 * PATIENCE_S)
    words = [(at << 24 | 0xFE0003) - (at == 31) * 0x20000000 for at in range(32)]
    rows = [",".join(f"{word}" for word in reversed(words[at : at + 8])) for at in (24, 16, 8, 0)]
    printed = run("qemu-hexagon", program)
    whole, _, rest = printed.partition(", all\n")
    assert whole == "x = " + "".join(f"\n  {row}" for row in rows)
    lines = rest.splitlines()
    highest = [word >> 24 for word in reversed(words)]
    pairs = zip(highest[::2], highest[1::2], strict=True)
    assert lines[:17] == ["bytes ", *(f"  {a:4d}| 254|   0|   3,{b:4d}| 254|   0|   3" for a, b in pairs)]
    assert lines[17:] == [
        "halves ",
        f"  [06]={(words[1] >> 16):6d},[02]={words[0] >> 16:6d},",
        "word ",
        f"  [7c]={words[31] & 0xFFFFFFFF:08x}; end",
        "float [",
        "  [7c]=1.5],",
        "q = 0x00000000|00000000|00000001|ffffffff",
    ]


def test_assembly_code_with_vectors(tmp_path: Path) -> None:
    assembly, main = tmp_path / "splat.S", tmp_path / "main.c"
    assembly.write_text("#include <place.h>\n.globl splat\nsplat:\n{ v0 = vsplat(r0)\n jumpr PLACE }\n")
    (tmp_path / "place.h").write_text("#define PLACE r31\n")
    main.write_text(
        "#include <stdio.h>\n#include <hexagon_types.h>\nHVX_Vector splat(int);\n"
        'int main(void) { HVX_Vector v = splat(7); return printf("%d\\n", ((int *)&v)[31]) != 2; }\n'
    )
    program = tmp_path / "program"
    line = [*HBRT, "cc", "--dsp", "--target", "hexagon", f"-I{tmp_path}", main, assembly, "-o", program]
    run(*line, timeout_s=5 * PATIENCE_S)
    assert run("qemu-hexagon", program) == "7\n"
    run(*HBRT, "cc", "--dsp", "--target", "hexagon", f"-I{tmp_path}", "-c", assembly, "-o", tmp_path / "splat.o")
    assembly.write_text("nonsense\n")
    assert subprocess.run(list(map(str, line)), capture_output=True, check=False).returncode == 1


def test_nothing_is_left_of_an_output_that_is_not_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path("new.c")
    source.write_text(f"int main(void) {{ return {time.time_ns() % 100_000}; }}\n")  # the compiler keeps objects
    for options in (["-c"], []):
        run(*HBRT, "cc", "--dsp", "--target", "hexagon", *options, source, "-o", os.devnull, timeout_s=5 * PATIENCE_S)
        assert list(tmp_path.iterdir()) == [tmp_path / source]


def test_a_program_without_its_board_says_so(folder: Path) -> None:
    done = subprocess.run(
        ["qemu-hexagon", "-cpu", "v67", str(folder / "libhvx_skel.so")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "hbrt start --image" in done.stderr


def test_a_program_of_another_version_says_so(folder: Path) -> None:
    page = os.memfd_create("page")
    os.ftruncate(page, 1 << 16)
    done = subprocess.run(
        ["qemu-hexagon", "-cpu", "v67", str(folder / "libhvx_skel.so")],
        env=os.environ | {"HBRT_HEXAGON_CHANNEL": "0", "HBRT_HEXAGON_PAGE": str(page)},
        pass_fds=(page,),
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(page)
    assert done.returncode == 1
    assert "the image was built by another version of hbrt: rebuild it" in done.stderr


def test_a_processor_that_qemu_does_not_support(
    folder: Path, tmp_path: Path, dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A QEMU that supports only v66, though it is asked for v67.
    stand_in = tmp_path / "qemu-hexagon"
    stand_in.write_text("#!/bin/sh\necho \"$0: unable to find CPU model '$2'\" >&2\nexit 1\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with (
        pytest.raises(Exception, match=r"v67, which this QEMU does not support \(.*CPU model 'v67'\): install a newer"),
        dsp_board_factory(image=folder / "libhvx_skel.so", profile="sd865", fresh=True),
    ):
        pass


def test_a_question_that_fails_here_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(runtime, "hb_dsp_log", lambda *words: said.append(words))
    program: Any = Program.__new__(Program)
    program._ddr = None
    program._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packet = ctypes.create_string_buffer(HEAD.pack(MAP, 0, 1, 2, 0, 0, 0), HEAD.size)
    with theirs, program._answers:
        program._taken(ctypes.addressof(packet), HEAD.size)
        assert HEAD.unpack(theirs.recv(HEAD.size + 1))[:2] == (MAP, 1)
    assert said[0][0] == runtime.HB_DSP_LOG_ERROR
    assert "AttributeError" in said[0][2]
