"""The generated parts of the docs: ``python -m tools.docs_tables`` writes them anew.

A part stands in a page between ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``. What it says comes from the
code, so that a page cannot tell another story than the program; tests/docs/test_pages.py compares the two.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
_PART = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end: (?P=name) -->)", re.DOTALL)


def parts() -> dict[str, Callable[[], str]]:
    """Every generated part by name."""
    names = (
        "accelerators",
        "choices",
        "codes",
        "control",
        "defects",
        "dnn",
        "exec",
        "folders",
        "ivp",
        "layout",
        "names",
        "profile",
    )
    modules = [import_module(f"tools.docs_{name}") for name in names]
    return {name: part for module in modules for name, part in module.PARTS.items()}


def render(page: str) -> str:
    """A page with its generated parts as the code has them now.

    Raises:
        KeyError: the page has a part that no function writes.
    """
    known = parts()

    def write(found: re.Match[str]) -> str:
        return f"{found[1]}{known[found['name']]()}{found[3]}"

    return _PART.sub(write, page)


def names_in(page: str) -> list[str]:
    """Names of the generated parts of a page."""
    return [found["name"] for found in _PART.finditer(page)]


def pages() -> list[Path]:
    """README and all pages of docs/."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def main() -> None:
    """Write every page whose generated parts have changed, and name it."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = render(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(REPOSITORY)}\n")


if __name__ == "__main__":
    main()
