"""Names and texts of others on a terminal: each verb escapes what a terminal would obey, and keeps a line a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import Shell

TITLE = "\x1b]0;owned\x07\x1b[2J\nfake line"
IMAGE = f"""
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def op(input, output, tm):
    print({TITLE!r}, flush=True)
    raise RuntimeError({TITLE!r})

def nap(input, output, tm):
    import time
    time.sleep(60)

def main():
    hb_dsp_env_init()
    for at, one in enumerate((op, nap)):
        one.__name__ = {TITLE!r}
        hb_dsp_register_fn(0x1000 + at, one)
    hb_dsp_start()
"""
BARE = "from dsp_server import hb_dsp_env_init, hb_dsp_start\ndef main():\n    hb_dsp_env_init()\n    hb_dsp_start()\n"
PROGRAM = f"""
import contextlib, json, signal
from arm_client import connect
from arm_client.errors import HbrtError

with connect() as board:
    data = board.empty(16)
    with contextlib.suppress(HbrtError):
        board.call(0x1000, data)
    board.submit(0x1001, data)
    places = json.dumps([{{"what": {TITLE!r}, "site": {TITLE!r}}}])
    board.session.link.request("found", kind="leak", text={TITLE!r}, places=places)
    print("ready", flush=True)
    signal.pause()
"""
# Of the verbs that show what others have written; each with a board that has all of it.
SHOWN = (
    ("status",), ("status", "--clients"), ("log",), ("ops",), ("tasks",), ("ps",), ("mem",), ("mem", "owners"),
    ("mem", "leaks"), ("why",), ("doctor",),
    ("replay", "rec", "--image", "bare.py"),  # an op of another image prints what it prints
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(running: Shell) -> Iterator[Shell]:
    """A board whose image, program, findings and log are somebody else's."""
    (running.cwd / "image.py").write_text(IMAGE)
    (running.cwd / "bare.py").write_text(BARE)
    running.good("restart", "--image", "image.py")
    program = running.cwd / f"bad{TITLE}.py"
    program.write_text(PROGRAM)
    process = running.start(program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    folder = running.cwd / "rec" / "calls" / "1"
    folder.mkdir(parents=True)
    (folder / "call.json").write_text(json.dumps({"cmd": 0x1000, "op": TITLE, "site": TITLE, "text": TITLE}))
    (folder.parents[1] / "recording.json").write_text('{"format": "hbrt-recording", "version": 1}')
    (folder.parents[1] / "index.jsonl").write_text(json.dumps({"stopped": TITLE}) + "\n")
    yield running
    process.kill()
    process.communicate()


@pytest.mark.parametrize("verb", SHOWN, ids=" ".join)
def test_no_verb_has_a_terminal_obey_it(verb: tuple[str, ...], hostile: Shell) -> None:
    answer = hostile.hbrt(*verb)
    said = answer.stdout + answer.stderr
    assert said
    assert "bug in hbrt" not in said, said
    assert [letter for letter in said if letter not in "\n\t" and not letter.isprintable()] == []
    if verb[0] not in {"log", "replay"}:  # an op printed it so, or raised it
        assert "\nfake line" not in said


def test_top_and_the_page_have_it_escaped(hostile: Shell) -> None:
    from dsp_server.commands.top.sample import Sampler
    from dsp_server.commands.top.screen import History, screen_of
    from hbrt.control.ask import look_at

    with look_at(hostile.paths()) as daemon:
        look = Sampler(daemon.request).look
        look()
        (history := History()).add(sample := look())
        lines = screen_of(sample, "c", history, 1000).plain.splitlines()
    assert any("owned" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_programs_name_of_any_bytes_attaches(running: Shell) -> None:
    name = b"a\xff\x1b[2J.py"
    file = os.fsencode(running.cwd) + b"/" + name
    Path(os.fsdecode(file)).write_text(
        "from arm_client import connect, hbSysMem, hbSysAllocMem\n"
        "with connect() as board: print([one['name'] for one in board.session.link.request('status')['clients']])\n"
        "print(hbSysAllocMem(hbSysMem(), 64))\n"
    )
    answer = running.python(os.fsdecode(file))
    assert answer.stdout.endswith("0\n"), answer
    assert r"a\\xff\\x1b[2J.py" in answer.stdout
