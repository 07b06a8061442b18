"""Reports that repeat."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from hbrt.cli.report import Report, reports, watched


@pytest.mark.parametrize("as_json", [False, True])
def test_a_watched_verb_reports_until_an_error(*, as_json: bool) -> None:
    loads = iter([3, 5, 8])

    @click.command
    @watched
    @reports
    def verb() -> Report:
        load = next(loads, None)
        if load is None:
            raise click.ClickException("The board is offline.")
        return Report({"load": load}, f"load {load}", code=3)

    ran = CliRunner().invoke(verb, ["--watch", "0.1", *(["--json"] if as_json else [])])
    assert (ran.exit_code, ran.stderr) == (1, "Error: The board is offline.\n")
    found, rest = [], ran.stdout
    while as_json and rest:
        document, end = json.JSONDecoder().raw_decode(rest)
        found.append(f"load {document['load']}")
        rest = rest[end:].lstrip()
    assert (found or rest.splitlines()) == ["load 3", "load 5", "load 8"]


def test_an_interval_must_be_possible() -> None:
    @click.command
    @watched
    @reports
    def verb() -> Report:
        return Report(None, "never")

    ran = CliRunner().invoke(verb, ["--watch", "0"])
    assert ran.exit_code == 2
    assert "0 is not in the range 0.1<=x<=3600" in ran.stderr
