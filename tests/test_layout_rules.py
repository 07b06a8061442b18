"""The layout, where import-linter cannot see: samples, verbs loaded when called, what an import costs."""

import ast
import graphlib
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path

import click
import grimp
import pytest

from hbrt.borders.guests import PACKAGES
from tests.limits import PATIENCE_S
from tools.packages import file_of, python_files

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLES = REPOSITORY / "samples"
SIDES = {"arm_client", "dsp_server"}
# Loaded when first needed: `import arm_client` has to stay far below the time that numpy's own import takes.
HEAVY = {"asyncio", "cv2", "numba", "numpy", "onnx", "onnxruntime", "rich", "zmq"}

# Prints the modules that importing argv[1] loads, over those that the interpreter has anyway.
LIST_LOADED_MODULES = """
import importlib, json, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported_packages(file: Path) -> set[str]:
    """Top-level names of everything that a file imports, at its top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else node.module or "")
    return {name.split(".")[0] or "." for name in names}


def loaded_by_importing(module: str, cwd: Path) -> set[str]:
    """Top-level names of the modules that a new interpreter loads for `import module`."""
    answer = subprocess.run(
        [sys.executable, "-c", LIST_LOADED_MODULES, module],
        cwd=cwd,
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    loaded: list[str] = json.loads(answer.stdout)
    return {name.split(".")[0] for name in loaded}


@pytest.mark.parametrize(("folder", "other_side"), [("arm", "dsp_server"), ("dsp", "arm_client")])
def test_a_sample_stands_on_its_own_side_alone(folder: str, other_side: str) -> None:
    files = sorted((SAMPLES / folder).rglob("*.py"))
    assert files, f"no samples under {SAMPLES / folder}"
    # A relative import, or one of `samples`, would break as soon as a user copies the one file.
    forbidden = {other_side, ".", "samples", "tests", "benchmarks"}
    broken = {
        str(file.relative_to(REPOSITORY)): found for file in files if (found := imported_packages(file) & forbidden)
    }
    assert broken == {}


@pytest.mark.parametrize("module", ["hbrt", "arm_client", "dsp_server", "fastrpc", "rknn_api"])
def test_an_import_loads_nothing_heavy_and_no_other_side(module: str, tmp_path: Path) -> None:
    loaded = loaded_by_importing(module, tmp_path)
    assert module in loaded
    assert loaded & HEAVY == set()
    assert loaded & SIDES <= {module}


@pytest.mark.parametrize("module", ["dsp_server.gateway.gateway", "arm_client.transport.remote_link"])
def test_neither_end_of_a_remote_board_loads_asyncio(module: str, tmp_path: Path) -> None:
    loaded = loaded_by_importing(module, tmp_path)
    assert "zmq" in loaded
    assert loaded & {"asyncio", "ssl"} == set()


def test_the_command_line_gathers_verbs_without_loading_a_side(tmp_path: Path) -> None:
    loaded = loaded_by_importing("hbrt.cli.group", tmp_path)
    assert "hbrt" in loaded
    assert loaded & (SIDES | HEAVY) == set()


def test_every_announced_verb_is_a_command() -> None:
    verbs = entry_points(group="hbrt.commands")
    assert verbs
    for verb in verbs:
        assert isinstance(verb.load(), click.Command), f"{verb.name} = {verb.value} is not a click command"


@pytest.mark.parametrize("side", sorted(SIDES))
def test_every_verb_of_a_side_is_announced(side: str) -> None:
    folder = REPOSITORY / side / "commands"
    files = {file.stem for file in folder.glob("[!_]*.py") if "@click." in file.read_text(encoding="utf-8")} | {
        file.parent.name for file in folder.glob("*/command.py")
    }
    modules = [entry.module for entry in entry_points(group="hbrt.commands")]
    modules += re.findall(r'_be\("(.+)"\)', (REPOSITORY / "hbrt" / "programs.py").read_text())  # its own program
    announced = {module.split(".")[2] for module in modules if module.startswith(f"{side}.commands.")}
    assert files, f"{side} has no verbs"
    assert files == announced


MAX_FILES = 15
# For a type alone: the C names are light, since they load the one and not the other; engines hold what notes events.
TYPE_ONLY = {("arm_client.session.process", "arm_client.session.session")}


def test_no_imports_go_in_a_circle_neither_lazy_ones_nor_those_for_types() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert len(imports) > 300
    for importer, imported in TYPE_ONLY:
        assert imported in imports[importer], "a mended circle is no exception anymore"
        imports[importer].discard(imported)
    graphlib.TopologicalSorter(imports).prepare()  # raises with the circle


def test_a_module_that_calls_itself_pure_touches_no_process_and_no_socket() -> None:
    """What import-linter's contract holds for whole folders of rules, for each module that says so of itself."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (one for one in settings["tool"]["importlinter"]["contracts"] if one["name"] == "rules are pure")
    forbidden = set(contract["forbidden_modules"]) - {"hbrt.board"}  # where its own rule is
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    impure, count = {}, 0
    for module in graph.modules:
        if module.partition(".")[0] not in PACKAGES:
            continue
        file = file_of(module)
        if not file.is_file() or "Pure" not in (text := file.read_text(encoding="utf-8")):
            continue
        first = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
        if re.search(r"\bPure\b", first):
            count += 1
            imported = graph.find_modules_directly_imported_by(module)
            if found := {one for one in imported if any(one == bad or one.startswith(f"{bad}.") for bad in forbidden)}:
                impure[module] = found
    assert count > 40
    assert impure == {}


def test_a_folder_holds_no_more_files_than_a_reader_does() -> None:
    files = [file.relative_to(REPOSITORY) for file in python_files()]
    folders = Counter(file.parent for file in files if file.name != "__init__.py" and "ops" not in file.parts[:2])
    assert len(folders) > 30
    assert {str(folder): count for folder, count in folders.items() if count > MAX_FILES} == {}


def public_imports() -> set[tuple[str, str]]:
    """(module, name) of everything of ours that docs and samples import; the name is empty for ``import module``."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    blocks = [block for page in pages for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]
    found: set[tuple[str, str]] = set()
    for text in (*blocks, *(file.read_text(encoding="utf-8") for file in SAMPLES.rglob("*.py"))):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
                found |= {(node.module or "", alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {(alias.name, "") for alias in node.names if alias.name.split(".")[0] in PACKAGES}
    return found


def test_every_name_that_docs_and_samples_import_is_there_at_the_top_of_a_package() -> None:
    imports = public_imports()
    assert len(imports) > 50
    for module, name in sorted(imports):
        file = importlib.import_module(module)
        if name and not hasattr(file, name):
            importlib.import_module(f"{module}.{name}")
        folders = module.split(".")[1:-1] if not hasattr(file, "__path__") else module.split(".")[1:]
        assert set(folders) <= {"cv", "dnn", "farm", "nn", "quantize"}, (
            f"{module} is machinery; give {name} a home at the top"
        )


def test_only_the_choosers_ask_whether_a_board_is_remote() -> None:
    """Elsewhere a board of another machine is used as any other: what differs is behind a Link, or behind ``ask``."""
    asks = re.compile(r"isinstance\([^()]*(?:\([^()]*\))?[^()]*\b(RemoteBoard|BoardPaths)\b")
    cli = ("hbrt/cli/", "dsp_server/commands/", "arm_client/commands/")
    found = {
        name
        for package in ("hbrt", *sorted(SIDES))
        for file in (REPOSITORY / package).rglob("*.py")
        if not (name := str(file.relative_to(REPOSITORY))).startswith(cli) and asks.search(file.read_text("utf-8"))
    }
    assert found == {"arm_client/transport/choose.py", "hbrt/control/ask.py"}
