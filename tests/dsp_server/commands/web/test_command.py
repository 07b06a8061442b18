"""``hbrt web``: what it answers and refuses, a board that ends and comes back, and the page in a real browser."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsp_server.commands.web.server import HOST, MAX_CONNECTIONS, Server, answers_of
from dsp_server.commands.web.view import MIN_SECONDS, View
from hbrt.board.paths import BoardPaths
from tests.limits import PATIENCE_S
from tests.shared import Shell
from tests.waiting import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROGRAM = """
import signal
import numpy as np
from arm_client import connect, nn

with connect() as board:
    block = board.alloc(12345)
    nn.softmax(board, np.zeros((3, 100), np.float32), core=1)
    board.submit(0x400, None, None, priority=7, core=2).exception()
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture
def served(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    shell.good("start")
    monkeypatch.setattr("dsp_server.commands.web.view.MIN_SECONDS", 0.0)
    view = View(BoardPaths(shell.home / "default"))
    with Server(0, answers_of(view)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
    view.close()


def get(server: Server, path: str, method: str = "GET", host: str = "", cookie: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=PATIENCE_S)
    token = f"{server.cookie}={server.token}" if cookie is None else cookie
    connection.request(method, path, headers={"Host": host or f"{HOST}:{server.server_port}", "Cookie": token})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def board(server: Server) -> dict[str, Any]:
    status, raw = get(server, "/board.json")
    assert status == 200
    document: dict[str, Any] = json.loads(raw)
    return document


def started(shell: Shell) -> subprocess.Popen[str]:
    """The program, when it has made its calls and waits."""
    (shell.cwd / "holds.py").write_text(PROGRAM)
    program = shell.start("holds.py")
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


def test_the_page_and_the_board_are_served_and_nothing_else(served: Server, shell: Shell) -> None:
    for path, part in (
        ("/", b'<script src="page.js"'),
        ("/page.js", b"board.json"),
        ("/page.css", b"#timeline"),
        ("/viewer.html", b"viewer.js"),
    ):
        status, body = get(served, path)
        assert (status, part in body) == (200, True)
    assert board(served)["cores"][1] == {
        "core": 1, "kind": "dsp", "state": "running", "health": "ok", "tasks_per_s": 0.0, "busy": 0.0, "runs": None,
        "tcm": ["." * 52] * 2, "last": None,
    }  # fmt: skip
    for path in ("/log", "/../command.py", "/page/../view.py", "//etc/passwd", "/board.json/"):
        assert get(served, path)[0] == 404
    assert get(served, "/board.json", host="evil.example:80")[0] == 403
    assert get(served, "/board.json", host=f"localhost:{served.server_port}")[0] == 200
    assert get(served, "/board.json", "POST")[0] == 501
    assert json.loads(get(served, "/waits.json")[1])["chains"] == []


def test_nobody_reads_it_without_the_token(served: Server) -> None:
    for path in ("/", "/page.js", "/board.json", "/waits.json", "/board.json?token=", "/board.json?token=wrong"):
        for cookie in ("", f"{served.cookie}=wrong", f"other={served.token}", "\xff=;;="):
            assert get(served, path, cookie=cookie)[0] == 403, (path, cookie)
    connection = http.client.HTTPConnection(HOST, served.server_port, timeout=PATIENCE_S)
    connection.request("GET", served.url.partition(str(served.server_port))[2])
    answer = connection.getresponse()
    answer.read()
    connection.close()
    cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
    assert (answer.status, get(served, "/board.json", cookie=cookie)[0]) == (200, 200)
    assert served.token not in get(served, "/", cookie="")[1].decode()


def test_connections_that_say_nothing_are_bounded_and_end(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    silent = []
    for number in range(1, MAX_CONNECTIONS + 1):  # one by one: where many wait to be accepted, the kernel drops some
        silent.append(socket.create_connection((HOST, served.server_port)))
        until(lambda: threading.active_count() == before + number)  # noqa: B023 - it is called at once
    with socket.create_connection((HOST, served.server_port), PATIENCE_S) as one_more:
        assert one_more.recv(1) == b""
    assert threading.active_count() == before + MAX_CONNECTIONS
    for one in silent:
        one.close()
    until(lambda: threading.active_count() <= before)
    assert board(served)["state"] == "running"


def test_programs_memory_and_tasks_are_shown_and_a_board_that_ends_comes_back(served: Server, shell: Shell) -> None:
    board(served)
    program = started(shell)
    found = board(served)
    assert [one["name"] for one in found["programs"]] == ["holds.py"]
    assert {block["program"] for block in found["blocks"]} == {"holds.py"}
    assert 12345 in [block["size_bytes"] for block in found["blocks"]]
    assert [one["name"] for one in found["commands"]] == ["softmax"]
    tables = found["tables"]
    assert [one["heading"] for one in tables["commands"]["columns"]][:3] == ["COMMAND", "OP", "CALLS/S"]
    assert [row[:2] for row in tables["commands"]["rows"]] == [["0x400", "softmax"]]
    assert [row[2] for row in tables["programs"]["rows"]] == ["holds.py"]
    assert tables["queue"] == {
        "columns": [{"heading": "PRIORITY", "is_number": True}, {"heading": "TASKS", "is_number": True}],
        "rows": [],
        "empty": "No tasks are waiting.",
    }
    assert [row[2] for row in tables["owners"]["rows"]] == ["holds.py"]
    assert {task["name"] for task in found["timeline"]["tasks"]} == {"softmax"}
    metrics = get(served, "/metrics")[1].decode()
    assert re.search(r'^hbrt_core_healthy\{board="default",core="1",kind="dsp"\} 1$', metrics, re.MULTILINE)
    assert re.search(r'^hbrt_programs\{board="default"\} 1$', metrics, re.MULTILINE)
    assert json.loads(get(served, "/findings.sarif")[1])["version"] == "2.1.0"
    assert b"softmax" in get(served, "/trace.json")[1]
    assert "is running" in found["log"]
    program.kill()
    program.communicate()
    shell.good("stop")
    gone = board(served)
    assert (gone["board"], "log" in gone) == ("default", True)
    assert "default" in gone["gone"]
    assert get(served, "/metrics")[1].decode().splitlines()[-1] == 'hbrt_up{board="default"} 0'
    assert get(served, "/trace.json")[0] == 409
    shell.good("start")
    assert board(served)["state"] == "running"


def test_a_look_is_shared_by_those_who_come_soon(shell: Shell) -> None:
    shell.good("start")
    view = View(BoardPaths(shell.home / "default"))
    first = view.document()
    assert view.document() is first
    assert MIN_SECONDS > 0
    view.close()


def test_a_board_that_does_not_run_and_a_port_in_use_are_refused(shell: Shell, served: Server) -> None:
    answer = shell.hbrt("web", "--port", served.server_port)
    assert (answer.returncode, "Cannot use port" in answer.stderr) == (2, True), answer
    answer = shell.hbrt("web", "--board", "nowhere")
    assert (answer.returncode, "nowhere" in answer.stderr) == (2, True), answer


def test_ctrl_c_ends_it_also_when_a_connection_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_and_be_interrupted(thread: threading.Thread) -> None:
        start(thread)
        thread.join()
        raise KeyboardInterrupt

    with Server(0, {}) as server, socket.create_connection((HOST, server.server_port)) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        monkeypatch.setattr(threading.Thread, "start", start_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is here")
def test_a_browser_shows_the_board_and_a_core_that_is_killed(served: Server, shell: Shell, tmp_path: Path) -> None:
    program = started(shell)
    page = shown(served, tmp_path)
    assert 'data-board="running"' in page
    assert re.search(r'data-core="1".*?class="healthy">running, ok<', page, re.DOTALL)
    assert "holds.py" in page
    assert re.search(r'<th[^>]* aria-sort="none"[^>]*><button>', page)
    assert re.search(r"in use by \d+ blocks", page)
    assert re.search(r'class="last">last softmax: ~?[0-9.]+ µs modeled for the board: vector \d+%', page)
    program.kill()
    program.communicate()
    shell.good("recovery", "disabled")
    pid = next(core["pid"] for core in shell.status()["cores"] if core["core"] == 1)
    subprocess.run(["kill", "-9", str(pid)], check=True)
    assert re.search(r'data-core="1".*?class="ill">', shown(served, tmp_path), re.DOTALL)


def shown(server: Server, folder: Path) -> str:
    """What the page looks like to a reader of its text, after its first answers."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        server.url,
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return answer.stdout
