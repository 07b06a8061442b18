"""docs/mailbox.md: its C program calls an op on a real board, and what it says of packets is what they are."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from hbrt.protocol.control import ControlReply, ControlRequest, encode_reply, encode_request
from tests.limits import PATIENCE_S
from tools.docs_blocks import blocks
from tools.docs_control import ANSWERS
from tools.docs_tables import REPOSITORY

if TYPE_CHECKING:
    from arm_client import Board

PAGE = (REPOSITORY / "docs" / "mailbox.md").read_text(encoding="utf-8")
COMPILER = shutil.which("cc") or shutil.which("gcc")
TYPES = {"int": int, "str": str, "bin": bytes, "array of int": list, "map": dict, "any": object}


def fields(heading: str) -> dict[str, type]:
    """Names and types of the fields in the table under a heading of the page."""
    table = PAGE.split(f"| {heading} | type | meaning |\n")[1].split("\n\n")[0]
    rows = (line.split("|") for line in table.splitlines()[1:])
    return {row[1].strip(" `"): TYPES[row[2].strip()] for row in rows}


def as_said(packet: dict[str, Any], heading: str, without: tuple[str, ...] = ()) -> bool:
    """Whether a packet has the fields that the page says, each of its type."""
    said = fields(heading)
    is_of_type = all(isinstance(value, said[name]) for name, value in packet.items())
    return set(packet) == set(said) - set(without) and is_of_type


@pytest.mark.dsp_board(fresh=True)  # without findings of other tests
@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc or gcc) on PATH")
def test_the_c_program_of_the_page_runs_softmax(dsp_board: Board, tmp_path: Path) -> None:
    (program,) = (block.text for block in blocks(PAGE) if block.language == "c")
    source, binary = tmp_path / "softmax.c", tmp_path / "softmax"
    source.write_text(program, encoding="utf-8")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([str(COMPILER), *strict, "-o", str(binary), str(source)], check=True, timeout=PATIENCE_S)
    for _ in range(5):  # with cores asleep and awake
        answer = subprocess.run(
            [str(binary), str(dsp_board.path)], check=True, capture_output=True, timeout=PATIENCE_S, text=True
        )
        said = "state 4, result 0: 0.0320586 0.0871443 0.2368828 0.6439143\n"
        assert (answer.stdout, answer.stderr) == (said, "")
    assert dsp_board.status()["findings"] == []  # it freed and released what it had


def test_packets_have_the_fields_of_the_page(dsp_board: Board) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as lease:
        lease.connect(str(dsp_board.path / "attach.sock"))
        lease.send(msgpack.packb({"v": 2, "name": "a reader"}))
        raw, fds, _, _ = socket.recv_fds(lease, 65536, 64)
        for fd in fds:
            socket.close(fd)
    packet = msgpack.unpackb(raw)
    assert as_said(packet, "field sent by the daemon", without=("text",))
    assert len(fds) == 2 + 2 * (packet["cores"] + packet["accelerators"])
    assert as_said(msgpack.unpackb(encode_request(ControlRequest(1, "status"))), "field of a request")
    assert as_said(msgpack.unpackb(encode_reply(ControlReply(1, 0))), "field of a reply")


def test_verbs_answer_with_the_maps_of_the_page(dsp_board: Board) -> None:
    link = dsp_board.session.link
    kept = dsp_board.alloc(64)
    dsp_board.call(0)
    mem = link.request("mem", most=1)
    answers = {
        "status": [link.request("status")],
        "ops": [link.request("ops")[0]],
        "tasks": link.request("tasks", last=1),
        "mem": [mem, mem["summary"], mem["blocks"][0]],
    }
    for verb, maps in answers.items():
        said = [found.split(", ") for found in re.findall(r"`\{(.*?)\}`", ANSWERS[verb])]
        assert said == [list(answer) for answer in maps]
    kept.free()
