"""Limits of a process under test that are shorter than the product's: a test waits for their end."""

from __future__ import annotations

from collections.abc import Mapping


def with_limits(limits: Mapping[str, float], program: str) -> str:
    """A program for ``python -c`` that gives constants ("module.NAME") other values before it does what it does."""
    lines = []
    for name, value in limits.items():
        module = name.rpartition(".")[0]
        lines += [f"import {module}", f"{name}, old = {value!r}, {name}"]  # which fails for a constant that is none
    return "\n".join([*lines, program])
