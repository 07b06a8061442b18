"""Findings as a SARIF log, for code review tools. Pure.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) (2.1.0), 3.13 sarifLog object,
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from hbrt import __version__
from hbrt.findings.record import KINDS, Finding, Severity, lines_of, place_in_hex

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def sarif_of(findings: Iterable[Finding], root: str = "") -> dict[str, Any]:
    """Return a SARIF log with one run, as plain data.

    Args:
        findings: Each becomes a result. Its first place with a line is the location; the others are related locations.
        root: Directory; files in it get relative names, as code review tools need.
    """
    rules = [{"id": name, "defaultConfiguration": {"level": _LEVELS[kind.severity]}} for name, kind in KINDS.items()]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "hbrt", "version": __version__, "rules": rules}},
                "results": [_result(found, root) for found in findings],
            }
        ],
    }


def _result(found: Finding, root: str) -> dict[str, Any]:
    sites = [(what, where) for what, line in _lines(found) if (where := _location(line, root)) is not None]
    related = [{"id": at, "message": {"text": what}, **where} for at, (what, where) in enumerate(sites[1:], 1)]
    return {
        "ruleId": found.kind,
        "ruleIndex": list(KINDS).index(found.kind),
        "level": _LEVELS[found.severity],
        "message": {"text": found.text},
        "locations": [where for _, where in sites[:1]],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"hbrt/v1": found.fingerprint},
        "occurrenceCount": found.times,
        "properties": {"places": [place_in_hex(place.as_dict()) for place in found.places]},
    }


def _lines(found: Finding) -> Iterator[tuple[str, str]]:
    """Yield the lines of a finding, and the role of each."""
    for place in found.places:
        own, *callers = lines_of(place.site or "")
        yield place.what, own
        for caller in callers:
            yield f"{place.what}, called from", caller


def _location(site: str, root: str) -> dict[str, Any] | None:
    """Return a line as a location; None for an unknown line, or a program without a file."""
    file, _, line = site.rpartition(":")
    if not file or file.startswith("<") or not line.isdecimal() or not int(line):
        return None
    path = PurePosixPath(file)
    if root and path.is_relative_to(root):
        artifact = {"uri": quote(str(path.relative_to(root))), "uriBaseId": "%SRCROOT%"}
    else:
        artifact = {"uri": path.as_uri() if path.is_absolute() else quote(file)}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": int(line)}}}
