"""What a tree's files use: vendor API names, headers, libraries, modules. Builds nothing."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from os.path import commonpath
from pathlib import Path

from hbrt.native.files import include_dir, include_folders, library_folders
from hbrt.native.image_flags import CPP_SUFFIXES
from hbrt.port.objects import tried, unknown

WITHOUT_EFFECT = frozenset({
    "hbDNNGetCompileBpuCoreNum", "hbDNNGetInputDesc", "hbDNNGetModelDesc", "hbDNNGetOutputDesc", "hbDSPAddrMap",
    "hbDSPAddrUnmap",
})  # fmt: skip
_NAME = re.compile(r"\b(?:hb(?:Sys|DNN|DSP|UCP|VP)[A-Z]\w*|HB_(?:SYS|DNN|DSP|UCP|BPU)_\w+|rknn_\w+|RKNN_\w+)\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DEFINED = re.compile(
    r"#\s*define\s+(\w+)|\b(?:struct|class|enum|union)\s+(\w+)|\}\s*(\w+)\s*;"
    # A variable or a parameter.
    r"|\b(?!(?:return|throw|else|goto|case|co_return)\b)\w+(?:\s+[*&]*|[*&]\s+)(\w+)\s*[;=,)\[]"
)
_FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}()]*\)\s*\{")
_ENUM = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
_INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
_LINKED = re.compile(r"target_link_libraries\s*\(\s*\S+([^)]*)\)|link_libraries\s*\(([^)]*)\)", re.IGNORECASE)
_FLAG = re.compile(r"(?<!\S)-l(\w+)")
_CONDITIONS = re.compile(r"\b(end)?(?:if|foreach|while|function|macro)\s*\(", re.IGNORECASE)
_DEFINITIONS = re.compile(
    r"\b(?:add_definitions|add_compile_definitions|target_compile_definitions\s*\(\s*\S+)\s*\(?([^()]*)\)",
    re.IGNORECASE,
)
_WORD = re.compile(r'"[^"]*"|(?:[^\s"]|"[^"]*")+')
_WORDS = frozenset({"PUBLIC", "PRIVATE", "INTERFACE", "debug", "optimized", "general"})
_VENDORS = frozenset({
    "Hobot", "bpu_infer_lib", "bpu_infer_lib_x3", "bpu_infer_lib_x5", "hbm_runtime", "hobot_dnn", "hobot_dnn_rdkx5",
    "hobot_spdev", "hobot_vio", "hobot_vio_rdkx5", "horizon_tc_ui", "libsrcampy", "pyCauchyKesai", "rknn", "rknnlite",
})  # fmt: skip
_HEADER_SUFFIXES = frozenset({".h", ".hh", ".hpp", ".hxx"})
_SKIPPED = frozenset({".git", "build", "node_modules", ".venv", "__pycache__"})


@dataclass
class Found:
    """What a tree uses.

    Attributes:
        units: Its C and C++ files that are compiled, from its root.
        folders: Its folders with headers, from its root.
        late_folders: Those of them that have a header of a system header's name, which the system's own headers want.
        definitions: By folder, the macros that its CMakeLists.txt defines without a condition.
        works: Names of the vendors' APIs that are here, and their Python modules.
        without_effect: Those of them that are accepted, and do nothing here.
        missing: Names of the vendors' APIs that are not here.
        vendor_headers: The vendors' headers that it includes.
        headers: Headers that neither hbrt nor the tree has.
        libraries: Libraries that CMakeLists.txt or a Makefile links, and hbrt has not.
        modules: Python modules that cannot be imported here, and are not part of the tree.
        models: Files that a program loads for models, by their suffix.
    """

    units: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    late_folders: list[str] = field(default_factory=list)
    definitions: dict[str, list[str]] = field(default_factory=dict)
    works: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    vendor_headers: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)


def scan(root: Path) -> Found:
    """Read the files of a tree."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not _is_skipped(path, root)]
    headers = [path for path in files if path.suffix in _HEADER_SUFFIXES]
    suffixes = CPP_SUFFIXES - _HEADER_SUFFIXES | {".c"}
    sources = [path for path in files if path.suffix in suffixes]
    found = Found(units=[path.relative_to(root).as_posix() for path in sources])
    found.folders = sorted({path.parent.relative_to(root).as_posix() for path in headers})
    vendors, systems = _vendor_folders(), _system_folders()
    shadowed = {path.name for folder in systems for path in folder.glob("*")}
    found.late_folders = sorted({path.parent.relative_to(root).as_posix() for path in headers if path.name in shadowed})
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in [*sources, *headers]}
    copies = {path.name for folder in vendors for path in folder.glob("*.h*")}
    _names(found, [text for path, text in texts.items() if path.name not in copies])
    own = {path.as_posix() for path in headers}
    included = {name for text in texts.values() for name in _INCLUDE.findall(text)}
    found.vendor_headers = sorted(name for name in included if _is_in(name, vendors))
    found.headers = sorted(name for name in included if not _is_header_here(name, own, [*vendors, *systems]))
    names = ("CMakeLists.txt", "Makefile")
    builds = {path: path.read_text(encoding="utf-8", errors="replace") for path in files if path.name in names}
    linked = {name for text in builds.values() for name in _linked(text)}
    found.definitions = {
        path.parent.relative_to(root).as_posix(): macros
        for path, text in builds.items()
        if path.name == "CMakeLists.txt" and (macros := _definitions(text))
    }
    found.libraries = sorted(name for name in linked if not _has_library(name))
    _python(found, root, [path for path in files if path.suffix == ".py"])
    found.models = [path.relative_to(root).as_posix() for path in files if path.suffix in {".hbm", ".rknn"}]
    return found


def nearest_first(folders: Iterable[str], unit: str) -> list[str]:
    """Sort folders of a tree by their distance from a unit, so that of two headers of a name it includes its own.

    Those in the folder of the unit come first, then those in the folder above it, and so on up to the root.
    """

    def distance(name: str) -> tuple[int, int, str]:
        return -len(commonpath([name, unit])), name.count("/"), name

    return sorted(folders, key=distance)


def _is_skipped(path: Path, root: Path) -> bool:
    return not _SKIPPED.isdisjoint(path.relative_to(root).parts)


def _sides() -> list[Path]:
    """Return the header folders for ARM programs, without the common one, which also has the images' headers."""
    return [folder for folder in include_folders() if folder != include_dir("")]


def _names(found: Found, texts: list[str]) -> None:
    known = {
        name
        for path in {path for folder in _sides() for path in folder.rglob("*.h")}
        for name in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    plain = [_COMMENT.sub(" ", text) for text in texts]
    defined = {name for text in plain for groups in _DEFINED.findall(text) for name in groups if name}
    defined |= {name for text in plain for name in _FUNCTION.findall(text)}
    defined |= {name for text in plain for body in _ENUM.findall(text) for name in re.findall(r"(?:^|,)\s*(\w+)", body)}
    used = {name for text in plain for name in _NAME.findall(text)} - defined
    found.works = sorted(used & known)
    found.without_effect = sorted(used & WITHOUT_EFFECT)
    found.missing = sorted(used - known)


def _is_header_here(name: str, own: set[str], folders: list[Path]) -> bool:
    if any(path.endswith(f"/{name.removeprefix('../').removeprefix('./')}") for path in own):
        return True
    return _is_in(name, folders)


def _is_in(name: str, folders: list[Path]) -> bool:
    return any((folder / name).is_file() for folder in folders)


def _vendor_folders() -> list[Path]:
    """Return hbrt's folders of headers, and their subfolders."""
    return [*include_folders(), *{child for folder in _sides() for child in folder.rglob("*/")}]


def _system_folders() -> list[Path]:
    system = [Path("/usr/include"), Path("/usr/local/include"), *Path("/usr/include").glob("*-linux-gnu")]
    listed = f"{os.environ.get('CPATH', '')}:{os.environ.get('CPLUS_INCLUDE_PATH', '')}"
    given = [Path(name) for name in listed.split(":") if name]
    return [*given, *system, *Path("/usr/include/c++").glob("*"), *Path("/usr/lib/gcc").glob("*/*/include")]


def _linked(text: str) -> set[str]:
    plain = re.sub(r"#[^\n]*", "", text)
    words = {word for groups in _LINKED.findall(plain) for group in groups for word in group.split()}
    words |= set(_FLAG.findall(plain))
    return {word.removeprefix("-l") for word in words if re.fullmatch(r"(?:-l)?[\w.+-]+", word)} - _WORDS


def _definitions(text: str) -> list[str]:
    """Return the macros of a CMakeLists.txt, as NAME or NAME=VALUE, outside conditions, loops and functions."""
    plain = re.sub(r"#[^\n]*", "", text)
    depth, at, always = 0, 0, []
    for found in _CONDITIONS.finditer(plain):
        if depth == 0:
            always.append(plain[at : found.start()])
        depth = max(depth - 1, 0) if found[1] else depth + 1
        at = found.end()
    always.append("" if depth else plain[at:])
    given = _WORD.findall(" ".join(_DEFINITIONS.findall(" ".join(always))))
    words = {one for word in given for one in (word.strip('"').split() if word.startswith('"') else [word])}
    named = (word.removeprefix("-D") for word in words - _WORDS)
    return sorted(name for name in named if re.fullmatch(r'[A-Za-z_]\w*(?:=(?:[\w.]+|"[^"$]*"))?', name))


def _has_library(name: str) -> bool:
    if name in {"c", "m", "dl", "rt", "pthread", "stdc++"}:
        return True
    return any((folder / f"lib{name}.so").exists() for folder in library_folders())


def _python(found: Found, root: Path, files: list[Path]) -> None:
    own = {path.stem for path in files} | {path.name for path in root.rglob("*/") if not _is_skipped(path, root)}
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
    return module.partition(".")[0] in _VENDORS


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
