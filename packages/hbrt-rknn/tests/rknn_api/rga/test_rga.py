"""The 2D engine: its names in C and C++, and its pixels against OpenCV."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from hbrt.native.files import include_dir, library
from rknn_api.rga.engine import How, Picture, blurred, border_refusal, mosaic, process, refusal
from rknn_api.rga.formats import FORMATS, byte_count, matrix, rgba_of, write_rgba, yuv_of
from tests.each import each
from tests.native.arm.conftest import Compile, Run, board, compiled, run  # noqa: F401 - fixtures
from tests.rknn_api.capi.test_custom_ops import SANITIZE

HERE = Path(__file__).parent
WIDTH, HEIGHT = 16, 8
NO_DEVICES = pytest.mark.skipif(
    bool([*Path("/dev").glob("dma_heap/*"), *Path("/dev").glob("dri/card0")]), reason="devices of its own"
)


@pytest.mark.parametrize("flags", [(), pytest.param(SANITIZE, marks=pytest.mark.long)])
def test_a_c_program_crops_scales_turns_converts_fills_and_blends(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    flags: tuple[str, ...],
) -> None:
    answer = run(compiled(str(HERE / "pictures.c"), "-lrga", "-Wno-pedantic", *flags), HBRT_PROFILE="rk3588")
    assert (answer.returncode, answer.stdout) == (0, "0\n"), answer.stderr


def test_a_cplusplus_program_calls_by_the_vendors_names(compiled: Compile, run: Run) -> None:  # noqa: F811
    answer = run(compiled(str(HERE / "pictures.cc"), "-lrga", "-Wall", "-Wextra", "-Werror"))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "Invalid parameters: imcopy: the sizes 32 x 16 and 64 x 32 must be equal.\n"


def test_a_cplusplus_program_combines_pictures_and_queues_tasks(compiled: Compile, run: Run) -> None:  # noqa: F811
    answer = run(compiled(str(HERE / "jobs.cc"), "-lrga", "-Wall", "-Wextra", "-Werror"))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("Illegal parameters: Unknown job handle 2: imbeginJob did not return it")


@NO_DEVICES
@pytest.mark.parametrize("flags", [(), ("-O2", "-D_FORTIFY_SOURCE=2"), pytest.param(SANITIZE, marks=pytest.mark.long)])
def test_pictures_lie_in_buffers_of_the_kernels_allocators(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    flags: tuple[str, ...],
) -> None:
    answer = run(compiled(str(HERE / "buffers.c"), "-lrga", *flags), HBRT_PROFILE="rk3588")
    assert (answer.returncode, answer.stderr) == (0, "")


@NO_DEVICES
@pytest.mark.skipif(shutil.which("gcc") is None, reason="zig's linker has no filters")
def test_a_program_linked_to_the_vendors_library_alone_has_the_devices(
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    """By a command that is not ours: the loader must search libhbrt.so, which librga.so brings, before libc."""
    lib = library("librga.so").parent
    program = tmp_path / "buffers"
    headers = [f"-isystem{include_dir(one)}" for one in ("rga", "arm")]
    link = [f"-L{lib}", "-lrga", f"-Wl,-rpath,{lib}"]
    subprocess.run(["gcc", *headers, str(HERE / "buffers.c"), "-o", str(program), *link], check=True)
    answer = run(program, HBRT_PROFILE="rk3588")
    assert (answer.returncode, answer.stderr) == (0, "")


def picture(number: int, data: Any = None, mode: int = 0) -> Picture:
    one = FORMATS[number]
    size = byte_count(one, WIDTH, HEIGHT)
    filled = np.zeros(size, np.uint8) if data is None else np.ascontiguousarray(data, np.uint8).reshape(-1)
    return Picture(filled, one, WIDTH, HEIGHT, WIDTH, HEIGHT, mode)


def moved(source: Picture, target: Picture, usage: int = 0) -> Any:
    whole = (0, 0, WIDTH, HEIGHT)
    assert not refusal("src", source, whole)
    process(source, target, None, (whole, whole, whole), How(usage))
    return target.data


def smooth() -> Any:
    """Colors that change slowly, so that sharing chroma costs little."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.dstack([40 + 6 * columns, 200 - 8 * rows, 60 + 4 * rows + 3 * columns]).astype(np.uint8)


@each("one, other", list(itertools.product(FORMATS, (0x02, 0x0A))))
def test_each_format_goes_to_rgb_and_to_nv12_and_back(one: int, other: int) -> None:
    there = picture(one)
    moved(picture(0x02, smooth()), there)
    middle = picture(other)
    moved(there, middle)
    back = picture(0x02)
    found = moved(middle, back).reshape(HEIGHT, WIDTH, 3).astype(int)
    if FORMATS[one].letters == "Y":
        luma = cv2.cvtColor(smooth(), cv2.COLOR_RGB2GRAY)
        np.testing.assert_allclose(found, luma[..., None].repeat(3, 2), atol=3)
        return
    np.testing.assert_allclose(found, smooth(), atol={4: 20, 5: 12}.get(max(FORMATS[one].bits, default=8), 9))


@each("number, shifts", [
    (0x04, "R0 G5 B11"), (0x24, "B0 G5 R11"), (0x05, "R0 G5 B10 A15"), (0x2A, "A0 R1 G6 B11"), (0x2F, "A0 B4 G8 R12"),
])  # fmt: skip
def test_the_first_letter_of_sixteen_bits_is_the_lowest(number: int, shifts: str) -> None:
    rgba = np.array([[[255, 0, 0, 0], [0, 255, 0, 0], [0, 0, 255, 0], [0, 0, 0, 255]]], np.uint8)
    raw = np.zeros((1, 4, 2), np.uint8)
    write_rgba(rgba, [raw], FORMATS[number])
    for letter, word in zip("RGBA", raw.view("<u2")[0, :, 0], strict=True):
        shift = next((int(one[1:]) for one in shifts.split() if one[0] == letter), None)
        assert word == 0 if shift is None else (word >> shift) & 1 and not word & (1 << shift) - 1
    np.testing.assert_array_equal(rgba_of([raw], FORMATS[number])[..., :3], rgba[..., :3])


def test_an_alpha_of_one_bit_stands_for_two_opacities() -> None:
    raw = np.array([[[0, 0], [1, 0]]], np.uint8)
    np.testing.assert_array_equal(rgba_of([raw], FORMATS[0x2A], (32, 224))[0, :, 3], [32, 224])


@pytest.mark.parametrize(("number", "code"), [(0x0A, cv2.COLOR_YUV2RGB_NV12), (0x0E, cv2.COLOR_YUV2RGB_NV21)])
def test_nv12_and_nv21_are_opencvs(number: int, code: int) -> None:
    data = np.random.default_rng(1).integers(16, 236, (HEIGHT * 3 // 2, WIDTH)).astype(np.uint8)
    found = moved(picture(number, data), picture(0x02)).reshape(HEIGHT, WIDTH, 3)
    np.testing.assert_allclose(found.astype(int), cv2.cvtColor(data, code), atol=1)


def test_chroma_of_one_format_keeps_its_bytes_in_another() -> None:
    data = np.random.default_rng(2).integers(0, 256, WIDTH * HEIGHT * 3 // 2).astype(np.uint8)
    found = moved(picture(0x0A, data), picture(0x0B))
    luma = WIDTH * HEIGHT
    np.testing.assert_array_equal(found[:luma], data[:luma])
    np.testing.assert_array_equal(found[luma:].reshape(2, -1), data[luma:].reshape(-1, 2).T)


@each("usage, turn", [
    (1, lambda a: np.rot90(a, 3)), (2, lambda a: np.rot90(a, 2)), (4, np.rot90),
    (8, lambda a: a[:, ::-1]), (16, lambda a: a[::-1]), (32, lambda a: a[::-1, ::-1]),
])  # fmt: skip
def test_turns_are_numpys(usage: int, turn: Any) -> None:
    data = np.random.default_rng(3).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    source, target = (
        Picture(one.reshape(-1), FORMATS[2], 8, 8, 8, 8) for one in (data.copy(), np.zeros((8, 8, 3), np.uint8))
    )
    process(source, target, None, ((0, 0, 8, 8),) * 3, How(usage))
    np.testing.assert_array_equal(target.data.reshape(8, 8, 3), turn(data))


def test_the_matrices_are_those_of_the_standards() -> None:
    white = np.array([255, 255, 255, 1])
    np.testing.assert_allclose(matrix(0, to_rgb=False) @ white, [235, 128, 128], atol=1e-9)
    np.testing.assert_allclose(matrix(1 << 2, to_rgb=False) @ white, [255, 128, 128], atol=1e-9)
    np.testing.assert_allclose(matrix(3, to_rgb=True) @ [16, 128, 128, 1], [0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(matrix(1, to_rgb=True)[0], [1.16438, 0, 1.59603, -222.921], atol=1e-3)
    for mode, luma in ((3, 81.5), (4, 76.2), (5, 62.6), (6, 54.2)):  # of a picture: IM_YUV_BT..._RANGE
        assert (matrix(mode << 8, to_rgb=False) @ [255, 0, 0, 1])[0] == pytest.approx(luma, abs=0.1)


@each("number", [0x02, 0x0A, 0x09, 0x1C, 0x15])
def test_borders_are_numpys(number: int) -> None:
    one = FORMATS[number]
    source = picture(number, np.random.default_rng(1).integers(0, 256, byte_count(one, WIDTH, HEIGHT)))
    top, bottom, left, right = border = (4, 2, 6, 10)
    width, height = WIDTH + left + right, HEIGHT + top + bottom
    target = Picture(np.zeros(byte_count(one, width, height), np.uint8), one, width, height, width, height)
    rects = ((0, 0, WIDTH, HEIGHT), (0, 0, width, height), (0, 0, 0, 0))
    assert not border_refusal(*rects[:2], border, one.down)
    for kind, name in ((2, "symmetric"), (3, "wrap")):
        process(source, target, None, rects, How(border=border, border_type=kind))
        (before, after) = (one.planes(rect) for one, rect in zip((source, target), rects, strict=False))
        if number == 0x1C:
            before, after = (yuv_of(planes, one) for planes in (before, after))
        for at, (part, made) in enumerate(zip(before, after, strict=True)):
            across, down = one.down if at else (1, 1)
            sides: list[Any] = [(top // down, bottom // down), (left // across, right // across), (0, 0)]
            np.testing.assert_array_equal(made, np.pad(part, sides[: part.ndim], name))  # type: ignore[call-overload]
    assert "picture and its border are 32 x 14" in border_refusal(rects[0], rects[0], border, one.down)
    assert "must be 0 or more" in border_refusal(rects[0], rects[0], (-1, 0, 0, 0), one.down)


@each("code, operation", [(0x88, np.bitwise_and), (0xEE, np.bitwise_or), (0xF6, np.bitwise_xor)])
def test_raster_operations_are_numpys(code: int, operation: Any) -> None:
    rng = np.random.default_rng(1)
    one, other = (rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(2))
    target = picture(0x02, other.copy())
    process(picture(0x02, one), target, None, ((0, 0, WIDTH, HEIGHT),) * 3, How(1 << 24, rop_code=code))
    np.testing.assert_array_equal(target.data.reshape(one.shape), operation(one, other))


def test_a_blur_is_opencvs_and_a_mosaic_has_means() -> None:
    data = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    made = blurred(picture(0x02, data), (0, 0, WIDTH, HEIGHT), (5, 3, 2, 0)).data.reshape(HEIGHT, WIDTH, 4)
    np.testing.assert_array_equal(made[..., :3], cv2.GaussianBlur(data, (5, 3), 2))
    target = picture(0x02, data.copy())
    mosaic(target, (0, 0, 8, HEIGHT), 8)
    found = target.data.reshape(data.shape)
    np.testing.assert_array_equal(found[:, :8], np.broadcast_to(np.rint(data[:, :8].mean(axis=(0, 1))), (HEIGHT, 8, 3)))
    np.testing.assert_array_equal(found[:, 8:], data[:, 8:])
    mosaic(target, (3, 1, 10, 7), 8)
    np.testing.assert_array_equal(
        found[1:, 11:13], np.broadcast_to(np.rint(data[1:, 11:13].mean(axis=(0, 1))), (7, 2, 3))
    )
