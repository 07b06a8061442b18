"""``hbrt status``: a board at a glance, in remoteproc's words."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from dsp_server.commands.mem import memory_line
from hbrt.board.files import daemon_pid, leftovers
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard
from hbrt.cli.exits import Exit
from hbrt.cli.options import any_board_option, timeout_option, was_given
from hbrt.cli.report import Report, reports, watched
from hbrt.cli.tables import Column, Table, core_name, duration, number, numbers, show_json, state, task_name
from hbrt.control.ask import ask, why_not_running
from hbrt.errors import NotRunningError, RefusedError
from hbrt.findings.record import Finding, finding_of, merged, place_in_hex
from hbrt.findings.sarif import sarif_of
from hbrt.findings.text import counted, stamped_line_of
from hbrt.profiles.profile import Cores
from hbrt.settings import format_size
from hbrt.status import Status

WAIT_SECONDS = 30.0
POLL_SECONDS = 0.05
REMOTE_POLL_SECONDS = 0.5  # each poll makes a connection
_CORE_COLUMNS = (
    number("CORE", core_name),
    state("STATE"),
    state("HEALTH"),
    *numbers("PID", "TASKS"),
    number("BUSY", lambda core: duration(core["busy_ns"] / 1e9)),
    *numbers("CYCLES"),
    *numbers("CRASHES"),
)
_CLIENT_COLUMNS = (
    number("CLIENT", "id"),
    *numbers("PID"),
    Column("PROGRAM", "name"),
    number("ATTACHED", lambda client: duration(client["age_s"])),
    *numbers("TASKS"),
    number("BLOCKS", lambda one: f"{one['blocks']}{f', {kept} for models' if (kept := one['model_blocks']) else ''}"),
    number("MEMORY", lambda client: format_size(client["bytes"])),
)

# Statuses of a relay that does not listen yet, or whose daemon hangs, may change. A refused key stays refused.
_MAY_COME = frozenset(
    {Status.HB_DSP_NOT_RUNNING, Status.HB_DSP_RELAY_LOST, Status.HB_DSP_BOARD_LOST, Status.HB_DSP_TIMEOUT}
)


@click.command(epilog="Example: hbrt status --wait-healthy --timeout 10")
@any_board_option
@click.option("--clients", "only_clients", is_flag=True, help="Show only the attached clients.")
@click.option("--wait-healthy", is_flag=True, help="Wait until every core is ok or busy, at most --timeout.")
@timeout_option(WAIT_SECONDS)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print the findings as a SARIF log, for code review tools.")
@watched
@reports
def command(board: BoardRef, timeout: float, *, only_clients: bool, wait_healthy: bool, as_sarif: bool) -> Report:
    """Show a board: its state, cores, memory, attached clients, and the mistakes that it found (overruns, leaks).

    HEALTH is ok, busy (running an op), stuck (its op makes no progress), stalled (no heartbeat), or the state of a core
    that is not running. CRASHES counts only unexpected exits, not restarts or new images.

    The exit code is 0 if the board is healthy, that is, if every core is ok or busy. It is 3 if it is offline, if a
    core is crashed, stalled or stuck, or if no core can claim tasks; a sentence says why. With --wait-healthy it is 124
    if the board does not become healthy in time.

    A board on another machine (tcp://HOST:PORT) is checked through its relay, with the keys that programs use.
    """
    status = _await_healthy(board, timeout) if wait_healthy else _look(board)
    code = Exit.GOOD if status["healthy"] else Exit.BROKEN
    if as_sarif:
        show_json(sarif_of(_findings(status), str(Path.cwd())))
        raise click.exceptions.Exit(code)
    parts: Iterable[object] = [clients_of(status["clients"])] if only_clients else _parts(status)
    if isinstance(board, BoardPaths) and status["pid"] is None:
        parts = [why_not_running(board)]
    return Report(status["clients"] if only_clients else {**status, **_findings_in_hex(status)}, *parts, code=code)


def _await_healthy(board: BoardRef, timeout: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    while True:
        why = "; see 'hbrt status'."
        try:
            status = _look(board)
            if status["healthy"]:
                return status
        except RefusedError as error:
            if not isinstance(board, RemoteBoard) or error.status not in _MAY_COME:
                raise
            why = f": {error}"
        if time.monotonic() > deadline:
            raise TimeoutError(f"The board {board.name} was not healthy after {timeout:g} s{why}")
        time.sleep(REMOTE_POLL_SECONDS if isinstance(board, RemoteBoard) else POLL_SECONDS)


def _look(board: BoardRef) -> dict[str, Any]:
    if not isinstance(board, RemoteBoard) and daemon_pid(board) is None:
        return _without_daemon(board)
    status: dict[str, Any] = ask(board, "status")
    return status


def _without_daemon(board: BoardPaths) -> dict[str, Any]:
    if was_given("board") and not board.path.is_dir():
        raise NotRunningError(why_not_running(board))
    left = [path.name for path in leftovers(board)]
    state = "crashed" if left else "offline"
    return {
        "board": board.name,
        "directory": str(board.path),
        "state": state,
        "healthy": False,
        "pid": None,
        "cores": [],
        "clients": [],
        "left": left,
    }


def _findings_in_hex(status: dict[str, Any]) -> dict[str, Any]:
    """Return a board's findings with addresses in hex, as in the sentences; none if the board is not running."""
    if "findings" not in status:
        return {}
    found = status["findings"]
    return {"findings": [{**one, "places": [place_in_hex(place) for place in one["places"]]} for one in found]}


def _image_line(cores: list[dict[str, Any]]) -> str:
    """Say which image is running, and on which cores if they differ."""
    images = {core["image"]: [str(each["core"]) for each in cores if each["image"] == core["image"]] for core in cores}
    if len(images) == 1:
        return f"Image {cores[0]['image']}."
    return "Images: " + ", ".join(f"{image} on core {' and '.join(on)}" for image, on in images.items()) + "."


def _parts(status: dict[str, Any]) -> Iterator[object]:
    """Yield the lines and tables about a running board."""
    tasks, slots, uptime = status["tasks"], status["slots"], duration(status["uptime_s"])
    yield (
        f"Board {status['board']} is {status['state']}: daemon process {status['pid']}, up {uptime}, in "
        f"{status['directory']}."
    )
    if dsp_cores := [core for core in status["cores"] if core["kind"] == "dsp"]:
        yield _image_line(dsp_cores)
    profile = status["profile"]
    kinds = ", ".join(str(Cores(**one)) for one in profile["cores"])
    yield f"Profile {profile['name']}, {profile['origin']}: {kinds}."
    if status["image_error"]:
        yield f"It has changed and does not load; the last good one stays in use.\n{status['image_error']}"
    yield memory_line(status["memory"])
    leased = f"{slots['leased']} of {slots['total']} slots leased"
    aging = f" A waiting task gains one priority level every {status['aging_ms']} ms." if status["aging_ms"] else ""
    routed = f", {status['routed_tasks']} on other boards (HBRT_ROUTE)" if status.get("routed_tasks") else ""
    yield f"Tasks: {tasks['ready']} ready, {tasks['running']} running{routed}; {leased}.{aging}"
    if oldest := status["oldest_waiting"]:
        yield (
            f"Waiting longest: {task_name(oldest)}, priority {oldest['priority']}, "
            f"of client {oldest['client']}, for {duration(oldest['age_s'])}."
        )
    if longest := status["longest_running"]:
        yield (
            f"Running longest: {task_name(longest)} on core {longest['core']}, "
            f"of client {longest['client']}, for {duration(longest['age_s'])}."
        )
    yield ""
    none = f"No DSP cores. Cores for models start when a program first loads a model: {kinds}."
    yield Table(_CORE_COLUMNS, status["cores"], none)
    for core in status["cores"]:
        if core["last_crash"]:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(core["last_crash_s"]))
            yield f"Last crash of core {core['core']}, {at}: {core['last_crash']}"
    yield ""
    yield from _problems(status)
    yield clients_of(status["clients"])
    yield ""
    yield from map(stamped_line_of, _findings(status)) if status["findings"] else ["No findings."]


def _findings(status: dict[str, Any]) -> list[Finding]:
    """Return each mistake once, no matter how often its program was run."""
    return merged(map(finding_of, status.get("findings", ())))


def _problems(status: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with the cores or the claim lock, and the state of the listening relays."""
    for problem in filter(None, [core["problem"] for core in status["cores"]]):
        yield f"{problem}\n"
    if any(core["health"] == "stuck" for core in status["cores"]):
        yield "'hbrt why' shows where that op is, and who waits for it.\n"
    if status["claim_lock"]:
        yield f"{status['claim_lock']}\n"
    for relay in status["gateways"]:
        yield f"Relay at {relay['endpoint']}: {_relay_state(relay)}.\n"


def _relay_state(relay: dict[str, Any]) -> str:
    process = f", process {relay['pid']}" if relay["pid"] is not None else ""
    again = f", restarted {counted(relay['restarts'], 'time')}" if relay["restarts"] else ""
    return f"{relay['state']}{process}{again}"


def clients_of(clients: list[dict[str, Any]]) -> Table:
    """List the attached clients, given as in the answer to ``status``."""
    return Table(_CLIENT_COLUMNS, clients, "No clients are attached.")
