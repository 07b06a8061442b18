"""Every ``Source:`` names a manual of docs/sources.md with its version, a section, and its address where it has one."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.packages import python_files

HALIDE = "https://github.com/halide/Halide/blob/xtensa-codegen/src/runtime/xtensa_dma.cpp"
REPOSITORY = Path(__file__).resolve().parent.parent
FILES = python_files()
PAGES = [page for page in (REPOSITORY / "docs").rglob("*.md") if page.name != "sources.md"]
ROW = re.compile(
    r"^\| (?P<name>[^|]+?) \| (?P<version>[^|]+?) \| [^|]+ \| (?:<(?P<address>[^>]+)>|[^|]+) \|$", re.MULTILINE
)
SOURCE = re.compile(r"^[ *#]*Source: (.*?)(?=\n[ *#]*(?:\n|\"\"\"|Emulator:)|\.\s|\Z)", re.MULTILINE | re.DOTALL)


class Manual(NamedTuple):
    """A row of the table."""

    version: str
    address: str


def manuals() -> dict[str, Manual]:
    page = (REPOSITORY / "docs" / "sources.md").read_text(encoding="utf-8")
    rows = [row for row in ROW.finditer(page) if row["name"] not in {"manual", "---"}]
    return {row["name"]: Manual(row["version"], row["address"] or "") for row in rows}


def problem(source: str) -> str:
    """What is missing in the text after ``Source:``; empty when nothing is. Manuals are separated by semicolons."""
    known = manuals()
    for number, part in enumerate(re.split(r";\s+", " ".join(source.split()))):
        name = next((name for name in known if part.startswith(name)), None)
        if name is None:
            if number == 0:
                return f"no manual of docs/sources.md begins {part!r}"
            continue  # a remark on the manual before
        head = name if known[name].version == "-" else f"{name} ({known[name].version})"
        section = part.removeprefix(f"{head}, ")
        if section == part or not re.match(r"[\w\[]", section) or section.startswith("http"):
            return f"{part!r} does not begin '{head}, SECTION'"
        if known[name].address and known[name].address.rstrip("/") not in part:
            return f"{part!r} lacks the address {known[name].address}"
    return ""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (f"Halide, the Xtensa runtime, {HALIDE}", ""),
        ("VP operator manual (J6 OE 3.0.17), Sobel", ""),
        ("the manual", "no manual"),
        ("VP operator manual (J6), Sobel", "does not begin"),
        ("VP operator manual (J6 OE 3.0.17)", "does not begin"),
        ("DSP runtime API manual (J5 OE 1.1.77), 10.3.1", "lacks the address"),
    ],
)
def test_the_rule_itself(source: str, found: str) -> None:
    assert found in problem(source)
    assert bool(found) == bool(problem(source))


def test_every_source_names_manual_version_and_section() -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in (*FILES, *PAGES)}
    sources = [(file, found) for file, text in texts.items() for found in SOURCE.findall(text)]
    assert len(sources) > 60
    assert sum(len(re.findall(r"\bSource: ", text)) for text in texts.values()) == len(sources), (
        "a line that the rule does not see"
    )
    wrong = [f"{file.relative_to(REPOSITORY)}: {what}" for file, source in sources if (what := problem(source))]
    assert wrong == []
