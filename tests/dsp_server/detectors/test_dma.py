"""Check dma on a board: each mistake is named with both sides, its corrected twin and correct ops have no findings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client.errors import HbrtError
from hbrt.nn_types import hbDSPSoftmaxParam
from tests.dsp_server.conftest import Running
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from arm_client.client import Board

IMAGE = Path(__file__).parent / "dma_image.py"
LINES = IMAGE.read_text(encoding="utf-8").splitlines()
BYTES = 8192
FIRST, CAREFUL, FRAMES, DIE, POLL_CODES, ONE_BANK, AT_ONCE, AFTERWARDS = 0x1100, *range(0x1200, 0x1207)
SOFTMAX = 0x400

# Op, then what is found: kind, what its first two places are.
OPS = (
    ("read_early", [("dma-early", "reads", "copy started")]),
    ("written_early", [("dma-early", "reads|writes|uses", "copy started")]),
    ("source_written", [("dma-busy", "writes", "copy started")]),
    ("output_read", [("dma-early", "reads|uses", "copy started")]),
    ("freed_early", [("dma-busy", "tile freed", "copy started")]),
    ("refilled", [("dma-busy", "copy started", "earlier copy started")]),
    ("one_buffer", [("dma-busy", "copy started", "earlier copy started")]),
    ("chained", [("dma-early", "copy started", "earlier copy started")]),
    ("never_set", [("dma-handle", "waited", "")]),
    ("last_of_two", [("dma-busy", "tile freed", "copy started"), ("dma-left", "copy started", "")]),
    (
        "vendor_frame",
        [
            ("dma-handle", "waited", ""),
            ("dma-busy", "copy started", "earlier copy started"),
            ("dma-busy", "tile freed", "copy started"),
            ("dma-left", "copy started", ""),
        ],
    ),
)


def line_of(what: str) -> str:
    """``file:line`` of what the image says of its lines; empty when it says nothing."""
    numbers = [number for number, line in enumerate(LINES, 1) if line.endswith(f"# {what}")]
    return f"{IMAGE}:{numbers[0]}" if numbers else ""


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Running]]:
    """A board of a core under a check, once for each setting."""
    from hbrt.board.launch import DaemonConfig

    made: dict[str, Running] = {}

    def start(check: str, order: str = "strict") -> Running:
        key = f"{check}-{order}".replace(":", "-")
        if key not in made:
            directory = tmp_path_factory.mktemp("boards") / key
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HBRT_CHECK", check)
                patch.setenv("HBRT_DMA_ORDER", order)
                config = DaemonConfig(str(directory), str(IMAGE), cores=1, ddr_bytes=64 << 20, is_private=True)
                made[key] = Running(config)
        return made[key]

    yield start
    for running in made.values():
        running.close()


def call(board: Board, cmd: int) -> tuple[bytes, bytes]:
    """Input and output of a call."""
    src, dst = board.alloc(2 * BYTES), board.alloc(2 * BYTES)
    src.view()[:] = (np.arange(2 * BYTES) % 199).astype(np.uint8).tobytes()
    try:
        board.call(cmd, src, dst)
        return bytes(src.view()), bytes(dst.view())
    finally:
        src.free()
        dst.free()


def found_of(running: Running, board: Board) -> list[dict[str, Any]]:
    client = board.session.link.client_id
    return [one for one in running.ask("status")["findings"] if one["client"] == client]


@pytest.mark.parametrize(("number", "op", "expected"), [(at, *one) for at, one in enumerate(OPS)])
def test_a_mistake_is_named_with_both_sides(
    make: Callable[..., Running], number: int, op: str, expected: list[tuple[str, str, str]]
) -> None:
    running = make("dma")
    board = running.attach()
    call(board, FIRST + 2 * number)
    found = found_of(running, board)
    assert [one["kind"] for one in found] == [kind for kind, _, _ in expected]
    for one, (_, first, second) in zip(found, expected, strict=True):
        assert f"{op} (command {FIRST + 2 * number:#x})" in one["text"]
        places = one["places"]
        assert re.fullmatch(first, places[0]["what"])
        assert [place["what"] for place in places[1:]] == ([second] if second else [])
        assert all((place["op"], place["core"]) == (op, 0) for place in places)
    sites = {place["site"] for one in found for place in one["places"]}
    assert {line_of(f"{what}: {op}") for what in ("touches", "copies")} - {""} <= sites


@pytest.mark.parametrize("cmd", [*range(FIRST + 1, FIRST + 2 * len(OPS), 2), CAREFUL, FRAMES, SOFTMAX])
def test_a_correct_op_has_no_findings(make: Callable[..., Running], cmd: int) -> None:
    running = make("dma")
    board = running.attach()
    if cmd == SOFTMAX:
        values = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
        src, dst = board.alloc(values.nbytes), board.alloc(values.nbytes)
        src.view()[:] = values.tobytes()
        board.call(SOFTMAX, hbDSPSoftmaxParam(data_size=values.nbytes, input=src.phy_addr), dst)
        np.testing.assert_allclose(np.frombuffer(dst.view(), np.float32).sum(), 1, rtol=1e-4)
    else:
        call(board, cmd)
    assert found_of(running, board) == []


def test_the_op_goes_on_with_the_bytes_that_are_there(make: Callable[..., Running]) -> None:
    board = make("dma").attach()
    src, dst = call(board, FIRST)
    assert dst[:BYTES] == bytes(BYTES)
    src, dst = call(board, FIRST + 1)
    assert dst[:BYTES] == src[:BYTES]


@pytest.mark.parametrize("op", ["read_early", "source_written", "freed_early", "refilled", "never_set"])
def test_fail_fast_ends_the_op_at_its_first_mistake(make: Callable[..., Running], op: str) -> None:
    running = make("dma,fail-fast")
    board = running.attach()
    with pytest.raises(HbrtError, match=rf"MistakeError: {op} .*issued at|MistakeError: {op} .*no copy has set"):
        call(board, FIRST + 2 * [name for name, _ in OPS].index(op))
    assert len(found_of(running, board)) == 1
    call(board, CAREFUL)


@pytest.mark.parametrize("op", ["last_of_two", "vendor_frame"])
def test_a_drawn_order_gives_wrong_bytes_under_the_check(make: Callable[..., Running], op: str) -> None:
    cmd = FIRST + 2 * [name for name, _ in OPS].index(op)
    results = set()
    for seed in range(4):
        board = make("dma", f"relaxed:{seed}").attach()
        src, wrong = call(board, cmd)
        _, right = call(board, cmd + 1)
        results.add(wrong == right)
        added = op == "vendor_frame"
        size_bytes = 2 * BYTES if added else 4096
        assert right[:size_bytes] == bytes(byte + added for byte in src[:size_bytes])
        call(board, CAREFUL)
        call(board, FRAMES)
    assert False in results


def test_an_order_is_drawn_without_a_check_too(make: Callable[..., Running]) -> None:
    cmd = FIRST + 2 * [name for name, _ in OPS].index("vendor_frame")
    running = make("tell", "relaxed:1")
    board = running.attach()
    call(board, cmd)
    assert "dma-handle" in {one["kind"] for one in found_of(running, board)}
    src, right = call(board, cmd + 1)
    assert right == bytes(byte + 1 for byte in src)


def test_a_core_whose_op_polls_an_error_code_goes_on_beating(make: Callable[..., Running]) -> None:
    running = make("dma")
    board = running.attach()
    call(board, POLL_CODES)
    assert {one["kind"] for one in found_of(running, board)} == {"dma-handle"}
    ended = time.monotonic()
    while (age_s := board.status()["cores"][0]["beat_age_s"]) >= time.monotonic() - ended:
        assert time.monotonic() - ended < PATIENCE_S, f"no beat after the call, the last {age_s} s ago"


@pytest.mark.parametrize(("cmd", "told"), [(ONE_BANK, "a frame"), (AT_ONCE, "a tile"), (AFTERWARDS, ""), (FRAMES, "")])
def test_a_bank_conflict_is_an_advice_which_ends_no_op(make: Callable[..., Running], cmd: int, told: str) -> None:
    running = make("dma,advice,fail-fast")
    board = running.attach()
    src, dst = call(board, cmd)
    assert src[:1024] == dst[:1024]
    found = found_of(running, board)
    assert [(one["kind"], one["severity"], one["count"]) for one in found] == [("bank-conflict", "advice", 1)] * bool(
        told
    )
    for one in found:
        what = "its frame computes in TCM bank 0" if told == "a frame" else "of the tile of 1024 bytes at 0x3ffc0000"
        assert what in one["text"]
        assert "dma_image.py:" in one["places"][0]["site"]


def test_a_bank_conflict_is_not_told_without_the_check_advice(make: Callable[..., Running]) -> None:
    running = make("dma")
    board = running.attach()
    call(board, AT_ONCE)
    call(board, ONE_BANK)
    assert found_of(running, board) == []


INLINE = """
import threading
import arm_client as hb

board = hb.connect(check="dma", inline=True)
src, dst = board.alloc(16384), board.alloc(16384)

def call():
    board.call({cmd:#x}, src, dst)

for thread in [threading.Thread(target=call) for _ in range(2)]:
    thread.start()
    thread.join()
"""


def test_an_op_in_its_callers_thread_is_watched_there(tmp_path: Path) -> None:
    program = tmp_path / "inline.py"
    program.write_text(INLINE.format(cmd=FIRST + 2 * [name for name, _ in OPS].index("output_read")))
    environment = {**os.environ, "HBRT_IMAGE": str(IMAGE), "HBRT_BOARD": f"none-{os.getpid()}"}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    lines = [line for line in done.stderr.splitlines() if "dma-early" in line]
    assert len(lines) == 2
    assert all(f"at {line_of('touches: output_read')} before the copy" in line for line in lines)


def test_a_real_fault_still_ends_the_core_with_its_line(make: Callable[..., Running]) -> None:
    running = make("dma,memory")
    board = running.attach()
    call(board, FIRST)  # the handler is there
    with pytest.raises(HbrtError, match=r"(?s)string_at.*dma_image\.py"):
        call(board, DIE)
