"""Links the targets of a tree's CMake projects. This runs CMake, and what the tree's files have it run.

CMake itself reads them, with hbrt's toolchain file; its file API then lists the targets, their sources and the flags
of each. A project continues where it would stop for a missing package; failures are reported by target.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hbrt.cc.packages import write_packages
from hbrt.port.build import call
from hbrt.port.build_files import Given
from hbrt.port.scan import Found, Unit

TIMEOUT_S = 900.0
"""The longest that configuring a project, or building its targets, may take."""
_KINDS = frozenset({"EXECUTABLE", "SHARED_LIBRARY", "MODULE_LIBRARY", "STATIC_LIBRARY"})
_STANDARD = re.compile(r"-std=(\S+)")
_ABSENT = re.compile(r"cannot find (?:-l)?([^\s:]+)|No rule to make target '([^']+)'")
_UNDEFINED = re.compile(r"undefined reference to `([^']+)'")
_ERROR = re.compile(r"error: ([^\n]+)|CMake Error[^\n]*:\s+(.+?)(?:\n\s*\n|$)", re.DOTALL)
_LENIENT = """\
if(NOT COMMAND _find_package)
  macro(find_package)
    set(hbrt_arguments "${ARGV}")
    list(TRANSFORM hbrt_arguments REPLACE "^REQUIRED$" COMPONENTS) # which may follow REQUIRED without this word
    _find_package(${hbrt_arguments})
  endmacro()
  function(message mode)
    if(mode MATCHES "^(FATAL_ERROR|SEND_ERROR)$")
      _message(WARNING "${ARGN}")
    else()
      _message("${mode}" ${ARGN})
    endif()
  endfunction()
endif()
"""


@dataclass(frozen=True)
class Target:
    """A CMake target.

    Attributes:
        project: The folder of its project, from the root of the tree.
        name: As CMake has it.
        why: "" if it links, else the library or the symbols that are missing, or the first error.
        units: Its sources in the tree, from the root, and what CMake gives to each.
    """

    project: str
    name: str
    why: str
    units: dict[str, Given]


@dataclass
class Linked:
    """The targets of a tree's projects, and the errors of those projects that CMake cannot configure, by folder."""

    targets: list[Target]
    projects: dict[str, str]


def link(root: Path, projects: Iterable[str], units: set[str], made: Path) -> Linked:
    """Link each target that has one of the units.

    A project below another's folder is configured only for units that are in no target of the other.

    Args:
        root: The tree.
        projects: The folders of its CMake projects, from the root.
        units: Paths of C and C++ files, from the root.
        made: Folder for what is built.

    Raises:
        FileNotFoundError: cmake is not installed.
    """
    if shutil.which("cmake") is None:
        raise FileNotFoundError("CMake not found: install it (pip install cmake, or Debian: apt install cmake).")
    found = Linked([], {})
    toolchain = write_packages(made) / "cmake" / "hbrt" / "toolchain.cmake"
    (made / "lenient.cmake").write_text(_LENIENT, encoding="utf-8")
    left = set(units)
    for level in _by_depth(projects):
        wanted = [folder for folder in level if any(_is_below(unit, folder) for unit in left)]
        places = [made / f"project{len(found.projects) + at}" for at in range(len(wanted))]
        with ThreadPoolExecutor(2) as pool:
            results = pool.map(lambda folder, place: _project(root, folder, place, units, toolchain), wanted, places)
            for folder, (why, targets) in zip(wanted, results, strict=True):
                found.projects[folder] = why
                found.targets += targets
                left -= {unit for target in targets for unit in target.units}
    return found


def with_targets(found: Found, targets: Iterable[Target]) -> Found:
    """Return the units with what CMake gives to each in a target, in place of what was read from the build files.

    Macros that these define under other conditions are still tried.
    """
    exact = {path: given for target in targets for path, given in target.units.items()}

    def with_target(unit: Unit) -> Unit:
        if unit.path not in exact:
            return unit
        choices = [macro for one in unit.given for macro in one.choices]
        return replace(unit, given=(replace(exact[unit.path], choices=choices),))

    return replace(found, units=[with_target(unit) for unit in found.units])


def _by_depth(projects: Iterable[str]) -> Iterator[list[str]]:
    """The folders that are below none of the others, then those below one of them, and so on."""
    left = sorted(projects)
    while left:
        level = [one for one in left if not any(one != other and _is_below(one, other) for other in left)]
        yield level
        left = [one for one in left if one not in level]


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def _project(root: Path, folder: str, made: Path, units: set[str], toolchain: Path) -> tuple[str, list[Target]]:
    """Configure a project and build its targets: why it cannot be configured, or "", and the targets."""
    api = made / ".cmake" / "api" / "v1"
    (api / "query").mkdir(parents=True)
    (api / "query" / "codemodel-v2").touch()
    given = {
        "CMAKE_TOOLCHAIN_FILE": toolchain,
        "CMAKE_PROJECT_INCLUDE_BEFORE": made.parent / "lenient.cmake",
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",  # of projects for a CMake before 3.5, which CMake 4 refuses
    }
    line = ["cmake", "-S", f"./{folder}", "-B", str(made), "-Wno-dev", *(f"-D{one}={it}" for one, it in given.items())]
    code, messages = call(root, line, TIMEOUT_S)
    if code:
        return _reason(messages), []
    described = list(_described(api / "reply"))
    targets = [(one, used) for one in described if (used := _sources(root, root / folder, one)).keys() & units]
    names = [one["name"] for one, _ in targets]
    line = ["cmake", "--build", str(made), "--parallel", "2", "--target"]
    code, _ = call(root, [*line, *names, "--", "-k"], TIMEOUT_S) if names else (0, "")
    whys = [_why(root, [*line, name], code) for name in names]
    return "", [Target(folder, one["name"], why, used) for (one, used), why in zip(targets, whys, strict=True)]


def _why(root: Path, line: list[str], has_failed: int) -> str:
    """Why a target does not link: after all have been built, only what has failed is built again."""
    code, messages = call(root, line) if has_failed else (0, "")
    return _reason(messages) if code else ""


def _reason(messages: str) -> str:
    """The libraries or symbols that are missing, else the first error of a compiler or of CMake."""
    for heading, pattern in (("missing library", _ABSENT), ("undefined symbols", _UNDEFINED)):
        if names := dict.fromkeys(found[found.lastindex or 0] for found in pattern.finditer(messages)):
            return f"{heading}: {', '.join(names)}"
    if found := _ERROR.search(messages):
        return " ".join(found[found.lastindex or 0].split())
    lines = [line for line in messages.splitlines() if line.strip()]
    return lines[0].strip() if lines else "no message"


def _described(reply: Path) -> Iterator[dict[str, Any]]:
    """CMake's descriptions of the targets that make a file."""
    model = json.loads(next(reply.glob("codemodel-v2-*.json")).read_text(encoding="utf-8"))
    for one in model["configurations"][0]["targets"]:
        target = json.loads((reply / one["jsonFile"]).read_text(encoding="utf-8"))
        if target["type"] in _KINDS:
            yield target


def _sources(root: Path, project: Path, target: dict[str, Any]) -> dict[str, Given]:
    """The sources of a target that are in the tree, and what is given to each."""
    groups = [_given(group) for group in target.get("compileGroups", ())]
    found = {}
    for source in target.get("sources", ()):
        path = (project / source["path"]).resolve()
        if "compileGroupIndex" in source and path.is_relative_to(root.resolve()):
            found[path.relative_to(root.resolve()).as_posix()] = groups[source["compileGroupIndex"]]
    return found


def _given(group: dict[str, Any]) -> Given:
    given = Given([one["define"] for one in group.get("defines", ())])
    given.folders = [one["path"] for one in group.get("includes", ()) if not one.get("isSystem")]
    flags = " ".join(one["fragment"] for one in group.get("compileCommandFragments", ()))
    if named := _STANDARD.findall(flags):
        given.standards["++" if group["language"] == "CXX" else ""] = named[-1]
    return given
