"""The docs site's hook for MkDocs: README and CHANGELOG become pages, and the API pages are made from the packages.

The front page is README with its table of roles as cards. On a guide, the first use of a word that newcomers look up
links to its line in the terminology.

An API page lists what a stub or an ``__all__`` says is public, with the docstring of each class and function. So a name
that moves to another module needs no edit here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hbrt.borders.guests import PACKAGES
from hbrt.lazy import stub_names
from tools.docs_tables import REPOSITORY
from tools.packages import folder_of

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REPOSITORY_PAGES = {
    "index.md": "README.md",
    "changes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
PAGES = set(REPOSITORY_PAGES.values())
NOT_SEARCHED = frozenset({"changes.md", "mailbox.md", "pages.md", "reliability.md"})
"""Pages that name everything, and so would be found for every word."""
BOOSTS = {
    "questions.md": 8,
    **dict.fromkeys(("install.md", "debugging.md", "testing.md", "ci.md", "dnn.md", "custom-ops.md", "time.md"), 2),
}


WORDS = {
    "TCM": "tcm",
    "iDMA": "idma",
    "ping-pong": "ping-pong",
    "IVP": "ivp",
    "BPU": "bpu",
    "relay": "relay",
    "lease": "lease",
    "DSP image": "dsp-image",
    "customId": "customid",
}
"""Words to look up, and their anchors in the terminology."""
_LINE = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
_NOT_PROSE = re.compile(r"```.*?^```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|^#.*?$|<!--.*?-->|<[^>]+>", re.DOTALL | re.MULTILINE)
_ROLES = re.compile(r"^\| I want to \| read \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file of docs/ holds."""
    from mkdocs.structure.files import File

    made = {name: outside(REPOSITORY / source) for name, source in REPOSITORY_PAGES.items()} | api_pages()
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_more: Any) -> str:
    """Lead links of a page to README and CHANGELOG to their pages, and rank the page for the search."""
    name = page.file.src_uri
    if name in NOT_SEARCHED:
        page.meta["search"] = {"exclude": True}
    elif boost := BOOSTS.get(name):
        page.meta["search"] = {"boost": boost}
    for link, source in REPOSITORY_PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({link}")
    if name == "terminology.md":
        return anchored(markdown)
    if name not in NOT_SEARCHED and "/" not in name and name not in REPOSITORY_PAGES:
        return explained(markdown)
    return markdown


def explained(markdown: str) -> str:
    """A guide whose first use of each of WORDS, outside code, links and headings, is a link to the terminology."""
    for word, anchor in WORDS.items():
        taken = [found.span() for found in _NOT_PROSE.finditer(markdown)]
        for found in re.finditer(rf"(?<![\w/.-]){re.escape(word)}(?![\w/-]|\.\w)", markdown):
            if not any(start <= found.start() < end for start, end in taken):
                link = f"[{word}](terminology.md#{anchor})"
                markdown = f"{markdown[: found.start()]}{link}{markdown[found.end() :]}"
                break
    return markdown


def anchored(markdown: str) -> str:
    """The terminology with an anchor at the line of each of WORDS."""

    def mark(line: re.Match[str]) -> str:
        terms = {term.strip("` ").lower() for term in line[1].split(",")}
        found = [anchor for word, anchor in WORDS.items() if word.lower() in terms]
        marks = "".join(f'<a id="{anchor}"></a>' for anchor in found)
        return f"| {marks}{line[1]} |"

    return _LINE.sub(mark, markdown)


def front(markdown: str) -> str:
    """README whose table of roles is cards, in front of the first section."""
    table = _ROLES.search(markdown)
    if table is None:
        raise ValueError("README has no table 'I want to | read'.")
    cards = ""
    for row in table[1].strip().splitlines():
        role, links = (cell.strip() for cell in row.strip("|").split(" | ", 1))
        cards += f"-   **{role[0].upper()}{role[1:]}**\n\n    {links.strip(' |')}\n\n"
    grid = f'<div class="grid cards" markdown>\n\n{cards}</div>\n\n'
    rest = markdown[: table.start()] + markdown[table.end() :]
    return rest.replace("## Try it", f"{grid}## Try it", 1).replace("## Where to go next\n\n", "## More\n\n")


def outside(path: Path) -> str:
    """A page of the repository's root as it stands in docs/."""
    text = path.read_text(encoding="utf-8").replace("](docs/", "](").replace("[docs/", "[")
    for name, source in REPOSITORY_PAGES.items():
        text = text.replace(f"]({source}", f"]({name}")
    return front(text) if path.name == "README.md" else text


def api_pages() -> dict[str, str]:
    """Every API page by its path."""
    arm, dsp, dnn, fastrpc, rknn = (
        stub_names(folder_of(package) / "__init__.pyi")
        for package in ("arm_client", "dsp_server", "arm_client.dnn", "fastrpc", "rknn_api")
    )
    toolkits = {"RKNN": "rknn_api.toolkit.rknn", "RKNNLite": "rknn_api.lite.rknn_lite"}
    in_c = {name: module for name, module in arm.items() if name.startswith(("hb", "HB_")) and "dnn" not in module}
    models = {name: module for name, module in arm.items() if name.startswith("hb") and "dnn" in module} | dnn
    habits = {name: module for name, module in arm.items() if name not in in_c and name not in models}
    for package in ("arm_client.nn", "arm_client.cv"):
        habits |= dict.fromkeys(import_module(package).__all__, package)
    return {
        "api/arm.md": page("ARM side: the C names", "`import arm_client as hb`", in_c),
        "api/python.md": page("ARM side: Python", "`from arm_client import connect, nn, cv`", habits),
        "api/dnn.md": page("Models", "`import arm_client as hb` and `from arm_client import dnn`", models),
        "api/dsp.md": page("DSP side", "`from dsp_server import ...`", dsp),
        "api/fastrpc.md": page("FastRPC", "`import fastrpc`", fastrpc),
        "api/rknn.md": page(
            "RKNN",
            "`import rknn_api`, `from rknn.api import RKNN` and `from rknnlite.api import RKNNLite`",
            rknn | toolkits,
        ),
    }


def page(title: str, how: str, names: Mapping[str, str]) -> str:
    """An API page: the classes and functions among the names, by the module that defines them."""
    homes: dict[str, list[str]] = {}
    for name, module in names.items():
        found = getattr(import_module(module), name, None)
        is_ours = getattr(found, "__module__", "").partition(".")[0] in PACKAGES
        if is_ours and (inspect.isclass(found) or inspect.isroutine(found)):
            homes.setdefault(found.__module__, []).append(found.__qualname__)
    first = homes.pop(names.get("connect", ""), [])  # what a program calls first
    text = f"## Connect\n\n::: {names['connect']}.connect\n\n" if first else ""
    if rest := [name for name in first if name != "connect"]:
        homes[names["connect"]] = rest
    return f"# {title}\n\n{how}\n\n{text}" + "\n".join(section(*home) for home in sorted(homes.items()))


def section(module: str, names: Iterable[str]) -> str:
    """The part of an API page for one module, headed by what its docstring says first."""
    about = (inspect.getdoc(import_module(module)) or module).partition("\n\n")[0].replace("\n", " ")
    told = "".join(f"::: {module}.{name}\n\n" for name in sorted(set(names), key=str.lower))
    return f"## {module}\n\n{about}\n\n{told}"
