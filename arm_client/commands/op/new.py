"""Writing an op from the template: what its files are called, which names and numbers it may have."""

from __future__ import annotations

import ast
import keyword
import re
from pathlib import Path
from typing import NamedTuple

from arm_client.commands.op.kinds import ARRAYS, TEMPLATE, rendered, words_of
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_CV_B, HB_DSP_RPC_CMD_CV_E, HB_DSP_RPC_CMD_NN_B

C_KEYWORDS = frozenset({
    "auto", "bool", "case", "char", "const", "default", "do", "double", "enum", "extern", "false", "float", "goto",
    "inline", "int", "long", "register", "restrict", "short", "signed", "sizeof", "static", "struct", "switch", "true",
    "typedef", "typeof", "union", "unsigned", "void", "volatile",
})  # fmt: skip
FIRST_CUSTOM = HB_DSP_RPC_CMD_CV_E + 1


class OpError(ValueError):
    """An op cannot be written like that; the message says why, and nothing was written."""


class NewOp(NamedTuple):
    """An op to write.

    Attributes:
        name: Of the op, and in the names of its files.
        cmd: Its command number.
        way: What the image is written in, of WAYS; the program and the test are Python either way.
        kind: What it computes, of KINDS.
        dtype: Of its elements, of DTYPES.
        halo: Rows and columns of neighbours that an element of an image needs on each side.
    """

    name: str
    cmd: int
    way: str = "numpy"
    kind: str = "elementwise"
    dtype: str = "float32"
    halo: int = 1

    @property
    def files(self) -> dict[str, str]:
        """Names of the files, and the template of each."""
        suffix = "c" if self.way == "c" else "py"
        return {
            f"{self.name}_param.py": "param.py.in",
            f"{self.name}_image.{suffix}": f"image.{suffix}.in",
            f"call_{self.name}.py": "call.py.in",
            f"test_{self.name}.py": "test.py.in",
            **({f"{self.name}_param.h": "param.h.in"} if self.way == "c" else {}),
        }

    def render(self, template: str) -> str:
        """Text of a file."""
        return rendered(TEMPLATE / template, words_of(self))

    @property
    def check_line(self) -> str:
        """The command that compares it with its reference."""
        check = (
            f"hbrt op check {self.cmd:#x} --against call_{self.name}.py:expected --params call_{self.name}.py:params"
        )
        dtype = "" if self.dtype == "float32" else f" --dtype {self.dtype}"
        return check + dtype + (" --shape 1-300x1-640" if self.kind in ARRAYS else "")


def check_op(op: NewOp) -> None:
    """Refuse names that are none, and numbers that are not for custom ops.

    Raises:
        OpError: as said.
    """
    name, cmd = op.name, op.cmd
    if not (name.isascii() and name.isidentifier()) or not name[0].isalpha() or keyword.iskeyword(name):
        raise OpError(
            f"{name!r} cannot name an op: it becomes a Python function and part of file names. Use letters, digits and "
            "'_', a letter first, and no keyword of Python."
        )
    if name.startswith("test"):
        raise OpError(f"{name!r} cannot name an op: pytest takes functions whose names begin with 'test' for tests.")
    if op.halo != 1 and op.kind != "image":
        raise OpError(f"--halo is for --kind image; elements of --kind {op.kind} need no neighbours.")
    if name in _names_used(op):
        raise OpError(f"{name!r} is a name that the written programs use themselves; choose another one.")
    last = HB_DSP_RPC_CMD_BUTT - 1
    if FIRST_CUSTOM <= cmd <= last:
        return
    if not 0 <= cmd <= HB_DSP_RPC_CMD_BUTT:
        whose = "is no command number"
    elif cmd == HB_DSP_RPC_CMD_BUTT:
        whose = "lists the registered commands"
    elif cmd < HB_DSP_RPC_CMD_NN_B:
        whose = "is reserved for the framework"
    else:
        whose = f"belongs to the packaged {'NN' if cmd < HB_DSP_RPC_CMD_CV_B else 'CV'} ops"
    raise OpError(f"Command {cmd:#x} {whose}; an op of your own takes {FIRST_CUSTOM:#x} to {last:#x}.")


def _names_used(op: NewOp) -> set[str]:
    """Every name in the files of an op but its own, and for C the keywords."""
    sample = op._replace(name="q")
    names: set[str] = set()
    for template in sample.files.values():
        text = sample.render(template)
        if ".c" in template or ".h" in template:
            code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
            names |= C_KEYWORDS | set(re.findall(r"\b[A-Za-z_]\w*", code))
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    names.add(name)
                case ast.alias(name=name, asname=asname):
                    names.add(asname or name.partition(".")[0])
    return names - {"q"}


def write_op(op: NewOp, directory: Path) -> list[Path]:
    """Write the files of an op; makes the directory. Either all are written or none.

    Raises:
        OpError: the name, the number, or a file that is there already. OSError: the directory cannot be written.
    """
    check_op(op)
    paths = {directory / file: op.render(template) for file, template in op.files.items()}
    if existing := [path for path in paths if path.exists() or path.is_symlink()]:
        raise OpError(f"{existing[0]} exists already; nothing was written. Choose another name, or --dir.")
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        for path, text in paths.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written
