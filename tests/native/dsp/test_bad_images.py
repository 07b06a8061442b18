"""Files that are not image in C, and images that do not come to serve: a sentence each, and no board."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsp_server.c_images.elf import needed
from dsp_server.errors import ImageError
from dsp_server.lifecycle.snapshots import read_image
from hbrt.board.launch import DaemonConfig, launch
from hbrt.errors import DidNotStartError

Build = Callable[..., Path]
EMPTY = '#include "hb_dsp.h"\nint main() { return 0; }\n'


def changed(path: Path, name: str, change: Callable[[bytearray], Any]) -> Path:
    raw = bytearray(path.read_bytes())
    change(raw)
    made = path.with_name(name)
    made.write_bytes(raw)
    return made


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "for another CPU": (
        lambda path: changed(path, "xtensa.so", lambda raw: raw.__setitem__(slice(18, 20), b"\x5e\0")),
        "is built for Xtensa, but cores run on",
    ),
    "for 32 bits": (
        lambda path: changed(path, "small.so", lambda raw: raw.__setitem__(slice(4, 5), b"\x01")),
        "an image must be built for this machine",
    ),
    "cut off": (
        lambda path: changed(path, "half.so", lambda raw: raw.__delitem__(slice(2000, None))),
        "is truncated: it",
    ),
    "cut off in the header": (
        lambda path: changed(path, "start.so", lambda raw: raw.__delitem__(slice(20, None))),
        "is truncated: an ELF file of 20 bytes",
    ),
    "cut off in the table": (
        lambda path: changed(path, "table.so", lambda raw: raw.__delitem__(slice(100, None))),
        "is truncated: its segment table",
    ),
    "an object file": (
        lambda path: changed(path, "image.o", lambda raw: raw.__setitem__(slice(16, 18), b"\1\0")),
        "is an object file, which has not been linked yet. Build it with 'hbrt cc --dsp -o image.o FILE...'",
    ),
    "a core dump": (
        lambda path: changed(path, "core", lambda raw: raw.__setitem__(slice(16, 18), b"\4\0")),
        "is not a shared library",
    ),
    "a program": (lambda _: Path(sys.executable).resolve(), "is an executable, but an image must be a shared library."),
    "not an ELF file": (
        lambda path: changed(path, "text.so", lambda raw: raw.__setitem__(slice(0, None), b"main\n")),
        "is not an ELF file. An image in C is a shared library",
    ),
    "a source file": (
        lambda path: changed(path, "image.c", lambda raw: raw.__setitem__(slice(0, None), EMPTY.encode())),
        "build it with 'hbrt cc --dsp -o image.so FILE...'",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_file_that_no_core_can_load_is_named_with_the_reason(build: Build, tmp_path: Path, case: str) -> None:
    make, text = FILES[case]
    path = make(Path(shutil.copy(build(EMPTY), tmp_path / "good.so")))
    with pytest.raises(ImageError) as refused:
        read_image(path)
    assert str(refused.value).startswith(f"The image {path} ")
    assert text in str(refused.value)


@pytest.mark.parametrize("bank", [0, 1])
def test_image_with_more_in_a_bank_than_it_has_is_refused(build: Build, bank: int) -> None:
    pools = (
        "uint8_t HB_ALIGN64 pool[HB_DSP_DRAM0_POOL_SIZE] _HB_LOCAL_DRAM{bank}_, more[{more}] _HB_LOCAL_DRAM{bank}_;\n"
    )
    head, left = '#include "hb_dsp.h"\n#include "hb_dsp_tm.h"\n', (128 - 103) * 1024
    read_image(build(head + pools.format(bank=bank, more=left) + EMPTY))
    with pytest.raises(ImageError, match=rf"puts \d+ bytes into \.dram{bank}\.data, but TCM bank {bank} has 131072"):
        read_image(build(head + pools.format(bank=bank, more=left + 64) + EMPTY))


def test_shared_library_is_read_whole(build: Build) -> None:
    path = build(EMPTY)
    assert read_image(path) == path.read_bytes()
    assert "libhbrt_dsp.so" in needed(build(EMPTY.replace("return 0", "return hb_dsp_env_init()")).read_bytes())
    assert needed(b"\x7fELF" + bytes(100)) == []


IMAGES = {
    "without main": ("int other() { return 0; }", r"has no main\(\): define one that registers"),
    "whose main returns": (EMPTY, r"main\(\) of /\S+\.so returned; it must end with hb_dsp_start\(\)"),
    "whose main crashes": (
        "int main() { volatile int *p = 0; return *p; }",
        r'SIGSEGV .* at address 0x0 in an image\'s C code .*\n  File "/\S+image\.c", line 1 in main',
    ),
    "that ends the process": ("#include <stdlib.h>\nint main() { exit(9); }", r"exited with code 9"),
    "that takes a reserved number": (
        """#include "hb_dsp.h"
        static int op(void *i, void *o, void *t) { return !i + !o + !t; }
        int main() { hb_dsp_env_init(); hb_dsp_register_fn(0x10, op, 0); return hb_dsp_start(); }""",
        r"Command 0x10 of op is in the framework's reserved range .* \(/\S+image\.c:3\)",
    ),
    "that registers too early": (
        '#include "hb_dsp.h"\nint main() { hb_dsp_register_fn(0x1000, NULL, 0); return 0; }',
        r"was called before hb_dsp_env_init\(\)",
    ),
    "with too large a pool": (
        """#include "hb_dsp.h"
        HB_ALIGN64 char pool[1 << 18];
        int main() { hb_dsp_env_init(); return hb_dsp_init_global_tm(pool, sizeof pool, NULL, 1024); }""",
        r"A pool of 262144 bytes does not fit in TCM bank 0",
    ),
}


@pytest.mark.parametrize("case", IMAGES)
def test_image_that_does_not_come_to_serve_is_named_with_the_reason(build: Build, board_home: Path, case: str) -> None:
    source, text = IMAGES[case]
    with pytest.raises(DidNotStartError, match=text):
        launch(DaemonConfig(str(board_home / "board"), str(build(source)), cores=1))


def test_image_with_something_missing_is_named_with_it(build: Build, board_home: Path) -> None:
    good = build('#include "hb_dsp.h"\nint main() { return hb_dsp_core_id(); }')
    bad = board_home / "bad.so"
    bad.write_bytes(good.read_bytes().replace(b"hb_dsp_core_id", b"hb_dsp_core_if"))
    why = "did not load: undefined symbol: hb_dsp_core_if. Build it with 'hbrt cc --dsp"
    with pytest.raises(DidNotStartError, match=re.escape(f"The image {bad} {why}")):
        launch(DaemonConfig(str(board_home / "board"), str(bad), cores=1))
