"""``hbrt run defects``: every mistake is named with file and line, and no corrected twin has a finding."""

from __future__ import annotations

import json
from pathlib import Path

from arm_client.commands.run.defects import Defect, Run, all_defects, naming, spoiling
from hbrt.findings.record import Finding, Place
from tests.each import each
from tests.limits import PATIENCE_S
from tests.nursery import run_program
from tests.shared import in_process


def test_all_are_named_and_their_twins_are_clean() -> None:
    done = run_program(["-m", "hbrt", "run", "defects", "--json"], PATIENCE_S)
    document = json.loads(done.stdout)
    assert [(one["defect"], one["sentences"], one["twin"]) for one in document["results"] if not one["passed"]] == []
    assert (done.returncode, document["passed"]) == (0, True)
    assert {one["defect"] for one in document["results"]} == set(all_defects())


def test_the_manual_s_layer_has_its_nine_mistakes_named() -> None:
    named = all_defects()["softmax_layer"].named
    assert len(named) == 10  # what an early return leaves is two findings
    text = all_defects()["softmax_layer"].file.read_text("utf-8")
    assert [number for number in range(1, 10) if f"# mistake {number}: " not in text] == []


def test_one_that_does_not_exist_is_refused() -> None:
    done = in_process("run", "defects", "overun")
    assert done.exit_code == 2
    assert f"Unknown defect 'overun'; known are {next(iter(all_defects()))}," in " ".join(done.stderr.split())


@each("option", ["--check", "--mode", "--board"])
def test_options_that_have_no_effect_are_refused(option: str) -> None:
    done = in_process("run", option, "dma" if option == "--check" else "direct", "defects")
    assert done.exit_code == 2
    assert f"{option} has no effect: defects have their own board" in " ".join(done.stderr.split())


FILE = Path("/samples/defects/wrong.py")
SITE = f"{FILE}:7"


def found(kind: str, text: str, site: str | None = SITE) -> Run:
    return Run([Finding(kind, text, (Place("op", site),)).as_dict()], "", 0)


@each(
    "run, is_named",
    [
        (found("leak", "not freed"), True),
        (found("leak", "not released"), False),
        (found("overrun", "not freed"), False),
        (found("leak", "not freed", None), False),
        (found("leak", "not freed", "/elsewhere/other.py:7"), False),
        (Run([], f"{SITE}: not freed", 0), False),
    ],
)
def test_a_mistake_is_named_by_its_kind_its_words_and_a_line_of_the_samples(run: Run, *, is_named: bool) -> None:
    (sentence,) = naming(Defect("wrong", FILE, "", ("leak: not freed",), ""), run)
    assert bool(sentence) == is_named


def test_one_without_a_finding_is_named_by_what_the_program_prints() -> None:
    defect = Defect("wrong", FILE, "", (), "never set")
    assert naming(defect, Run([], f"{SITE}: never set", 0)) == (f"{SITE}: never set",)
    assert naming(defect, Run([], f"{SITE}: all is well\nnever set", 0)) == ("",)


def test_a_twin_is_clean_without_findings_and_with_exit_code_0() -> None:
    assert spoiling(Run([], "said", 0)) == ""
    assert spoiling(Run([], "said", 1)) == "It exited with code 1. said"
    assert spoiling(found("leak", "not freed")) == "leak: not freed"
