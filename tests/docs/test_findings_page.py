"""docs/findings.md names every kind of finding, with its severity."""

from __future__ import annotations

import re
from pathlib import Path

from hbrt.findings.record import KINDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"


def test_the_page_has_each_kind_with_its_severity() -> None:
    rows = dict(
        re.findall(r"^\| `([a-z-]+)` \| (error|warning|advice) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert rows == {name: str(kind.severity) for name, kind in KINDS.items()}
