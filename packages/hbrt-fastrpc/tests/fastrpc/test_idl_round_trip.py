"""Generated stubs and skeletons in Python and C, each with each."""

import ctypes
import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import fastrpc
from fastrpc.wire.aee import DSP_ERROR, Aee, AeeError
from tests.limits import PATIENCE_S
from tests.shared import in_process

HERE = Path(__file__).parent / "idl"


def verb(*arguments: object) -> None:
    answer = in_process(*arguments)
    assert answer.exit_code == 0, answer.output


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Generated files, images in both languages, and a program in C."""
    folder = tmp_path_factory.mktemp("idl")
    verb("idl", HERE / "all.idl", "--out", folder)
    shutil.copy(HERE / "image.py", folder)
    skeletons = [HERE / "all_imp.c", folder / "all_skel.c"]
    stubs = [HERE / "program.c", folder / "all_stub.c"]
    strict = ["-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    verb("cc", "--dsp", *strict, *skeletons, "-o", folder / "image.so")
    verb("cc", *strict, *stubs, "-o", folder / "program")
    sys.path.insert(0, str(folder))
    yield SimpleNamespace(
        images={"Python": folder / "image.py", "C": folder / "image.so"},
        program=folder / "program",
        all_=importlib.import_module("all_stub"),
        types=importlib.import_module("all_idl"),
    )
    sys.path.remove(str(folder))
    for name in ("all_stub", "all_idl"):
        del sys.modules[name]


@pytest.mark.parametrize("skeleton", ["Python", "C"])
def test_a_stub_in_c(made: SimpleNamespace, skeleton: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_IMAGE", str(made.images[skeleton]))
    monkeypatch.setenv("HBRT_BOARD", "none-runs")
    assert run(made.program) == "all is well\n"


@pytest.mark.long
def test_parameters_that_travel_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dsp_board_factory: Any
) -> None:
    verb("idl", HERE / "parts.idl", "--out", tmp_path)
    shutil.copy(HERE / "parts_image.py", tmp_path)
    strict = ["-Wall", "-Wextra", "-Werror", f"-I{tmp_path}"]
    verb("cc", "--dsp", *strict, HERE / "parts_imp.c", tmp_path / "parts_skel.c", "-o", tmp_path / "image.so")
    verb("cc", *strict, HERE / "parts_program.c", tmp_path / "parts_stub.c", "-o", tmp_path / "program")
    monkeypatch.syspath_prepend(str(tmp_path))
    stub, types = importlib.import_module("parts_stub"), importlib.import_module("parts_idl")
    for image, arguments, said in (("image.so", (), "all is well\n"), ("parts_image.py", ("Python",), "")):
        with monkeypatch.context() as here:
            here.setenv("HBRT_IMAGE", str(tmp_path / image))
            here.setenv("HBRT_BOARD", "none-runs")
            assert run(tmp_path / "program", *arguments) == said
        with dsp_board_factory(image=tmp_path / image), stub.Parts() as one:
            check_parts(one, types)
    for name in ("parts_stub", "parts_idl"):
        del sys.modules[name]


def check_parts(one: Any, types: Any) -> None:
    """Each kind of parameter in parts there and back, by a stub in Python."""
    filled = np.zeros(4, np.uint8)
    sizes, copies = one.join([b"\1\2\3", b"", [9]], 3, [8, filled, 2])
    assert (list(sizes), [list(each) for each in copies]) == ([3, 0, 1], [[1, 2, 3, 0, 0, 0, 0, 0], [0] * 4, [9, 0]])
    assert copies[1] is filled
    assert one.names("to the ", ["left", "中"], [16, 16]) == (["to the left", "to the 中"], 2)
    hat = np.array([104, 0x4E2D, 0], np.uint16)
    assert [list(each) for each in one.words([hat, hat[2:]], [3, 1], one.handle)] == [[0x4E2D, 104, 0], [0]]
    items = [types.parts_item(kind=at, data=[at, 2], weight=1.5, name="x" * at) for at in range(3)]
    given = types.parts_box(id=4, items=items, sum=1 << 40)
    assert one.weigh([given, types.parts_box(id=-1, items=items[:1], sum=0)]) == 3 * 4 - 1
    room = types.parts_box(items=[types.parts_item(data=2, name=8)] * 2)
    total, back = one.store(given, room)
    assert (total, back.id, back.sum) == ((1 << 40) + 4 + 9 + 3 + 3 + 3, 5, -(1 << 40))
    assert [(each.kind, list(each.data), each.weight, each.name) for each in back.items] == [
        (0, [0, 0], 3.0, "<>"),
        (1, [1, 1], 3.0, "<x>"),
    ]
    assert one.join([], 0, [])[1] == []
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: one.join(b"ab", 1, []), r"many is b'ab'; pass a list of its elements"),
        (lambda: one.names("", [7], []), r"given\[0\] is 7; pass a string"),
        (lambda: one.store(types.parts_box(id=1, items=[]), room), "without sum; pass parts_box with id, items, sum"),
        (lambda: one.store(types.parts_box(id=1 << 15, items=[], sum=0), room), "do not fit their types"),
        (lambda: one.join([b""] * 253, 0, []), "256 input and 1 output buffers; the maximum is 254"),
    ]
    for call, why in refused:
        with pytest.raises(AeeError, match=why):
            call()


def test_the_kernel_of_a_dsp_over_this_machine(
    tmp_path: Path, dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb("idl", HERE / "kernel.idl", "--out", tmp_path)
    strict = ["-Wall", "-Wextra", "-Werror", f"-I{tmp_path}"]
    verb("cc", "--dsp", *strict, HERE / "kernel_imp.c", tmp_path / "kernel_skel.c", "-o", tmp_path / "image.so")
    monkeypatch.syspath_prepend(str(tmp_path))
    with dsp_board_factory(image=tmp_path / "image.so", profile="sd865") as board:
        with importlib.import_module("kernel_stub").Kernel() as one:
            assert [one.check() for _ in range(2)] == [0, 0], "the line of kernel_imp.c that does not hold"
        log = (board.path / "log").read_text()
    larger = tmp_path / "larger.toml"
    larger.write_text(
        'base = "sd865"\nname = "larger"\ntitle = "more"\ncores.dsp.clock_mhz = { value = 1000, source = "a test" }\n'
        'tcm.vtcm_bytes = { value = 8388608, source = "a test" }\n'
    )
    question = fastrpc.remote_dsp_capability(3, 4)  # of cdsp, VTCM_PAGE
    with (
        dsp_board_factory(image=tmp_path / "image.so", profile=str(larger)),
        importlib.import_module("kernel_stub").Kernel() as one,
    ):
        assert one.board() == (8 << 20, 1_000_000_000)
        assert fastrpc.remote_handle_control(2, question, ctypes.sizeof(question)) == 0
    assert question.capability == 8 << 20
    for name in ("kernel_stub", "kernel_idl"):
        del sys.modules[name]
    assert "a record with 7 and text" in log
    assert "allowed at run time" in log
    assert "not allowed yet" not in log


def fitting(kind: type[Any]) -> st.SearchStrategy[Any]:
    bits = 8 * ctypes.sizeof(kind)
    is_signed = kind(-1).value < 0
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else st.integers(0, (1 << bits) - 1)


octets = st.binary(max_size=300).map(lambda raw: np.frombuffer(raw, np.uint8))
floats = st.floats(-1e3, 1e3, width=32)


@pytest.mark.parametrize("skeleton", ["Python", "C"])
def test_a_skeleton_refuses_a_newer_stub(made: SimpleNamespace, skeleton: str, dsp_board_factory: Any) -> None:
    mismatch = Aee.AEE_ESTUBSKELVERMISMATCH
    asked = {"1.2.3": 0, "1.2": 0, "0.999.999": 0, "1.1.4": 0, "1.2.4": mismatch, "1.3.0": mismatch, "2": mismatch}
    asked |= {"": mismatch, "x": mismatch, "1..3": mismatch, "1.2.3.4": mismatch, "0.1000": mismatch}
    with dsp_board_factory(image=made.images[skeleton]), made.all_.All() as one:
        written = one.uri.partition("&_idlver=1.2.3")
        assert written[1]
        told = {}
        for version in asked:
            handle = fastrpc.remote_handle64()
            told[version] = fastrpc.remote_handle64_open(f"{written[0]}&_idlver={version}{written[2]}", handle)
            if told[version] == 0:
                fastrpc.remote_handle64_close(handle)
        assert told == asked
        assert fastrpc.remote_handle64_open(written[0] + written[2], fastrpc.remote_handle64()) == mismatch


@pytest.mark.parametrize("skeleton", ["Python", "C"])
def test_a_stub_in_python(made: SimpleNamespace, skeleton: str, dsp_board_factory: Any) -> None:
    some = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    types = made.types
    with dsp_board_factory(image=made.images[skeleton]), made.all_.All() as one, made.all_.Plain() as plain:

        @some
        @given(octets, octets, st.integers(0, 300), fitting(ctypes.c_int8), fitting(ctypes.c_int16))
        def sequences(x: Any, w: Any, count: int, svd: int, hidden: int) -> None:
            total = int(x.sum()) + int(w.sum()) + svd * hidden
            assert list(one.forward(x, w, count, svd, hidden)) == [(total + at) % 256 for at in range(count)]

        kinds = (ctypes.c_uint8, ctypes.c_int8, ctypes.c_int16, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint32)

        @some
        @given(st.tuples(*map(fitting, kinds)), floats, st.floats(-1e9, 1e9))
        def values(given: tuple[int, ...], h: float, i: float) -> None:
            a, b, d, e, f, g = given
            told = one.values(a, b, True, d, e, f, g, h, i, types.all_Mode.SLOW)
            assert told == pytest.approx(sum(given) + 1 + h + i + 5, abs=1e-3)

        @some
        @given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=50))
        def strings(text: str) -> None:
            assert one.strings(text, len(text.encode()) + 1) == text
            with pytest.raises(AeeError) as refused:
                one.strings(text, len(text.encode()) or 1) if text else one.strings("x", 1)
            assert refused.value.code in {Aee.AEE_EBUFFERTOOSMALL, DSP_ERROR + Aee.AEE_EBUFFERTOOSMALL}

        @some
        @given(st.lists(st.tuples(floats, st.floats(-9, 9)), max_size=5), st.integers(0, 7), fitting(ctypes.c_int64))
        def structures(points: list[tuple[float, float]], count: int, number: int) -> None:
            many = np.zeros(len(points), np.dtype(types.all_Point))
            many["x"], many["y"] = np.array(points or np.zeros((0, 2))).reshape(-1, 2).T
            p = types.all_Pair(types.all_Point(1, 2, (1, 2, 3)), types.all_Point(3, 4), types.all_Mode.LAST, number)
            q, back, told = one.pairs(p, types.all_Point(7, 8), many, count)
            assert (q.x, q.y, told.id, told.mode, list(told.a.tag)) == (8, 8, len(points), 6, [1, 2, 3])
            assert [row["id"] for row in back] == [number] * count
            assert all(back[at]["a"]["x"] == many[at]["x"] for at in range(min(count, len(many))))

        @some
        @given(st.lists(floats, max_size=40), st.floats(-4, 4, width=32))
        def in_place(numbers: list[float], factor: float) -> None:
            v = np.array(numbers, np.float32)
            expected = v * np.float32(factor)
            assert one.scale(v, factor) == pytest.approx(factor + 1)
            assert np.array_equal(v, expected)

        for check in (sequences, values, strings, structures, in_place):
            check()
        assert one.nothing() is None
        assert list(one.later([1, 2], 7, 2)) == [8, 9]
        assert [list(one.forward(x, b"", 1, 0, 0)) for x in (b"\1\2", bytearray(b"\3"), [4])] == [[3], [3], [4]]
        ro = np.zeros(2, np.float32)
        ro.flags.writeable = False
        refused_calls: list[tuple[Callable[[], Any], str]] = [
            (lambda: one.forward([300], b"", 1, 0, 0), r"input_buf is \[300\]; pass an array of uint8"),
            (lambda: one.forward("a", b"", 1, 0, 0), "input_buf is 'a'; pass an array"),
            (lambda: one.forward(None, b"", 1, 0, 0), "input_buf is None|NULL"),
            (lambda: one.forward(b"", b"", 1 << 50, 0, 0), "output_buf of .* elements"),
            (lambda: one.scale(ro, 1.0), "v is read-only, or not in one piece; pass a writable array of float32"),
            (
                lambda: one.pairs(types.all_Pair(), types.all_Point(), np.zeros(1), 1),
                "many has elements of float64; it takes all_Point",
            ),
            (lambda: one.strings("\udcff", 9), "pass a string"),
        ]
        for call, why in refused_calls:
            with pytest.raises(AeeError, match=why):
                call()
        assert plain.add((1 << 31) - 1, 1) == 1 << 31
        with pytest.raises(AeeError) as failed:
            plain.fail(-1234)
        assert failed.value.code == -1234
