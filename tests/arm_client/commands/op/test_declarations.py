"""What of a Python file a name of it needs."""

from __future__ import annotations

import ast

from arm_client.commands.op.declarations import needed_for
from tests.each import each

PROGRAM = """
from __future__ import annotations
import ctypes, sys
import numpy as np
import arm_client as hb
sys.path.insert(0, "lib")
from mine import *

N = 4
SIZE = N * 2
board = hb.connect()
print("run")

def word():
    return ctypes.c_uint32 * SIZE

class Base(ctypes.Structure):
    pass

Base._fields_ = [("words", word())]

class Param(Base):
    _fields_ = [("x", ctypes.c_int)]

    def send(self):
        return board.call(self)

try:
    from numpy import float16 as half
except ImportError:
    half = None
Item = np.dtype([("a", half)])
for _ in range(3):
    board.ping()
if __name__ == "__main__":
    Param = None
"""


@each(
    "name, kept",
    [
        (
            "Param",
            ["import ctypes, sys", "N = 4", "SIZE = N * 2", "def word", "class Base", "Base._fields_", "class Param"],
        ),
        ("Item", ["import ctypes, sys", "import numpy as np", "try", "Item = "]),
        ("N", ["import ctypes, sys", "N = 4"]),
    ],
)
def test_what_the_program_does_is_left_out(name: str, kept: list[str]) -> None:
    found = needed_for(name, PROGRAM, "program.py")
    assert found is not None
    lines = [ast.unparse(node) for node in found.body]
    always = ["from __future__", "sys.path.insert", "from mine import *"]
    assert len(lines) == len(kept) + len(always), lines
    for beginning in (*kept, *always):
        assert [line for line in lines if line.startswith(beginning)], beginning


def test_a_name_that_nothing_binds() -> None:
    assert needed_for("Other", PROGRAM, "program.py") is None
