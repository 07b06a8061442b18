"""IDL texts that are read, and errors with line and column."""

import ctypes
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from fastrpc.idl import c_writer, python_writer
from fastrpc.idl.model import IdlError, Interface
from fastrpc.idl.parser import parse
from hbrt.cli.group import group
from tests.each import each
from tests.shared import in_process

FORWARD = (
    "interface asr : remote_handle64 { AEEResult forward(in sequence<octet> input_buf, in sequence<octet> weight_buf, "
    "rout sequence<octet> output_buf, in long svd_unit, in long hidden_unit); };"
)


def words(interface: Interface) -> list[int]:
    """The scalar words of an interface's methods."""
    return [one.method.word for one in interface.operations]


def test_the_words_of_the_reference() -> None:
    (one,) = parse(FORWARD).interfaces
    method = one.operations[0].method
    assert (method.number, method.word, method.input.size_bytes) == (2, 0x0203_0100, 4 * 5)
    (plain,) = parse(FORWARD.replace(" : remote_handle64", "")).interfaces
    assert words(plain) == [0x0003_0100]
    assert not plain.has_handle


def test_layouts_are_those_of_c() -> None:
    text = """
    const long N = 3;
    struct point { octet tag[N]; double x; };
    enum mode { A, B = 7, C };
    typedef sequence<point> points;
    interface i { long m(in octet a, in long long b, in mode c, in point p, inrout points q, rout short r); };
    """
    made = parse(text)
    (one,) = made.interfaces
    method = one.operations[0].method
    assert method.input.offsets == [0, 8, 16, 24, 40, 44]  # an inrout sequence has two lengths
    assert method.input.size_bytes == 48
    assert method.output.size_bytes == 2
    assert method.word == 0x0002_0200
    assert ctypes.sizeof(method.params[3].kind) == 16
    assert dict(made.types[1].values) == {"A": 0, "B": 7, "C": 8}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("parameters", "sizes"),  # as in the public stub of ModalAI's io_rpc
    [
        ("in long a, in octet b, in octet c", (8, 0)),
        ("in long a, in octet b, rout short c", (8, 2)),
        ("in octet a, rout octet b, rout long long c, rout octet d", (1, 24)),
        ("in long a, inrout sequence<octet> b", (12, 0)),
    ],
)
def test_a_block_ends_like_a_structure(parameters: str, sizes: tuple[int, int]) -> None:
    (one,) = parse(f"interface i {{ long m({parameters}); }};").interfaces
    method = one.operations[0].method
    assert (method.input.size_bytes, method.output.size_bytes) == sizes


def test_methods_from_31_on_and_several_interfaces() -> None:
    many = "\n".join(f"long m{at}(in long a, rout long b, in sequence<float> c);" for at in range(100))
    made = parse(f"interface one : remote_handle64 {{ {many} }}; interface other {{ long f(); }};", "many.idl")
    one, other = made.interfaces
    assert words(one)[28] == 0x1E02_0100
    assert words(one)[29] == words(one)[99] == 0x1F02_0100
    assert one.operations[29].method.input.size_bytes == 12
    assert (one.operations[99].number, other.operations[0].number) == (101, 0)
    written = [*python_writer.files(made), *c_writer.files(made)]
    assert written == [
        *("many_idl.py", "many_stub.py", "many_skel.py"),
        *("other.h", "one.h", "many.h", "many_stub.c", "many_skel.c"),
    ]
    for name, text in python_writer.files(made).items():
        compile(text, name, "exec")


@each(
    "text, where, what",
    [
        ("", "1:1", "Nothing is declared"),
        ("interface a {\n  long f(in long a;\n};", "2:19", "expected"),
        ("interface a { long for(); };", "1:20", "a keyword of C"),
        ("interface a : remote_handle64 { long close(); };", "1:38", "remote_handle64"),
        ("interface a : b { long f(); };", "1:15", "Unknown interface b"),
        ("struct s { string x[2]; }; interface a { long f(); };", "1:19", "fixed size"),
        ("interface a { long f(inrout dmahandle x); };", "1:22", "in parts"),
        ("typedef sequence<octet> b; interface a { long f(inrout sequence<b> x); };", "1:49", "in parts"),
        ("const long A = B; interface a { long f(); };", "1:16", "Unknown constant B"),
        ("const long A = 1 +; interface a { long f(); };", "1:16", "not an integer"),
        ("\n#if 1\ninterface a { long f(); };", "2:1", "Unterminated"),
        ("#error not for this board\ninterface a { long f(); };", "1:1", "not for this board"),
        ('#include "other.idl"\ninterface a { long f(); };', "1:1", "other.idl"),
        ("interface a { long f() }", "1:24", ";"),
        ("interface a { long f();", "1:24", "unexpected end of file"),
        ("interface a { long f(in any x); };", "1:25", "Unknown type any"),
        ("interface a { long f(out long x); };", "1:22", "rout"),
        ("interface a { long f(in sequence<sequence<octet> > x); };", "1:25", "typedef"),
        ("interface a { long f(inrout string x); };", "1:22", "sequence of numbers"),
        ("interface a { float f(); };", "1:21", "a 32-bit code"),
        ("interface a { async long f(rout long x); };", "1:26", "f is async: its outputs are sequences"),
        ("interface a { async long f(in sequence<string> x); };", "1:26", "its inputs in one piece"),
        ("interface a { async long f(rout string x); };", "1:26", "f is async"),
        ("interface a { long f(); long f(); };", "1:30", "twice"),
        ("interface a { long f(in long x, in long x); };", "1:41", "name x"),
        ("interface a { long f(in sequence<octet> x, in long xLen); };", "1:52", "xLen"),
        ("struct s { long x; }; interface a { long f(in s s, in s t); };", "1:49", "s is a type or a constant"),
        (
            "const long N = 3; struct s { long N; }; interface a { long f(in s x); };",
            "1:35",
            "N is a type or a constant",
        ),
        ("struct s { long x[0]; }; interface a { long f(); };", "1:19", "elements"),
        ("struct s { long x; long x; }; interface a { long f(); };", "1:25", "twice"),
        ("enum e { A = 99999999999 }; interface a { long f(); };", "1:14", "32 bits"),
        ("enum e { A, A }; interface a { long f(); };", "1:13", "twice"),
        ("interface a { long f(in long @); };", "1:30", "unexpected"),
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
    assert (done.exit_code, "asr.idl:2:13: Unknown type x" in done.output) == (1, True)
    assert not (tmp_path / "none").exists()


def header_of(text: str) -> str:
    return c_writer.files(parse(text, "x.idl"))["x.h"]


def test_directives_are_obeyed() -> None:
    text = """
    #define COUNT 3
    interface a : remote_handle64 {
      long first(in long a);
    #if 0
      long gone(in long a);
    #elif COUNT > 2
      struct s { long x[COUNT];
    #ifdef NEVER
    #error never
        double y;
    #endif
        long z; };
    #endif
      long second(in s a);
    };
    #endif_is_not_here
    """.replace("#endif_is_not_here", "")
    (one,) = parse(text).interfaces
    assert [(each.name, each.number) for each in one.operations] == [("first", 2), ("second", 3)]
    assert one.operations[1].method.input.size_bytes == 16


def test_names_in_c_have_their_scope_in_front(tmp_path: Path) -> None:
    text = """
    module left {
      interface eye { const long MAX = 1 << 3; enum side { A, B }; long look(in side at, rout long seen); };
    };
    module right {
      interface ear : left::eye { long hear(); };
      interface eye { long open(in string lambda); void pass(in long uri); long far(in left::eye::side s); };
    };
    """
    header = header_of(text)
    for wanted in (
        "#define left_eye_MAX 8",
        "int left_eye_look(left_eye_side at, int32_t *seen)",
        "int right_eye_open(const char *lambda)",
        "void right_eye_pass(int32_t uri)",
        "int right_ear_look(left_eye_side at, int32_t *seen)",
        "right_eye_far(left_eye_side s)",
    ):
        assert wanted in header
    made = python_writer.files(parse(text, "x.idl"))
    assert "def open_(self, lambda_: str)" in made["x_stub.py"]
    for name, written in made.items():
        compile(written, name, "exec")


def test_keywords_of_cpp_are_names(tmp_path: Path) -> None:
    header = header_of(
        "struct s { long new; string class; }; enum e { template, B }; "
        "interface a { long f(in long delete, rout sequence<octet> this, in s x); };"
    )
    assert "  int32_t new;\n" in header, "C has the names of the IDL file"
    (tmp_path / "FILE.h").write_text(header)
    use = "int32_t all(s *x) { return x->new_ + x->classLen + *x->class_ + template_; }"
    (tmp_path / "use.cc").write_text(f'#include "FILE.h"\n{use}\n')
    answer = in_process("cc", "-c", "-Wall", "-Werror", tmp_path / "use.cc", "-o", tmp_path / "use.o")
    assert answer.exit_code == 0, answer.output


def test_a_pragma_is_ignored_with_a_note(tmp_path: Path) -> None:
    source = tmp_path / "p.idl"
    source.write_text("#pragma once\n#pragma pack(push, 1)\ninterface a {\n#pragma GCC x\n  long f(); };\n")
    answer = CliRunner().invoke(group, ["idl", str(source), "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "/p.idl:2:1: Ignored #pragma pack(push, 1): it has no effect in an IDL file.\n" in answer.stderr
    assert [note.partition(": ")[0] for note in parse(source.read_text()).notes] == ["FILE.idl:2:1", "FILE.idl:4:1"]


def test_included_files_are_read_and_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "base.idl").write_text(
        '#ifndef BASE\n#define BASE\n#include "AEEStdDef.idl"\nstruct point { long x; };\n'
        "interface calc { long one(in point p); };\n#endif BASE\n"
    )
    source = tmp_path / "more" / "derived.idl"
    source.parent.mkdir()
    source.write_text(
        '#include "base.idl"\n#include "AEEStdErr.idl"\ninterface more : calc { long two(in point p); };\n'
    )
    made = parse(source.read_text(), str(source), [tmp_path])
    (one,) = made.interfaces
    assert [(each.name, each.number) for each in one.operations] == [("one", 0), ("two", 1)]
    assert (made.types, set(made.includes)) == ((), {"AEEStdErr", "base"})
    assert '#include "base.h"' in c_writer.files(made)["derived.h"]


def test_layouts_of_parameters_in_parts_are_those_of_the_vendors_stubs() -> None:
    """Blocks and buffers of adsp_listener_next_invoke, as its public stub has them."""
    text = """
    interface listener {
      typedef sequence<uint8> buffer;
      long next(in uint32 ctx, in long result, in sequence<buffer> out_bufs, rout uint32 c, rout uint32 h,
                rout uint32 sc, rout sequence<buffer> in_bufs, rout sequence<long> lengths, rout sequence<long> more);
    };
    """
    stub = c_writer.files(parse(text, "x.idl"))["x_stub.c"]
    assert "uint8_t _in[24] = {0};" in stub
    assert "uint8_t _out[12] = {0};" in stub
    assert "memcpy(_in + 12, &_v, sizeof _v)" in stub
    assert "memcpy(&(*_p5), _out + 8, sizeof (*_p5))" in stub


def test_text_that_is_nested_too_deeply_or_too_large_is_refused() -> None:
    deep = "module m { " * 2000 + "interface i { long f(); };" + " };" * 2000
    for text in (deep, f"interface i {{ long f(in {'sequence<' * 2000}long{'>' * 2000} a); }};"):
        with pytest.raises(IdlError):
            parse(text)
    huge = "struct a { octet x[1048575]; }; struct b { a x[1048575]; }; struct c { b x[1048575]; };"
    with pytest.raises(IdlError, match="b has 1099509530625 bytes; a structure has at most"):
        parse(huge + "interface i { long f(in c x); };")


def test_constants_are_the_same_in_c_and_python() -> None:
    made = parse(
        r'interface i { const long A = 007; const long B = -010; const string C = "a\\"; const long D = 0x1F;'
        " const double E = -2e3; };"
    )
    assert [one.text for one in made.constants] == ["7", "-8", r'"a\\"', "0x1F", "-2e3"]
    exec(compile("\n".join(f"{one.name} = {one.text}" for one in made.constants), "", "exec"))  # noqa: S102 - as Python
    for bad in (r'const string A = "\"', "const long A = 08", r'const string A = "\q"'):
        with pytest.raises(IdlError):
            parse(f"interface i {{ {bad}; }};")
