"""Which file of a tree each #include of a unit means, and the folders that the compiler then has to search."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections.abc import Callable, Iterable, Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from os.path import commonpath, normpath
from pathlib import Path

from hbrt.port.build_files import folder_of

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)
_USR = Path("/usr")


@dataclass
class Searched:
    """What one unit includes.

    Attributes:
        files: The unit and the tree's files that it includes, also through one another.
        folders: The tree's folders to search for them.
        late: Those of them that have a header of a name that the system's own headers want, or the vendors have.
        others: The names that it includes from elsewhere.
        interfaces: The IDL files whose generated header it includes.
    """

    files: list[str] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    interfaces: set[str] = field(default_factory=set)


class Headers:
    """The files of a tree by name.

    Args:
        files: Their paths, from the root.
        read: The text of one.
        listed: The folders that the build files above a unit name, from the root.
        vendors: The vendors' headers, which are hbrt's unless a build file names the folder of a copy.
        is_elsewhere: Whether the system has a header of this name.
        shadowed: Names of headers of the system that its own headers include.
    """

    def __init__(
        self,
        files: Iterable[str],
        read: Callable[[str], str],
        listed: Callable[[str], list[str]],
        vendors: AbstractSet[str],
        is_elsewhere: Callable[[str], bool],
        shadowed: frozenset[str],
    ) -> None:
        """Sort them by their last part."""
        self._files = set(files)
        self._folders = {folder for file in self._files for folder in _above(file)}
        self._named: dict[str, list[str]] = {}
        for file in sorted(self._files):
            self._named.setdefault(file.rpartition("/")[2], []).append(file)
            if file.endswith(".idl"):
                for end in (".h", "_stub.c", "_skel.c"):  # which hbrt idl generates
                    self._named.setdefault(f"{file.rpartition('/')[2][:-4]}{end}", []).append(file)
        self._read, self._listed, self._vendors, self._is_elsewhere = read, listed, vendors, is_elsewhere
        self._late = {
            folder_of(file)
            for name in shadowed | {name.rpartition("/")[2] for name in vendors}
            for file in self._named.get(name, ())
        }
        self._known: dict[str, list[tuple[str, str]]] = {}
        self._found: dict[tuple[str, str], tuple[str, str]] = {}

    def includes(self, file: str) -> list[tuple[str, str]]:
        """The quote or bracket and the name of each #include of a file; of an IDL file, of its generated header."""
        if file not in self._known:
            rows = INCLUDE.findall(self._read(file))
            self._known[file] = [
                (form, re.sub(r"\.idl$", ".h", name) if file.endswith(".idl") else name) for form, name in rows
            ]
        return self._known[file]

    def of(self, unit: str) -> Searched:
        """Follow a unit's includes through the tree."""
        searched, seen = Searched(), {unit}
        todo = [unit]
        while todo:
            file = todo.pop()
            searched.files.append(file)
            if file.endswith(".idl") and file != unit:
                searched.interfaces.add(file)
            for form, name in self.includes(file):
                found, folder = self._resolve(unit, file, form, name)
                if not found:
                    searched.others.add(name)
                    continue
                searched.folders |= {folder} - {""}
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
        searched.late = searched.folders & self._late
        return searched

    def has(self, name: str) -> bool:
        """Whether a file of the tree could be meant by a name."""
        return bool(self._candidates(name))

    def _resolve(self, unit: str, file: str, form: str, name: str) -> tuple[str, str]:
        """The file that is meant, and the folder to search for it; "" for beside the file, and for none."""
        if form == '"' and (beside := normpath(f"{folder_of(file)}/{name}")) in self._files:
            return beside, ""
        key = (folder_of(unit), name)
        if key not in self._found:
            self._found[key] = self._choose(unit, name)
        return self._found[key]

    def _choose(self, unit: str, name: str) -> tuple[str, str]:
        listed = [one for one in self._listed(unit) if normpath(f"{one}/{name}") in self._files]
        if listed:  # of folders that a build file chooses from, such as for each chip, that below the unit's own
            folder = next((one for one in listed if one.startswith(f"{folder_of(unit)}/")), listed[0])
            return normpath(f"{folder}/{name}"), folder
        candidates = self._candidates(name)
        if not candidates:
            return "", ""
        if name in self._vendors:
            return "", ""
        near = [file for file in candidates if commonpath([file, unit])]
        if not near and self._is_elsewhere(name):
            return "", ""
        file = nearest_first(near or candidates, unit)[0]
        if file.endswith(".idl") and not name.endswith(".idl"):
            return file, ""
        rest = re.sub(r"^(\.{1,2}/)+", "", name)
        folder = file[: -len(rest)].rstrip("/") or "."
        depth = name.count("../")
        if depth:
            prefix = "" if folder == "." else f"{folder}/"
            below = [
                one for one in self._folders if one.startswith(prefix) and one[len(prefix) :].count("/") == depth - 1
            ]
            folder = min(below, default=folder)
        return file, folder

    def _candidates(self, name: str) -> list[str]:
        rest = re.sub(r"^(\.{1,2}/)+", "", name)
        head, _, last = rest.rpartition("/")
        found = self._named.get(last, [])
        return [file for file in found if not head or f"/{file}".rpartition("/")[0].endswith(f"/{head}")]


def nearest_first(paths: Iterable[str], unit: str) -> list[str]:
    """Sort paths of a tree by their distance from a unit, so that of two headers of a name it includes its own.

    Those in the folder of the unit come first, then those in the folder above it, and so on up to the root.
    """

    def distance(name: str) -> tuple[int, int, str]:
        return -len(commonpath([name, unit])), name.count("/"), name

    return sorted(paths, key=distance)


def _above(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[:at]) for at in range(1, len(parts) + 1)]


@cache
def package_flags(name: str) -> tuple[str, ...]:
    """The flags for a header that a library keeps in a folder of its own, such as opencv4; () without one.

    One that is named with this folder may include others without it.
    """
    if name == "Python.h" or name.startswith(("pybind11/", "nanobind/")):
        return (f"-I{sysconfig.get_paths()['include']}",)
    folders = {Path(str(path)[: -len(name)]) for path in _USR.glob(f"include/*/{name}")}
    folders |= {Path(str(path)[: -len(name)]) for path in _USR.glob(f"include/*-linux-gnu/*/{name}")}
    head = name.partition("/")[0]
    if head != name and (_USR / "include" / name).is_file() and (flags := _pkg_config(head)):
        return flags
    if "/" not in name:  # the folder then has the library's name
        stem = Path(name).stem.casefold()
        folders = {folder for folder in folders if folder.name.casefold().startswith(stem)}
    if len(folders) != 1:
        return ()
    folder = folders.pop()
    return _pkg_config(folder.name) or (f"-I{folder}",)


@cache
def _pkg_config(library: str) -> tuple[str, ...]:
    """What pkg-config says of a library; () if it does not know it, or is not installed."""
    command = ["pkg-config", "--cflags", library]  # wherever it is
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return ()
    return tuple(done.stdout.split())
