"""``hbrt mem owners`` and ``hbrt mem leaks``."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from dsp_server.commands.mem import owners
from tests.nursery import Client

if TYPE_CHECKING:
    from tests.shared import Shell

CLIENT = """
import arm_client as hb
for size in (10_000, 3 << 20):
    assert hb.hbSysAllocMem(hb.hbSysMem(), size) == 0
print("ready", flush=True)
input()
"""


def start_client(shell: Shell) -> subprocess.Popen[str]:
    client = Client(
        [sys.executable, "-c", CLIENT], env=shell.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    return client


def test_owners_are_added_up_the_most_first() -> None:
    def client(number: int) -> dict[str, Any]:
        return {"id": number, "pid": 100 + number, "name": f"program{number}", "age_s": 1.0}

    blocks = [{"client": client, "size_bytes": size} for client, size in ((1, 10), (2, 7), (2, 8), (0, 3), (9, 1))]
    rows = owners({"clients": [client(1), client(2), client(3)]}, blocks).rows
    assert [(row["client"], row["pid"], row["blocks"], row["bytes"], row["largest_bytes"]) for row in rows] == [
        (2, 102, 2, 15, 8),
        (1, 101, 1, 10, 10),
        (0, None, 1, 3, 3),
        (9, None, 1, 1, 1),
        (3, 103, 0, 0, 0),
    ]


def test_a_program_is_seen_while_it_holds_memory_and_blamed_when_it_has_gone(shell: Shell) -> None:
    shell.good("start")
    assert shell.good("mem", "owners") == "No clients are attached, and no blocks are allocated.\n"
    assert shell.good("mem", "leaks") == "Nothing leaked.\n"
    client = start_client(shell)
    heading, line = shell.good("mem", "owners").splitlines()
    assert heading.split() == ["CLIENT", "PROCESS", "PROGRAM", "BLOCKS", "BYTES", "SIZE", "LARGEST", "ATTACHED", "FOR"]
    assert str(client.pid) in line.split()
    assert str(10_000 + (3 << 20)) in line.split()
    (owner,) = shell.json("mem", "owners")["owners"]
    assert (owner["pid"], owner["blocks"], owner["largest_bytes"]) == (client.pid, 2, 3 << 20)
    client.kill()
    client.communicate()
    while not (leaks := shell.hbrt("mem", "leaks")).returncode:
        pass
    assert leaks.returncode == 1
    assert f"Process {client.pid} (-c) ended with 2 blocks ({10_000 + (3 << 20)} bytes) not freed." in leaks.stdout
    assert shell.good("mem", "owners") == "No clients are attached, and no blocks are allocated.\n"
