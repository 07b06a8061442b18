"""IDL texts that are read, and errors with line and column."""

import ctypes
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from hbrt.cli.group import group
from hbrt.idl import c_writer, python_writer
from hbrt.idl.model import IdlError
from hbrt.idl.parser import parse

FORWARD = (
    "interface asr : remote_handle64 { AEEResult forward(in sequence<octet> input_buf, in sequence<octet> weight_buf, "
    "rout sequence<octet> output_buf, in long svd_unit, in long hidden_unit); };"
)


def test_the_words_of_the_reference() -> None:
    (one,) = parse(FORWARD)
    method = one.operations[0].method
    assert (method.number, method.word, method.input.size_bytes) == (2, 0x0203_0100, 4 * 5)
    (plain,) = parse(FORWARD.replace(" : remote_handle64", ""))
    assert plain.operations[0].method.word == 0x0003_0100
    assert not plain.has_handle


def test_layouts_are_those_of_c() -> None:
    text = """
    const long N = 3;
    struct point { octet tag[N]; double x; };
    enum mode { A, B = 7, C };
    typedef sequence<point> points;
    interface i { long m(in octet a, in long long b, in mode c, in point p, inrout points q, rout short r); };
    """
    (one,) = parse(text)
    method = one.operations[0].method
    assert method.input.offsets == [0, 8, 16, 24, 40]
    assert method.input.size_bytes == 44
    assert method.output.size_bytes == 2
    assert method.word == 0x0002_0200
    assert ctypes.sizeof(one.operations[0].parameters[3].param.kind) == 16
    assert dict(one.types[1].values) == {"A": 0, "B": 7, "C": 8}  # type: ignore[union-attr]


def test_methods_from_31_on_and_several_interfaces() -> None:
    many = "\n".join(f"long m{at}(in long a, rout long b, in sequence<float> c);" for at in range(100))
    one, other = parse(f"interface one : remote_handle64 {{ {many} }}; interface other {{ long f(); }};")
    words = [each.method.word for each in one.operations]
    assert words[28] == 0x1E02_0100
    assert words[29] == words[99] == 0x1F02_0100
    assert one.operations[29].method.input.size_bytes == 12
    assert one.operations[99].method.number == 101
    for interface in (one, other):
        for writer in (python_writer, c_writer):
            for name, text in writer.files(interface).items():
                assert interface.name in name
                if name.endswith(".py"):
                    compile(text, name, "exec")


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "1:1", "No interface"),
        ("interface a {\n  long f(in long a;\n};", "2:19", "expected"),
        ("interface a { long f() }", "1:24", ";"),
        ("interface a { long f();", "1:24", "the file ends here"),
        ("interface a { long f(in any x); };", "1:25", "no type any"),
        ("interface a { long f(out long x); };", "1:22", "rout"),
        ("interface a { long f(in sequence<sequence<octet> > x); };", "1:25", "offsets"),
        ("interface a { long f(inrout string x); };", "1:22", "sequence<char>"),
        ("interface a { float f(); };", "1:21", "code"),
        ("interface a { long f(); long f(); };", "1:30", "twice"),
        ("interface a { long f(in long x, in long x); };", "1:41", "name x"),
        ("interface a { long f(in sequence<octet> x, in long xLen); };", "1:52", "xLen"),
        ("interface a { long class(); };", "1:20", "no name"),
        ("interface a { long f(in long lambda); };", "1:30", "no name"),
        ("interface a { long close(); };", "1:20", "runtime"),
        ("interface a { long METHODS(); };", "1:20", "runtime"),
        ("interface a { long f(in long memcpy); };", "1:30", "used by what is generated"),
        ("struct s { long x; }; interface a { long f(in s s, in s t); };", "1:49", "s is a type or a constant"),
        (
            "const long N = 3; struct s { long N; }; interface a { long f(in s x); };",
            "1:35",
            "N is a type or a constant",
        ),
        ("interface a : b { long f(); };", "1:15", "remote_handle64"),
        ("struct s { string x; }; interface a { long f(); };", "1:19", "fixed size"),
        ("struct s { long x[0]; }; interface a { long f(); };", "1:19", "elements"),
        ("struct s { long x; long x; }; interface a { long f(); };", "1:25", "twice"),
        ("enum e { A = 99999999999 }; interface a { long f(); };", "1:14", "32 bits"),
        ("enum e { A, A }; interface a { long f(); };", "1:13", "twice"),
        ('#include "other.idl"\ninterface a { long f(); };', "1:1", "other.idl"),
        ("interface a { long f(in long @); };", "1:30", "stands here"),
        (
            "interface a {\n long f(" + ", ".join(f"in sequence<octet> x{at}" for at in range(256)) + "); };",
            "2:7",
            "0 to 255 input buffers",
        ),
    ],
)
def test_an_error_has_its_line_and_column(text: str, where: str, what: str) -> None:
    with pytest.raises(IdlError) as refused:
        parse(text, "x.idl")
    assert str(refused.value).startswith(f"x.idl:{where}: ")
    assert what in str(refused.value)


@given(st.text(alphabet='interface a{}();long,<>sequence in rout=0x1#/*"\n:'))
def test_no_text_raises_anything_else(text: str) -> None:
    for one in (text, f"interface a {{ long f({text}); }};"):
        try:
            parse(one)
        except IdlError as error:
            assert str(error).startswith("FILE.idl:")  # noqa: PT017 - most texts are refused, some are not


def test_the_verb_writes_files_or_says_where_the_error_is(tmp_path: Path) -> None:
    source = tmp_path / "asr.idl"
    source.write_text(FORWARD)
    done = CliRunner().invoke(group, ["idl", str(source), "--out", str(tmp_path / "made"), "--lang", "c"])
    assert done.exit_code == 0
    names = ["asr.h", "asr_skel.c", "asr_stub.c"]
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == names
    source.write_text("interface asr {\n  long f(in x y);\n};\n")
    done = CliRunner().invoke(group, ["idl", str(source), "--out", str(tmp_path / "none")])
    assert (done.exit_code, "asr.idl:2:13: There is no type x" in done.output) == (1, True)
    assert not (tmp_path / "none").exists()
