"""docs/reliability.md: each promise names a test, and the test is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(test_\w+)`")


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_named_test_is_there() -> None:
    named = _NAMED.findall(PAGE)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


def test_every_promise_names_a_test() -> None:
    tables = [block.splitlines() for block in PAGE.split("\n\n") if block.startswith("| promise |")]
    rows = [line for table in tables for line in table if line.startswith("| ") and not line.startswith("| promise |")]
    assert rows
    assert [row for row in rows if not _NAMED.search(row.split(" | ")[1])] == []


def test_every_kind_of_fault_test_holds_a_promise() -> None:
    named = {path for path, _ in _NAMED.findall(PAGE)}
    ours = {
        f"tests/faults/{path.name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if path.name not in {"test_points.py", Path(__file__).name}
    }
    assert ours <= named
