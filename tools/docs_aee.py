"""The headers AEEStdErr.h of programs and of images, out of the table of fastrpc/wire/aee.py."""

from __future__ import annotations

from fastrpc.wire.aee import DSP_ERROR, Aee
from tools.packages import REPOSITORY

_NATIVE = REPOSITORY / "packages/hbrt-fastrpc/src/fastrpc/native"
HEADERS = {_NATIVE / "include/fastrpc/stddef/AEEStdErr.h": 0, _NATIVE / "dsp/include/AEEStdErr.h": DSP_ERROR}
"""The offset of the codes by header; images search that of the DSP first."""

_SAME = {"AEE_SUCCESS", "AEE_EUNKNOWN", "AEE_ENOSUCH", "AEE_EINTERRUPTED", "AEE_ECONNRESET", "AEE_EWOULDBLOCK"}
_SAME |= {"AEE_ESTUBSKELVERMISMATCH"}  # emulator's choice: the stub expects it without an offset
"""Codes without the offset on the DSP, too."""


def text(offset: int) -> str:
    """A header."""
    rows = []
    for name, one in Aee.__members__.items():
        value = str(one.value) if one.value >= 0 else f"({one.value})"
        if offset and name not in _SAME:
            value = f"((int)(AEE_EOFFSET + {value}u))"
        rows.append(f"#define {name} {value} /* {Aee.SENTENCES[name]} */")
    return "\n".join(
        [
            f"/* Codes of FastRPC {'on the DSP' if offset else 'in programs'}, out of fastrpc/wire/aee.py.",
            " *",
            " * Source: qualcomm/fastrpc, AEEStdErr.h, for names and values, https://github.com/qualcomm/fastrpc",
            " */",
            "#ifndef HBRT_FASTRPC_AEESTDERR_H",
            "#define HBRT_FASTRPC_AEESTDERR_H",
            "",
            f"#define AEE_EOFFSET {f'{offset:#x}' if offset else 0}",
            *rows,
            "",
            "#endif",
            "",
        ]
    )


if __name__ == "__main__":
    for header, offset in HEADERS.items():
        header.write_text(text(offset), encoding="utf-8")
