"""What the pages say of the program: links, functions, verbs and options, settings, codes, generated tables."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import click

import arm_client
import dsp_server
from hbrt import __version__, settings
from hbrt.cli.group import group
from hbrt.status import Status, sys_status
from tests.each import each
from tools.docs_blocks import blocks
from tools.docs_tables import REPOSITORY, names_in, pages, parts, render
from tools.packages import folder_of

PAGES = pages()
EVERY_PAGE = each("page", PAGES)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"[\w./-]+/[\w.-]+\.(?:py|md|toml)")
_PLACE = re.compile(r"([\w./-]+\.(?:py|c)):([A-Za-z_][\w.]*)")
_COMMAND = re.compile(r"(?<![/\w])hbrt ([a-z]+(?: [^`\n|;]*)?)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EVERY_PAGE
def test_generated_parts_are_what_the_code_says(page: Path) -> None:
    assert text_of(page) == render(text_of(page)), "run: python -m tools.docs_tables"


def test_every_generated_part_is_in_a_page() -> None:
    assert sorted(name for page in PAGES for name in names_in(text_of(page))) == sorted(parts())


@EVERY_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(text_of(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    readme = REPOSITORY / "README.md"
    listed = REPOSITORY / "docs" / "pages.md"
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in (readme, listed)
        for link in _LINK.findall(text_of(page))
    }
    assert set(PAGES) - {readme} <= linked


@EVERY_PAGE
def test_files_that_are_named_exist(page: Path) -> None:
    named = {name for code in _CODE.findall(text_of(page)) for name in _FILE.findall(code) if not name.startswith("/")}
    assert sorted(name for name in named if not (REPOSITORY / name).exists()) == []


@cache
def definitions(file: Path) -> frozenset[str]:
    """Functions, classes and methods of a module, with dots; functions of a file in C."""
    if file.suffix == ".c":
        return frozenset(re.findall(r"^[a-z].*?\b(\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE))
    names: set[str] = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                names.add(prefix + child.name)
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Assign):
                names.update(prefix + target.id for target in child.targets if isinstance(target, ast.Name))

    visit(ast.parse(file.read_text(encoding="utf-8")), "")
    return frozenset(names)


@EVERY_PAGE
def test_functions_that_are_named_exist(page: Path) -> None:
    places = [place for code in _CODE.findall(text_of(page)) for place in _PLACE.findall(code)]
    gone = [
        f"{file}:{name}"
        for file, name in places
        if not (REPOSITORY / file).exists() or name not in definitions(REPOSITORY / file)
    ]
    assert gone == []


def test_the_journey_names_its_functions() -> None:
    journey = text_of(REPOSITORY / "docs" / "journey.md")
    assert len(_PLACE.findall(journey)) > 60
    for walk in ("A model", "A relay task", "A remote task"):
        section = journey.partition(f"\n## {walk}\n")[2].partition("\n## ")[0]
        assert len(_PLACE.findall(section)) >= 5, walk


def test_the_journey_says_what_each_folder_beside_the_packages_holds() -> None:
    table = text_of(REPOSITORY / "docs" / "journey.md").partition("\nIn addition to the Python packages:\n")[2]
    parents = (REPOSITORY / name for name in ("native", "native/include", "packages", "samples"))
    folders = {f"{child.relative_to(REPOSITORY)}/" for parent in parents for child in parent.glob("[!_]*/")}
    assert folders - set(_CODE.findall(table)) == {"native/include/"}  # the folders in it are named


@EVERY_PAGE
def test_commands_that_are_named_exist(page: Path) -> None:
    text = text_of(page)
    shown = [line for block in blocks(text) if block.language in {"bash", "sh"} for line in block.text.splitlines()]
    named = [found for code in [*_CODE.findall(text), *shown] for found in _COMMAND.findall(code)]
    assert [f"hbrt {command}: {why}" for command in named if (why := problem_of(command.split()))] == []


def problem_of(words: list[str]) -> str:
    """Why the words after ``hbrt`` are no command; empty when they are one. Values of options are not judged."""
    context = click.Context(group)
    command: click.Command = group
    rest = [word.rstrip(".,:") for word in words]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest.pop(0))
        if found is None:
            return "there is no such verb"
        command = found
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    if any(parameter.type is click.UNPROCESSED for parameter in command.params):
        return ""  # it hands other options on
    unknown = [word for word in rest if word.startswith("-") and word not in known]
    return f"{command.name} has no {unknown[0]}" if unknown else ""


@EVERY_PAGE
def test_settings_that_are_named_exist(page: Path) -> None:
    known = {setting.name for setting in settings.TABLE}
    named = set(re.findall(r"\bHBRT_[A-Z_]+\b", text_of(page))) - {"HBRT_"}
    assert named - known == set()


@cache
def names_of_the_vendor() -> set[str]:
    known = set(arm_client.__all__) | set(dsp_server.__all__) | set(Status.__members__)
    known |= {setting.name for setting in settings.TABLE}
    known |= {"hb_dsp_tm", "hbSys", "hbDSP", "hbDNN", "HB_DNN_", "HB_SYS_", "HB_DSP_", "hb_dsp_"}
    shared = [*(REPOSITORY / "hbrt").glob("*types.py"), *(REPOSITORY / "hbrt" / "cv").glob("*.py")]
    elsewhere = {name for file in shared for name in definitions(file)}
    elsewhere |= set(definitions(REPOSITORY / "dsp_server" / "ops" / "nn" / "softmax.py"))
    headers = list((REPOSITORY / "native" / "include").rglob("*.h"))
    elsewhere |= {header.stem for header in headers}
    elsewhere |= {name for header in headers for name in re.findall(r"\b\w+\b", header.read_text(encoding="utf-8"))}
    return known | elsewhere


@EVERY_PAGE
def test_names_of_the_vendor_that_are_written_exist(page: Path) -> None:
    """Names in the vendor's spelling: a typo in a page is as bad as one in the code."""
    code = " ".join(_CODE.findall(text_of(page)))
    named = set(re.findall(r"\b(?:hbSys|hbDSP|HB_SYS_|HB_DSP_|HB_ERR_|hb_dsp_|xv|XV|idma_|xos_)\w*", code))
    assert {name for name in named - names_of_the_vendor() if "QUANTI" not in name} == set()


def test_every_code_of_the_runtime_is_given_by_a_call() -> None:
    page = text_of(REPOSITORY / "docs" / "status-codes.md")
    calls = page.partition("## Which call gives which")[2].partition("\n## ")[0]
    given = {name for name in re.findall(r"`(HB_\w+)`", calls) if not name.endswith("_")}
    wanted = {code.name for code in Status if code}
    assert given == wanted
    assert wanted - codes_in_use() == set()


def codes_in_use() -> set[str]:
    """Codes that a module names which gives codes: not the tables that list them all."""
    lists = {"status.py", "__init__.py", "errors.py", "exits.py", "process.py"}
    names = ("hbrt", "arm_client", "dsp_server", "rknn_api")
    sides = [path for name in names for path in folder_of(name).rglob("*.py")]
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in sides if path.name not in lists or path.parent.name == "dnn"
    )
    of_memory = {Status(sys_status(code)).name for code in Status if sys_status(code) != code}
    named = set(re.findall(r"\b(?:Status|_S)\.(HB_\w+)", text))
    return named | of_memory | ({"HB_ERR_MMAP_FAILED"} & set(re.findall(r"HB_\w+", text)))


def test_the_changelog_is_short_and_of_this_version() -> None:
    text = text_of(REPOSITORY / "CHANGELOG.md")
    assert len(text.splitlines()) <= 100
    version, *older = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert (version, older) == (__version__, [])
    assert set(re.findall(r"^### (\w+)$", text, re.MULTILINE)) <= {"Added", "Changed", "Fixed"}


def test_a_line_of_a_shell_block_is_a_command() -> None:
    """A tool that folds paragraphs has not folded the block."""
    lines = [
        (page.name, line)
        for page in [*PAGES, REPOSITORY / "CONTRIBUTING.md"]
        for block in re.findall(r"^```sh\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)
        for line in block.replace("\\\n", "").splitlines()
    ]
    assert len(lines) > 20
    command = re.compile(
        r"(?:\w+=\S+ )*(?:export|hbrt|make|pip|podman|python)\b[^#]*(?:#(?!.* (?:hbrt|make|pip) [a-z]).*)?"
    )
    assert [one for one in lines if not command.fullmatch(one[1])] == []
