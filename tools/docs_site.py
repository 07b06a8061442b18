"""The docs site's hook for MkDocs: README and CHANGELOG become pages, and the API pages are made from the packages.

An API page lists what a stub or an ``__all__`` says is public, with the docstring of each class and function. So a name
that moves to another module needs no edit here.
"""

from __future__ import annotations

import inspect
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
    for name, source in REPOSITORY_PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}")
    return markdown


def outside(path: Path) -> str:
    """A page of the repository's root as it stands in docs/."""
    text = path.read_text(encoding="utf-8").replace("](docs/", "](").replace("[docs/", "[")
    for name, source in REPOSITORY_PAGES.items():
        text = text.replace(f"]({source}", f"]({name}")
    return text


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
    return f"# {title}\n\n{how}\n\n" + "\n".join(section(*home) for home in sorted(homes.items()))


def section(module: str, names: Iterable[str]) -> str:
    """The part of an API page for one module, headed by what its docstring says first."""
    about = (inspect.getdoc(import_module(module)) or module).partition("\n\n")[0].replace("\n", " ")
    told = "".join(f"::: {module}.{name}\n\n" for name in sorted(set(names), key=str.lower))
    return f"## {module}\n\n{about}\n\n{told}"
