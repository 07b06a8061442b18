"""The statements of a Python file that one of its names needs: a program declares its structures among its other code.

Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def needed_for(name: str, source: str, file: str) -> ast.Module | None:
    """The statements at the top of a file that bind a name, and those that bind what they read, and so on.

    The others are the program's actions: calls, loops, ``if __name__ == "__main__"``. Entries of ``sys.path`` are made.

    Args:
        name: What is wanted.
        source: The file's text.
        file: Its name, for errors.

    Returns:
        The statements, in order; None if none of them binds the name.

    Raises:
        SyntaxError: it is not valid Python.
    """
    tree = ast.parse(source, file)
    binds = [set(_bound(node)) for node in tree.body]
    if not any(name in bound for bound in binds):
        return None
    wanted, kept = {name}, {at for at, node in enumerate(tree.body) if _is_for_all(node)}
    for at in kept:
        wanted |= _read(tree.body[at])
    while more := [at for at, bound in enumerate(binds) if at not in kept and bound & wanted]:
        for at in more:
            kept.add(at)
            wanted |= _read(tree.body[at])
    return ast.Module([node for at, node in enumerate(tree.body) if at in kept], tree.type_ignores)


def _is_for_all(node: ast.stmt) -> bool:
    """Whether a statement affects all others: a future or star import, or a change of the module path."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(alias.name == "*" for alias in node.names)
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("sys.path.")


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, or whose object it changes by an assignment."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _roots(target)
    elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While) and not _is_main(node):
        for child in ast.iter_child_nodes(node):
            for inner in [child] if isinstance(child, ast.stmt) else getattr(child, "body", []):
                if isinstance(inner, ast.stmt):
                    yield from _bound(inner)


def _roots(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _roots(part)
    elif isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        yield from _roots(target.value)


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _read(node: ast.AST) -> set[str]:
    """The names that a statement reads; methods of a class read their names only when they are called."""
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.ClassDef):
        inner = [part for part in node.body if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        parts = [*node.bases, *node.keywords, *node.decorator_list, *inner]
    names = {node.id} if isinstance(node, ast.Name) else set()
    return names.union(*map(_read, parts))
