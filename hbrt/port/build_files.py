"""What a tree's CMakeLists.txt, Makefile and Android.mk files give to the compiler. Runs neither CMake nor make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os.path import normpath

CMAKE = "CMakeLists.txt"
NAMES = re.compile(r"(?:.*/)?(?:CMakeLists\.txt|(?:GNU)?[Mm]akefile|[\w.-]+\.(?:cmake|mk|mak|min))")
PROJECT = re.compile(r"^\s*project\s*\(", re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(r"\binclude\s*\(\s*\"?([^()\s\"]+)\"?\s*\)", re.IGNORECASE)
_WORDS = frozenset({"PUBLIC", "PRIVATE", "INTERFACE", "SYSTEM", "BEFORE", "AFTER", "debug", "optimized", "general"})
_CONDITIONS = re.compile(r"\b(end)?(?:if|foreach|while|function|macro)\s*\(", re.IGNORECASE)
_DEFINITIONS = re.compile(
    r"\b(?:add_definitions|add_compile_definitions|target_compile_definitions\s*\(\s*\S+)\s*\(?([^()]*)\)",
    re.IGNORECASE,
)
_CHOICES = re.compile(r"\b(?:DEFS|DEFINES|DEFINITIONS|COMPILE_DEFINITIONS)\s+([A-Z_0-9 ]+?)\s*[)\n]")
_FOLDERS = re.compile(r"\b(?:include_directories|target_include_directories\s*\(\s*\S+)\s*\(?([^()]*)\)", re.IGNORECASE)
_LINKED = re.compile(r"\b(?:target_link_libraries\s*\(\s*\S+|link_libraries\s*\()([^()]*)\)", re.IGNORECASE)
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^()]*)\)", re.IGNORECASE)
_STANDARD = re.compile(r"-std=((?:gnu|c)(?:\+\+)?\w+)|\b(?:CMAKE_)?(CXX|C)_STANDARD\s+(\d+)|\bcxx_std_(\d+)")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([\w-]+)\s*[:+?]?=\s*(.*)$", re.MULTILINE)
_MAKE_CONDITION = re.compile(r"^\s*(?:ifn?eq|ifn?def)\b.*?^\s*endif\b", re.MULTILINE | re.DOTALL)
_RECIPE = re.compile(r"^\t(?!\s*[\w-]+\s*[:+?]?=).*\s-(?:c\s|D).*$", re.MULTILINE)  # one that compiles
_FLAGS = re.compile(r"(?:C|CXX|CPP|CC)_?FLAGS")  # recipes use them by language
_VARIABLE = re.compile(r"\$[{(]([\w-]+)[)}]")
_WORD = re.compile(r'"[^"]*"|(?:[^\s"]|"[^"]*")+')
_MACRO = re.compile(r'[A-Za-z_]\w*(?:=(?:[\w.]+|"[^"$]*"))?')
_FLAG = re.compile(r"(?<!\S)-l(\w+)")
_RELEASE = re.compile(r"\bset\s*\(\s*CMAKE_BUILD_TYPE\s+\"?(?:Rel|MinSize)", re.IGNORECASE)
_HERE = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR", "LOCAL_PATH", "CURDIR", "PWD")
_MAX_VALUE = 10_000
_TREE = "/<tree>/"
_SYSTEM = {"CMAKE_SYSTEM_NAME": "Linux"}
_ROOT = ("PROJECT_SOURCE_DIR", "CMAKE_SOURCE_DIR", "CMAKE_HOME_DIRECTORY")


@dataclass
class Given:
    """What one build file gives to the units in its folder and below.

    Attributes:
        macros: Those that it defines without a condition, as NAME or NAME=VALUE; NDEBUG where it sets a release build.
            Of a makefile's recipes, and variables that some of them name, what each that compiles defines.
        choices: Macros that it defines under a condition, or for some targets, such as a board's.
        folders: Those of its include folders that can be known, from the root of the tree, or absolute.
        libraries: What it links.
        standards: The last -std= of C and of C++, by suffix of the language: "" and "++".
    """

    macros: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    libraries: set[str] = field(default_factory=set)
    standards: dict[str, str] = field(default_factory=dict)


def read_build_files(texts: Mapping[str, str]) -> dict[str, Given]:
    """Read build files.

    Args:
        texts: By path, from the root of the tree.

    Returns:
        By path.
    """
    read: dict[str, Given] = {}
    variables: dict[str, dict[str, str]] = {}  # of CMake, by folder: those above hold below, too
    plains = {path: re.sub(r"(?<!\S)#[^\n]*", "", text).replace("\\\n", " ") for path, text in texts.items()}
    for path in sorted(texts, key=lambda one: (one.count("/"), one)):
        if path.endswith(".cmake"):
            continue
        plain, here = plains[path], folder_of(path)
        above = next((variables[one] for one in _up(here) if one in variables), {})
        own = {**_SYSTEM, **above, **dict.fromkeys(_HERE, f"{_TREE}{here}")}
        if path.endswith(CMAKE):
            roots = _ROOT if not above else _ROOT[:1] if PROJECT.search(plain) else ()
            own |= dict.fromkeys(roots, f"{_TREE}{here}")
            plain = _with_included(plain, _set(plain, own), plains, {path})
            own = _set(plain, own)
            variables[here] = own
            read[path] = _cmake(plain, here, own)
        else:
            for name, text in _ASSIGNED.findall(plain):
                own[name] = own[name] if name in _HERE else _expanded(text, own)
            read[path] = _make(plain, here, own)
        read[path].standards = _standards(plain)
    return read


def _set(plain: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables after those that a CMake file sets."""
    found = {**variables}
    for name, text in _SET.findall(plain):
        found[name] = _expanded(text, found)
    return found


def _with_included(plain: str, variables: Mapping[str, str], plains: Mapping[str, str], seen: set[str]) -> str:
    """The text of a CMake file with that of the tree's files that it includes by path, each once, in their places."""

    def text_of(found: re.Match[str]) -> str:
        name = _expanded(found[1], variables)
        here = variables["CMAKE_CURRENT_SOURCE_DIR"].removeprefix(_TREE)
        path = normpath(name.removeprefix(_TREE) if name.startswith("/") else f"{here}/{name}")
        if path not in plains or path in seen:
            return found[0]
        seen.add(path)
        listed = f"{_TREE}{folder_of(path)}"
        text = plains[path].replace("${CMAKE_CURRENT_LIST_DIR}", listed)
        return _with_included(text, _set(text, {**variables, "CMAKE_CURRENT_LIST_DIR": listed}), plains, seen)

    return _INCLUDE.sub(text_of, plain)


def above(read: Mapping[str, Given], unit: str) -> list[Given]:
    """What holds for a unit: the build files in its folder and above it, the nearest first.

    A CMakeLists.txt adds to the macros of those above it; of makefiles, those of the nearest folder hold alone.
    """
    found, nearest = [], ""
    for folder in _up(folder_of(unit)):
        for path in sorted(read):
            if folder_of(path) == folder:
                is_far = nearest not in {"", folder} and not path.endswith(CMAKE)
                found.append(replace(read[path], macros=[]) if is_far else read[path])
                nearest = nearest or (folder if read[path].macros and not path.endswith(CMAKE) else "")
    return found


def folder_of(path: str) -> str:
    """The folder of a path of the tree; "." for the root."""
    return path.rpartition("/")[0] or "."


def _up(folder: str) -> list[str]:
    parts = [] if folder == "." else folder.split("/")
    return [*("/".join(parts[:at]) for at in range(len(parts), 0, -1)), "."]


def _cmake(plain: str, here: str, variables: dict[str, str]) -> Given:
    depth, at, always = 0, 0, []
    for found in _CONDITIONS.finditer(plain):
        if depth == 0:
            always.append(plain[at : found.start()])
        depth = max(depth - 1, 0) if found[1] else depth + 1
        at = found.end()
    always.append("" if depth else plain[at:])
    words = _words(_DEFINITIONS.findall(" ".join(always)))
    released = ["NDEBUG"] if _RELEASE.search(plain) else []
    given = Given(_macros([*(word.removeprefix("-D") for word in words), *released]))
    choices = [word.removeprefix("-D") for word in _words([*_DEFINITIONS.findall(plain), *_CHOICES.findall(plain)])]
    given.choices = [name for name in _macros(choices) if name not in given.macros]
    given.folders = _inside(_words(_FOLDERS.findall(plain)), here, variables)
    given.libraries = _libraries(_words(_LINKED.findall(plain))) | set(_FLAG.findall(plain))
    return given


def _make(plain: str, here: str, variables: dict[str, str]) -> Given:
    always = _MAKE_CONDITION.sub("", plain)
    recipes = _RECIPE.findall(always)
    of_all = set.intersection(*map(_flagged, recipes)) if recipes else set()
    names = [set(_VARIABLE.findall(line)) for line in recipes]

    def of_all_files(found: re.Match[str]) -> str:
        uses = sum(found[1] in one for one in names)
        return found[0] if uses in {0, len(names)} or _FLAGS.fullmatch(found[1]) else ""

    given = Given(_macros(_flagged(_ASSIGNED.sub(of_all_files, _RECIPE.sub("", always))) | of_all))
    given.choices = [name for name in _macros(_flagged(plain)) if name not in given.macros]
    folders = [word[2:] for word in _words([plain]) if word.startswith("-I")]
    folders += _words([text for name, text in _ASSIGNED.findall(plain) if name == "LOCAL_C_INCLUDES"])
    given.folders = _inside(folders, here, variables)
    given.libraries = set(_FLAG.findall(plain))
    return given


def _flagged(text: str) -> set[str]:
    return {word[2:] for word in _words([text]) if word.startswith("-D")}


def _words(texts: list[str]) -> list[str]:
    given = _WORD.findall(" ".join(texts))
    words = [one for word in given for one in (word.strip('"').split() if word.startswith('"') else [word])]
    return [word for word in words if word not in _WORDS]


def _macros(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if _MACRO.fullmatch(word)})


def _libraries(words: list[str]) -> set[str]:
    return {word.removeprefix("-l") for word in words if re.fullmatch(r"(?:-l)?[\w.+-]+", word)}


def _inside(words: list[str], here: str, variables: dict[str, str]) -> list[str]:
    """The folders that words name, where their variables are known: in the tree, or absolute."""
    known = [word for word in _words([_expanded(" ".join(words), variables)]) if "$" not in word]
    folders = [normpath(word.removeprefix(_TREE) if word.startswith("/") else f"{here}/{word}") for word in known]
    return list(dict.fromkeys(one for one in folders if not one.startswith("..")))


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables that are known, whose values have none; of a value that grows without end, none."""
    made = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)
    return made if len(made) < _MAX_VALUE else text


def _standards(plain: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for named, language, number, feature in _STANDARD.findall(plain):
        if named:
            found["++" if "++" in named else ""] = named
        elif number:
            found["++" if language == "CXX" else ""] = f"gnu{'++' if language == 'CXX' else ''}{number}"
        else:
            found["++"] = f"gnu++{feature}"
    return found
