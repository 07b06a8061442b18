"""Programs, and the library itself, under AddressSanitizer and UndefinedBehaviorSanitizer."""

import sys
from pathlib import Path

import pytest

from tests.native.arm.conftest import Compile, Run
from tests.native.arm.test_headers import ARM

CHECKS = ("--sanitize", "address,undefined", "-fno-sanitize-recover=all")
LIBRARY = [str(path) for folder in ("arm", "mailbox") for path in sorted(ARM.parent.glob(f"{folder}/*.c"))]


def test_a_sound_program_is_told_nothing_not_even_of_pythons_memory(compiled: Compile, run: Run) -> None:
    answer = run(compiled("softmax.c", *CHECKS))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""


def test_a_write_past_the_programs_own_memory_is_found(compiled: Compile, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "past.c"
    source.write_text(
        '#include <stdlib.h>\n#include "hb_sys.h"\nint main(int count, char **arguments) {\n'
        "  (void)arguments;\n  hbSysMem mem;\n  if (hbSysAllocMem(&mem, 16)) return 9;\n"
        "  char *own = malloc(8);\n  own[count + 7] = 1;\n  free(own);\n  return hbSysFreeMem(&mem);\n}\n"
    )
    answer = run(compiled(str(source), *CHECKS))
    assert answer.returncode != 0
    assert "heap-buffer-overflow" in answer.stderr
    assert "past.c:8" in answer.stderr


@pytest.mark.long  # the sources take many seconds to compile with sanitizers
@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("threads.c", "0 failures, 8 callbacks, 50 sentences\n"),
        ("nulls.c", "0 taken\n"),
    ],
)
def test_the_library_itself_is_sound(compiled: Compile, run: Run, name: str, out: str) -> None:
    """Its sources are compiled into the program; forks are left out: this GCC's sanitizer does not survive them."""
    program = compiled(name, *CHECKS, "-Wno-pedantic", *LIBRARY)
    answer = run(program, HBRT_PYTHON=sys.executable)
    assert (answer.returncode, answer.stdout) == (0, out), answer.stderr
    assert "runtime error" not in answer.stderr
