"""Tables of docs/ivp.md: the intrinsics, from the comments of the headers that define them."""

from __future__ import annotations

import re
from collections.abc import Callable

from native.ivp_names import read
from tools.ivp_clients import CLIENTS
from tools.markdown import table

_SOURCES = {"guide": "the guide", "halide": "Halide", "tflm": "tflmlib_vision"}


def _cited(source: str) -> str:
    return re.sub(r"\b(guide|halide|tflm)\b", lambda found: _SOURCES[found[1]], source)


def intrinsics() -> str:
    """A table for each family."""
    reference = read()
    parts = []
    for family, sentences in reference.sentences.items():
        rows = [
            (f"`{line.pattern}{line.arguments}`".replace("|", "\\|"), line.meaning, _cited(line.source))
            for line in reference.lines
            if line.family == family
        ]
        text = "\n".join(sentences)
        parts.append(
            f"### {family}\n\n" + (f"{text}\n\n" if text else "") + table(("intrinsic", "meaning", "source"), rows)
        )
    return "\n".join(parts)


def coverage() -> str:
    """How many of the names that public sources use are here, and which are not."""
    here = set(read().names)
    rows = []
    for client in CLIENTS:
        missing = sorted(client.names - here)
        rows.append(
            (
                f"[{client.title}]({client.address})",
                len(client.names),
                len(client.names) - len(missing),
                ", ".join(f"`{name}`" for name in missing) or "-",
            )
        )
    return table(("client", "names", "here", "not here"), rows)


def count() -> str:
    """How many names the headers have."""
    return f"{len(read().names)} names are here.\n"


PARTS: dict[str, Callable[[], str]] = {"ivp-intrinsics": intrinsics, "ivp-coverage": coverage, "ivp-count": count}
