"""What is wrong with an image and no error in Python: a macro of C without the parentheses of a call. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MACROS = frozenset({"HB_DSP_REGISTER_NN_ALL", "HB_DSP_REGISTER_CV_ALL"})


def uncalled_macros(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Registrations that stand as statements of their own and call nothing: name and line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            name = getattr(node.value, "id", getattr(node.value, "attr", ""))
            if name in _MACROS:
                yield name, node.lineno
