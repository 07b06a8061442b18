"""What a tree's files use: vendor API names, headers, libraries, modules. Builds nothing."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hbrt.borders.guests import MODULES, extra_of
from hbrt.native.files import include_dir, include_folders, library_folders
from hbrt.native.image_flags import CPP_SUFFIXES
from hbrt.port.build_files import CMAKE, NAMES, PROJECT, Given, above, folder_of, read_build_files
from hbrt.port.headers import Headers, Searched, package_flags
from hbrt.port.objects import tried, unknown

WITHOUT_EFFECT = frozenset({
    "hbDNNGetCompileBpuCoreNum", "hbDNNGetInputDesc", "hbDNNGetModelDesc", "hbDNNGetOutputDesc", "hbDSPAddrMap",
    "hbDSPAddrUnmap",
})  # fmt: skip
_NAME = re.compile(
    r"\b(?:hb(?:Sys|DNN|DSP|UCP|VP)[A-Z]\w*|HB_(?:SYS|DNN|DSP|UCP|BPU)_\w+|rknn_\w+|RKNN_\w+|rkllm_\w+)\b"
)
# The 2D engine's, where hbrt's headers have it: OpenCV has imread, too, and trees bring headers for Android.
_CALL = re.compile(r"\b(im[a-z]\w*|(?:import|wrap|release)buffer_\w+|c_Rk\w+)\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DEFINED = re.compile(
    r"#\s*define\s+(\w+)|\b(?:struct|class|enum|union|namespace)\s+(\w+)|\}\s*(\w+)\s*;"
    # A variable or a parameter.
    r"|\b(?!(?:return|throw|else|goto|case|co_return)\b)\w+(?:\s+[*&]*|[*&]\s+)(\w+)\s*[;=,)\[]"
)
_FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}()]*\)\s*\{")
_ENUM = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
_SOURCES = CPP_SUFFIXES - {".hh", ".hpp"} | {".c"}
_MARKS = ("hbSys", "hbDNN", "hbDSP", "hbUCP", "hbVP", "HB_", "rknn_", "RKNN_")
_INTERFACE = re.compile(r"^\s*interface\s+\w+", re.MULTILINE)
_HEXAGON = re.compile(r"\br\d+:\d+\b|\bjumpr\b|\bvmemu?\(|:endloop|\ballocframe\b")
_SKIPPED = frozenset({".git", "build", "node_modules", ".venv", "__pycache__"})


@dataclass(frozen=True)
class Unit:
    """What one file to be compiled needs.

    Attributes:
        path: From the root of the tree, like all others.
        searched: What it includes.
        given: What the build files in its folder and above it say, the nearest first.
    """

    path: str
    searched: Searched
    given: tuple[Given, ...]


@dataclass
class Found:
    """What a tree uses.

    Attributes:
        units: Its C, C++ and IDL files that use a vendor's API, also through its headers, and those beside them; of a
            part of the tree, all in that part.
        works: Names of the vendors' APIs that are here, and their Python modules.
        without_effect: Those of them that are accepted, and do nothing here.
        missing: Names of the vendors' APIs that are not here.
        vendor_headers: The vendors' headers that it includes.
        headers: Headers that neither hbrt nor the tree has.
        libraries: Libraries that its build files link, and hbrt has not.
        modules: Python modules that cannot be imported here, and are not part of the tree.
        models: Files that a program loads for models, by their suffix.
        projects: Folders of its CMake projects.
    """

    units: list[Unit] = field(default_factory=list)
    works: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    vendor_headers: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)


def scan(root: Path, parts: tuple[str, ...] = ()) -> Found:
    """Read the files of a tree; of C and C++, only those of some files and folders, and what they include."""
    files = sorted(_files(root))

    @cache
    def read(path: str) -> str:
        return (root / path).read_text(encoding="utf-8", errors="replace")

    builds = read_build_files({path: read(path) for path in files if NAMES.fullmatch(path)})
    given = cache(lambda folder: tuple(above(builds, f"{folder}/any")))
    vendors, systems = _headers_of([*_vendor_folders(), include_dir("")]) | _of_hexagon(), _system_folders()
    is_of_system = cache(lambda name: _is_in(name, systems))

    def listed(unit: str) -> list[str]:
        return [one for each in given(folder_of(unit)) for one in each.folders]

    headers = Headers(files, read, listed, vendors, is_of_system, _shadowed())
    named = {path for path in parts if path.endswith(".idl")}  # an IDL file that has only types is one, too
    sources = [path for path in files if path in named or (_is_source(path, read) and _is_part(path, parts))]
    _check_parts(parts, sources, root)
    units = [Unit(path, headers.of(path), given(folder_of(path))) for path in sources]
    ours = frozenset(vendors - _headers_of([include_dir(name) for name in ("neon", "android")]))
    users = {unit.path for unit in units if _uses_vendor(unit, headers, read, ours)}
    beside = {folder_of(path) for path in users}
    found = Found([unit for unit in units if parts or folder_of(unit.path) in beside])
    texts = {path: read(path) for unit in found.units for path in unit.searched.files}
    copies = {path.rpartition("/")[2] for path in vendors}
    _names(found, [text for path, text in texts.items() if path.rpartition("/")[2] not in copies])
    others = {name for unit in found.units for name in unit.searched.others}
    included = {name for path in texts for _, name in headers.includes(path)}
    found.vendor_headers = sorted(included & ours)
    found.headers = sorted(
        name for name in others if name not in vendors and not is_of_system(name) and not package_flags(name)
    )
    libraries = {name for one in builds.values() for name in one.libraries}
    found.libraries = sorted(name for name in libraries if not _has_library(name))
    _python(found, root, [root / path for path in files if path.endswith(".py")])
    found.projects = [folder_of(path) for path in files if path.endswith(CMAKE) and PROJECT.search(read(path))]
    found.models = [path for path in files if path.endswith((".hbm", ".rknn"))]
    return found


def _files(root: Path) -> Iterator[str]:
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - _SKIPPED)
        here = Path(folder).relative_to(root)
        yield from ((here / name).as_posix() for name in sorted(names))


def _is_part(path: str, parts: tuple[str, ...]) -> bool:
    """Whether a path is one of these files, or in one of these folders; any is, of no parts."""
    return not parts or any(part in {".", path} or path.startswith(f"{part.rstrip('/')}/") for part in parts)


def _check_parts(parts: tuple[str, ...], sources: list[str], root: Path) -> None:
    """Refuse a part that has nothing to compile.

    Raises:
        FileNotFoundError: there is one.
    """
    for part in parts:
        if not any(_is_part(path, (part,)) for path in sources):
            raise FileNotFoundError(f"No C, C++ or IDL file to compile: {root / part}")


def _is_source(path: str, read: Callable[[str], str]) -> bool:
    suffix = Path(path).suffix
    if suffix in {".s", ".S"}:
        return bool(_HEXAGON.search(read(path)))
    return suffix in _SOURCES or (suffix == ".idl" and bool(_INTERFACE.search(read(path))))


def _uses_vendor(unit: Unit, headers: Headers, read: Callable[[str], str], ours: frozenset[str]) -> bool:
    included = {name for path in unit.searched.files for _, name in headers.includes(path)}  # or in a copy of the tree
    others = unit.searched.others
    if unit.path.endswith((".idl", ".s", ".S")) or included & ours or any(extra_of(Path(one).name) for one in others):
        return True
    return any(mark in (text := read(path)) and _NAME.search(text) for path in unit.searched.files for mark in _MARKS)


def _sides() -> list[Path]:
    """Return the header folders for ARM programs, without the common one, which also has the images' headers."""
    return [folder for folder in include_folders() if folder != include_dir("")]


def _names(found: Found, texts: list[str]) -> None:
    headers = [
        path.read_text(encoding="utf-8") for path in {path for folder in _sides() for path in folder.rglob("*.h")}
    ]
    known = {name for text in headers for name in re.findall(r"\w+", text)}
    calls = {name for text in headers for name in _CALL.findall(_COMMENT.sub(" ", text))}
    plain = [_COMMENT.sub(" ", text) for text in texts]
    defined = {name for text in plain for groups in _DEFINED.findall(text) for name in groups if name}
    defined |= {name for text in plain for name in _FUNCTION.findall(text)}
    defined |= {name for text in plain for body in _ENUM.findall(text) for name in re.findall(r"(?:^|,)\s*(\w+)", body)}
    called = {name for text in plain for name in _CALL.findall(text)} & calls
    used = (called | {name for text in plain for name in _NAME.findall(text)}) - defined
    found.works = sorted(used & known)
    found.without_effect = sorted(used & WITHOUT_EFFECT)
    found.missing = sorted(used - known)


def _is_in(name: str, folders: list[Path]) -> bool:
    return any((folder / name).is_file() for folder in folders)


def _headers_of(folders: list[Path]) -> set[str]:
    return {path.relative_to(folder).as_posix() for folder in folders for path in folder.rglob("*.h*")}


def _vendor_folders() -> list[Path]:
    """Return hbrt's folders of headers, and their subfolders, for programs and for images."""
    return [*{child for folder in _sides() for child in (folder, *folder.rglob("*/"))}, include_dir("dsp")]


def _of_hexagon() -> set[str]:
    """Return the headers of ziglang's compiler for Hexagon code."""
    spec = find_spec("ziglang")
    folders = [Path(one, "lib", "include") for one in (spec and spec.submodule_search_locations) or ()]
    return {path.name for folder in folders for path in folder.glob("h[ev]x*.h")}


@cache
def _shadowed() -> frozenset[str]:
    """Return the names of the system's headers, which its own headers want."""
    return frozenset(path.name for folder in _system_folders() for path in folder.glob("*"))


def _system_folders() -> list[Path]:
    system = [Path("/usr/include"), Path("/usr/local/include"), *Path("/usr/include").glob("*-linux-gnu")]
    listed = f"{os.environ.get('CPATH', '')}:{os.environ.get('CPLUS_INCLUDE_PATH', '')}"
    given = [Path(name) for name in listed.split(":") if name]
    return [*given, *system, *Path("/usr/include/c++").glob("*"), *Path("/usr/lib/gcc").glob("*/*/include")]


def _has_library(name: str) -> bool:
    if name in {"c", "m", "dl", "rt", "pthread", "stdc++"}:
        return True
    return any((folder / f"lib{name}.so").exists() for folder in library_folders())


def _python(found: Found, root: Path, files: list[Path]) -> None:
    own = {path.stem for path in files} | {part for path in _files(root) for part in path.split("/")[:-1]}
    modules, names, used = set(), set(), set()
    for path in files:
        try:
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))))
        except (SyntaxError, ValueError):
            continue
        optional = tried(nodes, "ImportError|ModuleNotFoundError|Exception")
        called: dict[str, str] = {}  # modules by their names in the program
        for node in nodes:
            if isinstance(node, ast.Import):
                wanted = {alias.name: {alias.asname or alias.name} for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted = {node.module: set()}
                if node not in optional:
                    names |= {f"{node.module}.{one.name}" for one in node.names if not _has(node.module, one.name)}
                called |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            else:
                continue
            called |= {name: module for module, given in wanted.items() for name in given}
            used |= {name for name in wanted if _is_of_vendor(name) and _can_be_imported(name)}
            if node not in optional:
                modules |= {name for name in wanted if name.partition(".")[0] not in own and not _can_be_imported(name)}
        called = {name: module for name, module in called.items() if _is_of_vendor(module)}
        names |= unknown(nodes, {name: module for name, module in called.items() if _is_known(module)})
        for node in nodes if called else ():
            if isinstance(node, ast.Attribute) and (module := called.get(ast.unparse(node.value))):
                names |= set() if _has(module, node.attr) else {f"{module}.{node.attr}"}
    found.modules = sorted(modules)
    found.works = sorted({*found.works, *used})
    found.missing = sorted({*found.missing, *(name for name in names if name.partition(".")[0] not in own)})


def _is_of_vendor(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def _is_known(name: str) -> bool:
    """Whether a vendor's module, or a name in one, is available."""
    module, _, attribute = name.rpartition(".")
    return _can_be_imported(name) or (_can_be_imported(module) and _has(module, attribute))


@cache
def _top_level(module: str) -> frozenset[str] | None:
    """Return the names of a vendor's module without running it; None for other modules, or without source."""
    if not _is_of_vendor(module) or not _can_be_imported(module):
        return None
    spec = find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    names = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def _has(module: str, name: str) -> bool:
    names = _top_level(module)
    return (
        names is None or name == "*" or name.startswith("__") or name in names or _can_be_imported(f"{module}.{name}")
    )


def _can_be_imported(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
