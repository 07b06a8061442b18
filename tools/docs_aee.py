"""AEEStdErr.h, out of the table of fastrpc/wire/aee.py."""

from __future__ import annotations

from fastrpc.wire.aee import Aee
from tools.packages import REPOSITORY

HEADER = REPOSITORY / "packages/hbrt-fastrpc/src/fastrpc/native/include/fastrpc/stddef/AEEStdErr.h"


def text() -> str:
    """The header."""
    rows = []
    for name, one in Aee.__members__.items():
        value = one.value if one.value >= 0 else f"({one.value})"
        rows.append(f"#define {name} {value} /* {one.sentence} */")
    return "\n".join(
        [
            "/* Codes of FastRPC, out of fastrpc/wire/aee.py.",
            " *",
            " * Source: qualcomm/fastrpc, AEEStdErr.h, for names and values, https://github.com/qualcomm/fastrpc",
            " */",
            "#ifndef HBRT_FASTRPC_AEESTDERR_H",
            "#define HBRT_FASTRPC_AEESTDERR_H",
            "",
            *rows,
            "",
            "#endif",
            "",
        ]
    )


if __name__ == "__main__":
    HEADER.write_text(text(), encoding="utf-8")
