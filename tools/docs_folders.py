"""Which folder holds what, and what it may import: import-linter's floors with the docstrings of the folders."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable

from tools.docs_tables import REPOSITORY
from tools.markdown import table


def folders() -> str:
    """One table a package, the highest floor first."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return "\n".join(
        f"`{container}`:\n\n{_floors(container, contract['layers'])}"
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract.get("containers", ())
    )


def _floors(container: str, layers: list[str]) -> str:
    rows = [
        (str(len(layers) - number), f"`{name}`", _first_sentence(f"{container}.{name}"))
        for number, layer in enumerate(layers)
        for name in sorted(layer.replace(" ", "").split("|"))
    ]
    return table(("floor", "module", "what it holds"), rows)


def _first_sentence(module: str) -> str:
    path = REPOSITORY / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


PARTS: dict[str, Callable[[], str]] = {"folders": folders}
