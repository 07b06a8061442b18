"""What is read of C and C++ declarations, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hbrt.layout.c_declaration import of_declaration
from hbrt.layout.structure import LayoutError, Structure


def read(directory: Path, text: str, name: str = "P", file: str = "p.h") -> Structure:
    path = directory / file
    path.write_text(text)
    return of_declaration(path, name)


def leaves(structure: Structure) -> list[str]:
    return [f"{leaf.offset} {leaf.name} {leaf.c_type}" for leaf in structure.leaves()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("typedef struct { uint8_t a; /* not\nb */ uint64_t c; } P; // end", ["0 a uint8_t", "8 c uint64_t"]),
        ("struct __attribute__((packed)) P { char a; double b; };", ["0 a char", "1 b double"]),
        ("#pragma pack(push, 2)\nstruct P { char a; int b; };\n#pragma pack(pop)", ["0 a char", "2 b int"]),
        ("#define N (2 * 2)\nstruct P { float a[N][3]; };", ["0 a float[4][3]"]),
        ("#ifndef G\n#define G\n#include <nothere.h>\nstruct P { bool a; };\n#endif", ["0 a _Bool"]),
        ("enum { N = 5 };\ntypedef float row_t[N];\nstruct P { row_t a[2]; };", ["0 a float[2][5]"]),
        ("typedef enum { X, Y } mode_t;\nstruct P { mode_t a; enum { Z } b; };", ["0 a mode_t", "4 b enum"]),
        ("struct Q { char a; short b; };\nstruct P { struct Q q[3]; };", ["0 q[0].a char", "2 q[0].b short"]),
        ("struct P { union { int a; float b; }; struct { int c; } d; };", ["0 a int", "0 b float", "4 d.c int"]),
        ("struct P { unsigned a : 3; unsigned : 2; int b : 7; };", ["0 a unsigned int:3", "0 b int:7"]),
        ("struct P { const volatile uint32_t a; float b[]; };", ["0 a uint32_t", "4 b float[0]"]),
        ("struct P { char a; uint32_t b __attribute__((aligned(16))); };", ["0 a char", "16 b uint32_t"]),
        ("vec_t f(vec_t v) { return IVP(v); }\nstruct P { int a; };", ["0 a int"]),
    ],
)
def test_what_c_has_is_read(text: str, expected: list[str], tmp_path: Path) -> None:
    found = [re.sub(r"enum \(.*\)", "enum", line) for line in leaves(read(tmp_path, text))]
    assert found == expected


def test_a_field_has_its_line(tmp_path: Path) -> None:
    structure = read(tmp_path, "#include <stdint.h>\ntypedef struct {\n  int a;\n  // b\n  int b;\n} P;")
    assert structure.site == f"{tmp_path / 'p.h'}:2"
    assert [field.site for field in structure.fields] == [f"{tmp_path / 'p.h'}:{line}" for line in (3, 5)]


def test_types_that_a_32_bit_dsp_has_in_another_size(tmp_path: Path) -> None:
    text = "struct P { long a; size_t b; void *c; long double d; long long e; void (*f)(); };"
    assert [field.dsp_bytes for field in read(tmp_path, text).fields] == [4, 4, 4, 8, None, 4]


def test_headers_and_macros_that_the_user_names(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "types.h").write_text("typedef short number_t;\n")
    file = tmp_path / "p.c"
    file.write_text('#include "types.h"\nstruct P { number_t a[N]; };')
    assert leaves(of_declaration(file, "P", [tmp_path / "other"], ["N=7"])) == ["0 a number_t[7]"]
    with pytest.raises(
        LayoutError, match=r"p\.c:2: unknown type name 'number_t'.*Missing headers: types\.h; give .* -I\."
    ):
        of_declaration(file, "P", [], ["N=7"])


def test_cpp_is_read_where_the_suffix_says_so(tmp_path: Path) -> None:
    text = "namespace ours { enum class Mode : uint8_t { A }; struct P { Mode a; bool b; int32_t c = 3; }; }"
    structure = read(tmp_path, text, file="p.hpp")
    assert [(field.name, field.offset, str(field.kind)) for field in structure.fields] == [
        ("a", 0, "enum"),
        ("b", 1, "bool"),
        ("c", 4, "integer"),
    ]
    with pytest.raises(LayoutError, match="base class or virtual functions"):
        read(tmp_path, "struct Q { int a; }; struct P : Q { int b; };", file="p.cc")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"p\.h declares no struct or union 'P'. It declares none\."),
        ("struct Pa { int a; };", r"declares no struct or union 'P'. It has Pa\."),
        ("struct P;", r"no struct or union 'P'"),
        ("struct P {};", r"p\.h:1: P has no fields of known size\."),
        ("\nstruct P { Unknown a; };", r"p\.h:2: unknown type name 'Unknown'\."),
        ("typedef struct { Unknown a; } Q;\nstruct P { Q q; };", r"p\.h:1: unknown type name 'Unknown'\."),
        ("struct P { int a[M]; };", r"p\.h:1: use of undeclared identifier 'M'\."),
        ("typedef int row_t[M];\nstruct P {\n row_t a; };", r"p\.h:1: use of undeclared identifier 'M'\."),
        ("struct P { struct Q q; };", r"p\.h:1: field has incomplete type 'struct Q'\."),
        ("struct P { int a; int a; };", r"p\.h:1: duplicate member 'a'\."),
        ("struct P { _Float16 a; };", r"p\.h:1: a has type _Float16, which ARM programs do not support"),
        ("struct P { int a\n", r"p\.h:1: expected ';' at end of declaration list\."),
        ("\0\1\2", r"declares no struct or union 'P'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=sentence):
        read(tmp_path, text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("struct P{int a;}*[]():3#\n\\\"'/uin8_"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    try:
        structure = read(tmp_path, text + "\nstruct P { int a; };")
    except LayoutError:
        return
    assert structure.fields
