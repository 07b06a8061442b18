"""Programs in C that use FastRPC as its SDK's users do, with AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fastrpc
from arm_client.client import Board
from fastrpc import DspQueue, Interface
from tests.fastrpc.images.plain import QUEUE
from tests.limits import PATIENCE_S
from tests.shared import build_c

HERE = Path(__file__).parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "--sanitize", "address,undefined", "-fno-sanitize-recover=all"]


def build(target: Path, *arguments: object) -> Path:
    build_c(*arguments, "-o", target)
    return target


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each program, built."""
    folder = tmp_path_factory.mktemp("programs")
    built = {one: build(folder / one, HERE / "programs" / f"{one}.c", *STRICT) for one in ("names", "queue")}
    image = build(folder / "plain_image.so", HERE / "programs" / "plain_image.c", "--dsp", *STRICT[:4])
    return {**built, "image": image}


@pytest.mark.parametrize(("program", "image"), [("names", "plain.py"), ("queue", "")])
def test_a_program(programs: dict[str, Path], program: str, image: str, dsp_board_factory: Any) -> None:
    """queue.c on an image in C: dspqueue's calls, limits of process domains, and handles of a program that has died."""
    with dsp_board_factory(image=HERE / "images" / image if image else programs["image"], fresh=True) as board:
        check(programs[program], board)


def check(program: Path, board: Board) -> None:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
    # This GCC's leak checker does not survive the threads of Python.
    paths = board.session.link.paths
    mine = {"HBRT_HOME": str(paths.path.parent), "HBRT_BOARD": paths.name, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [program], env={**outer, **mine}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
    assert "runtime error" not in done.stderr
    assert "bug in hbrt" not in done.stderr


def test_the_vendors_names_of_the_library(tmp_path: Path) -> None:
    strict = ["-Wall", "-Wextra", "-Werror", "-std=c11"]
    program = build(
        tmp_path / "linked", HERE / "programs" / "linked.c", *strict, "-lcdsprpc", "-lrpcmem", "-llog", "-ldl"
    )
    done = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "W/linked: 3 libraries"), done.stderr


class Plain(Interface):
    """The interface of plain_image.c."""

    INTERFACE = "plain"


def test_a_callback_takes_as_many_buffers_as_come(programs: dict[str, Path], dsp_board_factory: Any) -> None:
    """More than 1,024 in one run."""
    with (
        dsp_board_factory(image=programs["image"], fresh=True),
        Plain() as plain,
        DspQueue(request_bytes=1 << 17, response_bytes=1 << 17) as queue,
    ):
        plain.call(QUEUE, queue.id)
        fd = os.memfd_create("buffer")
        os.ftruncate(fd, 4096)
        assert fastrpc.fastrpc_mmap(3, fd, 0, 0, 4096, fastrpc.FASTRPC_MAP_FD) == 0
        queue._queue.set_served(is_served=True)  # so that the image is asked when all is written
        for number in range(600):
            queue.write(number.to_bytes(2, "little"), [(fd, 0, 8, 0), (fd, 8, 8, 0)])
        queue._ask()
        for number in range(600):
            assert queue.read(PATIENCE_S).message == number.to_bytes(2, "big")
        assert fastrpc.fastrpc_munmap(3, fd, 0, 4096) == 0
        os.close(fd)
