"""Which folder holds what, and what it may import: import-linter's floors with the docstrings of the folders."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Collection
from typing import Any

from hbrt.cli.group import VERBS
from tools.docs_tables import REPOSITORY
from tools.markdown import table
from tools.packages import file_of, folder_of


def _contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return contracts


def folders() -> str:
    """One table a package, the highest floor first."""
    floors = {
        container: contract["layers"]
        for contract in _contracts()
        if contract["type"] == "layers"
        for container in contract.get("containers", ())
    }
    return "\n".join(
        f"`{container}`:\n\n{_table(container, layers, floors.keys())}" for container, layers in floors.items()
    )


def _table(container: str, layers: list[str], containers: Collection[str]) -> str:
    rows = [
        (str(len(layers) - number), f"`{name.replace('.', '/')}`", _first_sentence(f"{container}.{name}"))
        for number, layer in enumerate(layers)
        for module in sorted(layer.replace(" ", "").split("|"))
        for name in (module, *_inner(container, module, containers))
    ]
    return table(("floor", "module", "what it holds"), rows)


def _inner(container: str, module: str, containers: Collection[str]) -> list[str]:
    """Packages below a module, from its container: those of one that has floors stand in its own table."""
    if f"{container}.{module}" in containers:
        return []
    folder = folder_of(container)
    files = sorted((folder / module).glob("*/**/__init__.py"))
    return [".".join(file.parent.relative_to(folder).parts) for file in files]


def _first_sentence(module: str) -> str:
    text = ast.get_docstring(ast.parse(file_of(module).read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def pure_rules() -> str:
    """The modules whose contract is that they touch no process and no socket."""
    (modules,) = (one["source_modules"] for one in _contracts() if one["name"] == "rules are pure")
    rows = [(f"`{name.replace('.', '/')}`", _first_sentence(name)) for name in sorted(modules)]
    return table(("module", "what it holds"), rows)


def packages() -> str:
    """The packages, the highest floor first: the contract between them, with the docstring of each."""
    contract = next(one for one in _contracts() if one["type"] == "layers" and "containers" not in one)
    rows = []
    for number, layer in enumerate(contract["layers"]):
        for name in sorted(layer.replace(" ", "").split("|")):
            place = folder_of(name).relative_to(REPOSITORY)
            rows.append((str(len(contract["layers"]) - number), f"`{place}`", _first_sentence(name)))
    return table(("floor", "package", "what it holds"), rows)


def verbs() -> str:
    """The commands of hbrt with what each does."""
    return table(("command", "what it does"), [(f"`hbrt {name}`", verb.help) for name, verb in VERBS.items()])


PARTS: dict[str, Callable[[], str]] = {
    "folders": folders,
    "packages": packages,
    "pure-rules": pure_rules,
    "verbs": verbs,
}
