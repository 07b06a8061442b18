"""Findings as a SARIF log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import arm_client as hb
from hbrt.findings.record import KINDS, Finding, Place
from hbrt.findings.sarif import sarif_of
from tests.each import each
from tests.limits import PATIENCE_S
from tests.nursery import Client, run_program
from tests.shared import in_process
from tests.watched import program_with, shared_board

OPS = Path(__file__).parents[2] / "arm_client" / "images" / "ops.py"

FREED = Finding(
    "use-after-free",
    "A task has a freed block.",
    (
        Place("submitted", "/home/me/app/arm.py:10", cmd=0x1000, phy_addr=0x8000_1000),
        Place("freed", "/usr/lib/it.py:7"),
        Place("allocated", "<string>:3"),
    ),
    client=4,
    times=2,
)


def test_one_result() -> None:
    log = sarif_of([FREED], "/home/me/app")
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(KINDS)
    (result,) = run["results"]
    assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == "use-after-free"
    assert result["level"] == "error"
    assert result["message"] == {"text": "A task has a freed block."}
    (where,) = result["locations"]
    assert where["physicalLocation"] == {
        "artifactLocation": {"uri": "arm.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 10},
    }
    (related,) = result["relatedLocations"]
    assert related["message"] == {"text": "freed"}
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "file:///usr/lib/it.py"}
    assert result["partialFingerprints"] == {"hbrt/v1": FREED.fingerprint}
    assert result["occurrenceCount"] == 2
    assert result["properties"]["places"][0]["phy_addr"] == "0x80001000"
    json.dumps(log)


@each("site", [None, "", "<stdin>:1", "a.py", "a.py:0", "a.py:x"])
def test_no_line(site: str | None) -> None:
    (result,) = sarif_of([Finding("leak", "Left.", (Place("allocated", site),))])["runs"][0]["results"]
    assert result["locations"] == []
    assert "relatedLocations" not in result


def test_program_writes_one_at_its_end(tmp_path: Path) -> None:
    program = tmp_path / "leaks.py"
    program.write_text("import sys, arm_client as hb\nif len(sys.argv) > 1:\n    hb.hbSysAllocMem(hb.hbSysMem(), 64)\n")
    program.write_text(program.read_text() + "else:\n    hb.connect().close()\n")
    environment = {**os.environ, "HBRT_SARIF": str(tmp_path / "log-{pid}.sarif")}
    for more, kinds in ((["leak"], ["leak"]), ([], [])):
        command = [sys.executable, str(program), *more]
        with Client(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            assert process.wait() == 0
        log = json.loads((tmp_path / f"log-{process.pid}.sarif").read_text())
        results = log["runs"][0]["results"]
        assert [result["ruleId"] for result in results] == kinds
        for result in results:
            assert result["locations"][0]["physicalLocation"] == {
                "artifactLocation": {"uri": "leaks.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 3},
            }


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    environment = {**os.environ, "HBRT_SARIF": str(tmp_path / "none" / "log.sarif")}
    done = run_program(["-c", "import arm_client as hb; hb.connect().close()"], PATIENCE_S, env=environment)
    assert done.returncode == 0
    assert "Cannot write findings to" in done.stderr


def test_status_prints_that_of_a_board() -> None:
    with shared_board(OPS) as paths, program_with(paths, "memory") as board:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 64) == 0
        assert hb.hbSysFreeMem(mem) == 0
        assert hb.hbSysFreeMem(mem) != 0
        log = json.loads(in_process("status", "--sarif", "--board", board.path).stdout)
        (result,) = log["runs"][0]["results"]
        assert result["ruleId"] == "double-free"
        assert result["partialFingerprints"]["hbrt/v1"] == board.status()["findings"][0]["fingerprint"]
        assert len(result["relatedLocations"]) == 2
