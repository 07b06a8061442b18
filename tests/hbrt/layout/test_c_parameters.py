"""Which structures a C program fills its input blocks with."""

from __future__ import annotations

from pathlib import Path

import pytest

from hbrt.layout.c_parameters import parameters_of_call
from hbrt.layout.structure import LayoutError
from hbrt.native.files import include_dir

BEGIN = """
#include <string.h>
#include "dsp/hb_dsp.h"
#include "dsp/nn/hb_dsp_nn.h"
#include "mine.h"
typedef struct { int32_t a; uint64_t b; } Held;
struct Named { uint32_t a; };
struct Other { uint32_t a; };
struct Row { hbSysMem block; };
hbDSPTask_t task;
hbSysMem out;
hbDSPRpcCtrlParam ctrl;
hbSysMem *pick(const void *);
"""
CALL = "  hbDSPRpc(&task, {}, &out, &ctrl); /* it */\n"
USES = {
    "declaration": ("c", "Held *p = in.virAddr; p->a = 1;", "&in", ["Held"]),
    "cast": ("c", "((const struct Named *)in.virAddr)->a;", "&in", ["Named"]),
    "assignment": ("c", "Held *p; p = (in.virAddr); p->a = 1;", "(&in)", ["Held"]),
    "copy": ("c", "Mine m; memcpy(in.virAddr, &m, sizeof m);", "&in", ["Mine"]),
    "another's copy": ("c", "Mine m; memcpy(&m, in.virAddr, sizeof m);", "&in", []),
    "argument": ("c", "void take(Held *); take(in.virAddr);", "&in", ["Held"]),
    "bytes": (
        "c",
        "char *p = in.virAddr; struct Named *q = (struct Named *)((char *)in.virAddr + 8);",
        "&in",
        ["Named"],
    ),
    "several": ("c", "Held *p = in.virAddr; struct Named *q = in.virAddr;", "&in", ["Held", "Named"]),
    "of a pointer": ("c", "hbSysMem *m = &in; Held *p = m->virAddr;", "m", ["Held"]),
    "of a field": ("c", "", "&row->block", ["Named"]),
    "of an element": ("c", "Held *p = two[0].virAddr; struct Named *q = two[1].virAddr;", "&two[1]", ["Named"]),
    "the runtime's own": ("c", "hbDSPSoftmaxParam *p = in.virAddr;", "&in", []),
    "unknown to the compiler": ("c", "struct Far *p = in.virAddr;", "&in", []),
    "what a function makes of it": ("c", "struct Named *p = (struct Named *)pick(in.virAddr);", "&in", []),
    "output": ("c", "struct Named *p = out.virAddr;", "&in", []),
    "C++ cast": ("cc", "auto *p = static_cast<Held *>(in.virAddr); (void)p;", "&in", ["Held"]),
    "C++ reference": ("cc", "Held &p = *reinterpret_cast<Held *>(in.virAddr); p.a = 1;", "&in", ["Held"]),
    "C++ copy": ("cc", "const Mine m{}; std::memcpy(in.virAddr, &m, sizeof m);", "&in", ["Mine"]),
}


@pytest.mark.parametrize("use", USES)
def test_structures_of_the_input_block_of_a_call(tmp_path: Path, use: str) -> None:
    suffix, text, block, expected = USES[use]
    (tmp_path / "mine.h").write_text("typedef struct { uint8_t a; uint16_t b; } Mine;\n")
    source = tmp_path / f"program.{suffix}"
    source.write_text(
        f"{BEGIN}void fill(struct Row *row) {{ struct Named *p = (struct Named *)row->block.virAddr; p->a = 1; }}\n"
        "void others(hbSysMem in) { struct Other *p = (struct Other *)in.virAddr; p->a = 1; }\n"
        f"void call(struct Row *row, hbSysMem in, hbSysMem *two) {{\n  {text}\n{CALL.format(block)}}}\n"
    )
    line = next(at for at, one in enumerate(source.read_text().splitlines(), 1) if "/* it */" in one)
    assert [one.name for one in parameters_of_call(source, line, include_dir("arm"))] == expected
    assert parameters_of_call(source, line - 1, include_dir("arm")) == []


def test_a_structure_that_no_dsp_can_have_is_refused_unless_a_header_is_missing(tmp_path: Path) -> None:
    source = tmp_path / "program.cc"
    text = (
        "struct Base { int a; }; struct Heir : Base { int b; };\n"
        "void call(hbDSPTask_t t, hbSysMem in, hbDSPRpcCtrlParam c) {"
        " auto p = (Heir *)in.virAddr; p->a = 1; hbDSPRpc(&t, &in, 0, &c); }\n"
    )
    source.write_text(f'#include "dsp/hb_dsp.h"\n{text}')
    with pytest.raises(LayoutError, match=r"program\.cc:2: Heir has a base class"):
        parameters_of_call(source, 3, include_dir("arm"))
    source.write_text(f'#include "dsp/hb_dsp.h"\n#include "far.h"\n{text}')
    assert parameters_of_call(source, 4, include_dir("arm")) == []


def test_a_deep_source_is_read_to_its_end(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    chain = " else ".join(f"if (x == {n}) x = 7;" for n in range(2000))
    text = "struct P { int a; uint64_t b; };\nint call(int x, hbSysMem in, hbDSPTask_t t, hbDSPRpcCtrlParam c) {"
    text += f" struct P *p = in.virAddr; p->a = 1;\n{chain}\nreturn hbDSPRpc(&t, &in, 0, &c); }}\n"
    source.write_text(f'#include "dsp/hb_dsp.h"\n{text}')
    assert [one.name for one in parameters_of_call(source, 5, include_dir("arm"))] == ["P"]
