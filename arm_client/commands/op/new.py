"""Writing an op from the template: its file names, and valid names and numbers."""

from __future__ import annotations

import ast
import keyword
import re
from pathlib import Path

from arm_client.commands.op.kinds import NewOp
from hbrt.errors import WrongUseError
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_CV_B, HB_DSP_RPC_CMD_CV_E, HB_DSP_RPC_CMD_NN_B

C_KEYWORDS = frozenset({
    "auto", "bool", "case", "char", "const", "default", "do", "double", "enum", "extern", "false", "float", "goto",
    "inline", "int", "long", "register", "restrict", "short", "signed", "sizeof", "static", "struct", "switch", "true",
    "typedef", "typeof", "union", "unsigned", "void", "volatile",
})  # fmt: skip
FIRST_CUSTOM = HB_DSP_RPC_CMD_CV_E + 1


class OpError(WrongUseError):
    """An op cannot be created with these choices; the message says why, and nothing was written."""


def check_op(op: NewOp) -> None:
    """Refuse invalid names, and numbers that are not for custom ops.

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
        raise OpError(f"{name!r} cannot name an op: pytest would collect functions whose names begin with 'test'.")
    if op.halo != 1 and op.kind != "image":
        raise OpError(f"--halo is for --kind image; elements of --kind {op.kind} need no neighbors.")
    if name in _names_used(op):
        raise OpError(f"{name!r} cannot name an op: the generated programs use this name. Choose another one.")
    last = HB_DSP_RPC_CMD_BUTT - 1
    if FIRST_CUSTOM <= cmd <= last:
        return
    if not 0 <= cmd <= HB_DSP_RPC_CMD_BUTT:
        whose = "is not a command number"
    elif cmd == HB_DSP_RPC_CMD_BUTT:
        whose = "lists the registered commands"
    elif cmd < HB_DSP_RPC_CMD_NN_B:
        whose = "is reserved for the framework"
    else:
        whose = f"belongs to the packaged {'NN' if cmd < HB_DSP_RPC_CMD_CV_B else 'CV'} ops"
    raise OpError(f"Command {cmd:#x} {whose}; your own op takes {FIRST_CUSTOM:#x} to {last:#x}.")


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
    """Write the files of an op; makes the directory. All are written, or none.

    Raises:
        OpError: the name, the number, or a file that already exists. OSError: the directory cannot be written.
    """
    check_op(op)
    paths = {directory / file: op.render(template) for file, template in op.files.items()}
    if existing := [path for path in paths if path.exists() or path.is_symlink()]:
        raise OpError(f"{existing[0]} already exists; nothing was written. Choose another name, or --dir.")
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        for path, text in paths.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if written and isinstance(error, OSError) and error.filename is None:  # a full disk: 'write' names no file
            error.filename = str(written[-1])
        raise
    return written
