"""What an op leaves behind, what an image lacks, and blocks of a PING: findings with file and line."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arm_client.errors import HbrtError
from dsp_server.core.fault_log import MAX_MISTAKES, FindingReports
from dsp_server.core.image_loader import uncalled_macros
from hbrt.findings.record import Finding

if TYPE_CHECKING:
    from arm_client.client import Board
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

IMAGE = """
from dsp_server import *
from dsp_server import hb_dsp_mem_map, hb_dsp_mem_unmap

def leave_tcm(input, output, tm):
    tile = xvAllocateBuffer(tm, 1024, XV_MEM_BANK_COLOR_0, 64)  # line 6
    return 0

def leave_copy(input, output, tm):
    idma_copy_desc(output, input, len(output))  # line 10
    return 0

def leave_mapped(input, output, tm):
    address = int.from_bytes(input[:8], "little")
    hb_dsp_mem_map(address, 8)
    view = hb_dsp_mem_map(address + 8, 24)  # line 16
    return hb_dsp_mem_unmap(address)

def raise_all(input, output, tm):
    leave_tcm(input, output, tm), leave_copy(input, output, tm), leave_mapped(input, output, tm)
    raise ValueError("an exception leaves everything")

def tidy(input, output, tm):
    tile = xvAllocateBuffer(tm, 64, XV_MEM_BANK_COLOR_0, 64)
    handle = idma_copy_desc(tile, input, 8)
    while not idma_desc_done(handle):
        pass
    array = __import__("numpy").frombuffer(hb_dsp_mem_map(int.from_bytes(input[:8], "little"), 8), "u1")
    xvFreeBuffer(tm, tile)
    return hb_dsp_mem_unmap(array)

def unmap_wrong(input, output, tm):
    address = int.from_bytes(input[:8], "little")
    hb_dsp_mem_map(address, 8)
    first = hb_dsp_mem_unmap(address)
    return -7 if first or not hb_dsp_mem_unmap(bytearray(8)) or not hb_dsp_mem_unmap(address) else 0  # line 36

handles = []

def copy_twice(input, output, tm):
    handles.append(idma_copy_desc(output, input, 8))
    while not idma_desc_done(handles[0]):
        pass
    return 0

def main():
    hb_dsp_env_init()
    for cmd, op in enumerate((leave_tcm, leave_copy, leave_mapped, raise_all, tidy, copy_twice, unmap_wrong), 0x1100):
        hb_dsp_register_fn(cmd, op)
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_start()
"""


@pytest.fixture
def running(start: Start, tmp_path: Path) -> Running:
    image = tmp_path / "leaving.py"
    image.write_text(IMAGE, encoding="utf-8")
    return start(image, cores=1)


def call(board: Board, cmd: int) -> int:
    """Call an op with the address of its input in the input; returns that."""
    block = board.alloc(64)
    block.view()[:8] = block.phy_addr.to_bytes(8, "little")
    board.call(cmd, block, board.alloc(64), core=1)  # a core counts its own findings
    return block.phy_addr


def found_by(running: Running) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.ask("status")["findings"]
    return found


@pytest.mark.parametrize(
    ("cmd", "op", "kind", "line", "text"),
    [
        (0x1100, "leave_tcm", "tcm-left", 6, "without freeing TCM: 1024 bytes at 0x3ffc0000 in bank 0 from "),
        (0x1101, "leave_copy", "dma-left", 10, "without waiting for an iDMA transfer: descriptor 1, 64 bytes, issued"),
        (0x1102, "leave_mapped", "left-mapped", 16, "without unmapping 0x"),
    ],
)
def test_what_an_op_leaves_is_found(running: Running, cmd: int, op: str, kind: str, line: int, text: str) -> None:
    board = running.attach()
    phy_addr = call(board, cmd)
    (finding,) = found_by(running)
    assert finding["kind"] == kind
    assert f"{op} (command {cmd:#x}) returned on core 0 {text}" in finding["text"]
    assert finding["client"] == board.session.link.client_id
    (place,) = finding["places"]
    assert (place["op"], place["cmd"], place["core"]) == (op, cmd, 0)
    assert re.search(rf"/leaving\.py:{line}$", place["site"])
    if kind == "left-mapped":
        assert (place["phy_addr"], place["size_bytes"]) == (phy_addr + 8, 24)


def test_an_unmap_of_what_is_not_mapped_is_found(running: Running) -> None:
    call(running.attach(), 0x1106)
    (finding,) = found_by(running)
    assert (finding["kind"], finding["count"]) == ("not-mapped", 2)
    assert "is not a mapping of this task, or was already unmapped. Mapped are: none." in finding["text"]
    assert re.search(r"/leaving\.py:36$", finding["places"][0]["site"])


def eventfds(pid: int) -> int:
    """How many a process has."""
    count = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += str(fd.readlink()) == "anon_inode:[eventfd]"
    return count


def test_each_mistake_is_one_finding_however_often_it_is_made(running: Running) -> None:
    pid = running.core(0)["pid"]
    before = eventfds(pid)
    board = running.attach()
    running.until(
        lambda: eventfds(pid) > before, "the program's doorbell in the core, which counts anew when it comes,"
    )
    for _ in range(9):
        call(board, 0x1100)
    (finding,) = found_by(running)
    assert finding["count"] == 8  # the ninth is told with the sixteenth
    assert running.log().count("without freeing TCM") == 4


def test_an_op_that_tidies_up_or_raises_left_nothing(running: Running) -> None:
    board = running.attach()
    with pytest.raises(HbrtError, match="an exception leaves everything"):
        call(board, 0x1103)
    call(board, 0x1104)
    assert found_by(running) == []


def test_a_handle_of_an_earlier_task_is_none_of_this_one(running: Running) -> None:
    board = running.attach()
    call(board, 0x1105)
    call(board, 0x1105)
    (finding,) = (one for one in board.status()["findings"] if one["kind"] == "dma-handle")
    assert re.search(r"handle 1 at .*an earlier task used it, and in this task the last .* is 2\.", finding["text"])


def test_a_ping_with_blocks_is_found(running: Running) -> None:
    board = running.attach()
    board.call(0)
    assert found_by(running) == []
    block = board.alloc(64)
    board.call(0, block)
    (finding,) = found_by(running)
    assert finding["kind"] == "ping-blocks"
    assert f"was sent with the input block {block.phy_addr:#x}+0x40, which no op" in finding["text"]


def test_an_image_that_registers_nothing_is_found(start: Start, tmp_path: Path) -> None:
    image = tmp_path / "empty.py"
    image.write_text(
        "from dsp_server import *\n"
        "def main():\n    hb_dsp_env_init()\n    HB_DSP_REGISTER_NN_ALL\n    hb_dsp_start()\n",
        encoding="utf-8",
    )
    running = start(image, cores=2)
    macro, empty = found_by(running)
    assert f"HB_DSP_REGISTER_NN_ALL at {image}:4 has no parentheses" in macro["text"]
    assert f"The image {image} registers no ops." in empty["text"]
    assert [(one["kind"], one["client"], one["count"]) for one in (macro, empty)] == [("image", 0, 1)] * 2


def test_macros_are_told_from_their_calls_and_from_values() -> None:
    source = "import d\nd.HB_DSP_REGISTER_CV_ALL\nif 1:\n    HB_DSP_REGISTER_NN_ALL\nHB_DSP_REGISTER_NN_ALL()\n"
    tree = ast.parse(f"{source}x = HB_DSP_REGISTER_NN_ALL\nother\n")
    assert sorted(uncalled_macros(tree)) == [("HB_DSP_REGISTER_CV_ALL", 2), ("HB_DSP_REGISTER_NN_ALL", 4)]


def test_no_finding_is_lost_while_the_daemon_has_no_room() -> None:
    sent: list[int] = []
    has_room = False

    def send(found: Finding) -> bool:
        if has_room:
            sent.append(found.times)
        return has_room

    reports = FindingReports(send)
    for _ in range(3):
        reports.report(Finding("tcm-left", "One."))
    has_room = True
    for _ in range(6):
        reports.report(Finding("tcm-left", "One."))
    assert sent == [4, 4]
    for number in range(MAX_MISTAKES):
        reports.report(Finding("tcm-left", f"{number}."))
    reports.report(Finding("tcm-left", "One."))
    assert sent[-1] == 1  # it was forgotten for another
