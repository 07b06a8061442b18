"""Unknown attributes and keyword arguments that a Python program uses on a vendor's objects."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_SET = re.compile(r"\bself\.(\w+)(?:\s*[:=,)]|\s+[-+*/|&]=)")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unknown(nodes: Iterable[ast.AST], called: Mapping[str, str]) -> set[str]:
    """Return unknown names: ``rknn.api.RKNN.gone``, and ``rknn.api.RKNN.config(gone=)`` for a keyword.

    An object is a vendor's if the file assigns only calls of one class to its variable or ``self.NAME``. Skips
    attributes that the file sets itself, checks with hasattr or getattr, or uses where it catches their absence.

    Args:
        nodes: Nodes of one file.
        called: Modules, and names in them, by their names in the file. They are imported here.
    """
    nodes = list(nodes)
    if not called:
        return set()
    classes = _classes(nodes, called)
    skipped = tried(nodes, r"AttributeError|TypeError|\b(?:Base)?Exception\b")
    own = {
        f"{kind}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if (kind := classes.get(ast.unparse(node.value))) is not None
    }
    asked = {name for node in nodes if isinstance(node, ast.Call) for name in _asked(node)}
    found = set()
    for node in nodes:
        if node in skipped:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr not in asked:
            kind = classes.get(ast.unparse(node.value))
            if kind is not None and not _has(_imported(kind), node.attr):
                found.add(f"{kind}.{node.attr}")
        elif isinstance(node, ast.Call) and node.keywords:
            found |= _unknown_keywords(node, called, classes)
    return {name for name in found if name.partition("(")[0] not in own}


def tried(nodes: Iterable[ast.AST], failure: str) -> set[ast.AST]:
    """Return what a program can do without: nodes in a ``try`` that catches exceptions matching a name pattern."""
    found: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Try):
            caught = " ".join(ast.unparse(one.type) if one.type else "Exception" for one in node.handlers)
            if re.search(failure, caught):
                found.update(one for part in node.body for one in ast.walk(part))
    return found


def _asked(node: ast.Call) -> Iterator[str]:
    """Return the attribute named in a call of hasattr or getattr."""
    if ast.unparse(node.func) in {"hasattr", "getattr"} and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def _unknown_keywords(node: ast.Call, called: Mapping[str, str], classes: Mapping[str, str]) -> set[str]:
    name = _full_name(ast.unparse(node.func), called)
    if isinstance(node.func, ast.Attribute) and (kind := classes.get(ast.unparse(node.func.value))) is not None:
        name = f"{kind}.{node.func.attr}"
    taken = None if name is None else _keywords(_imported(name))
    if taken is None:
        return set()
    return {f"{name}({one.arg}=)" for one in node.keywords if one.arg is not None and one.arg not in taken}


def _classes(nodes: list[ast.AST], called: Mapping[str, str]) -> dict[str, str]:
    """Return classes by variables that only hold their objects or None."""
    found: dict[str, set[str | None]] = {}
    for node in nodes:
        for target, value in _bindings(node):
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            kind = _full_name(ast.unparse(value.func), called) if isinstance(value, ast.Call) else None
            found.setdefault(target, set()).add(kind if kind and isinstance(_imported(kind), type) else None)
    return {name: kind for name, (kind, *others) in found.items() if kind is not None and not others}


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield variables, including ``self.NAME``, that a node assigns, with the value if it is only theirs."""
    if isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _targets(node.target, node.value)
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from _targets(node.target, None)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _targets(node.optional_vars, None)


def _targets(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _targets(one, None)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, None)
    else:
        yield ast.unparse(target), value


def _full_name(text: str, called: Mapping[str, str]) -> str | None:
    """Return the vendor's full name for a name in the file; None for anything else."""
    name = max((one for one in called if f"{text}.".startswith(f"{one}.")), key=len, default=None)
    return None if name is None else called[name] + text[len(name) :]


@cache
def _imported(name: str) -> Any:
    """Return the class or function with a full name, or None."""
    for at in range(name.count("."), -1, -1):
        parts = name.split(".")
        found: Any = _module(".".join(parts[: at + 1]))
        if found is None:
            continue
        for part in parts[at + 1 :]:
            found = getattr(found, part, None)
        return None if isinstance(found, ModuleType) else found
    return None


def _module(name: str) -> ModuleType | None:
    """Import a module; None if it cannot be imported, which is then not reported here."""
    try:
        return import_module(name)
    except Exception:  # noqa: BLE001
        return None


@cache
def _attributes(kind: type) -> frozenset[str] | None:
    """Return the attributes of a class's objects; None if its source does not show all."""
    names = set(dir(kind))
    for one in inspect.getmro(kind)[:-1]:
        names |= inspect.get_annotations(one).keys()
        try:
            names |= set(_SET.findall(inspect.getsource(one)))
        except (OSError, TypeError):
            return None
    return None if "__getattr__" in names else frozenset(names)


def _has(kind: type, name: str) -> bool:
    names = _attributes(kind)
    return names is None or name in names


@cache
def _keywords(subject: Any) -> frozenset[str] | None:
    """Return the keyword arguments of a class or function; None if it takes any."""
    try:
        parameters = inspect.signature(subject).parameters.values() if callable(subject) else None
    except (TypeError, ValueError):
        return None
    if parameters is None or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return None
    return frozenset(one.name for one in parameters if one.kind in _NAMED)
