"""Foreign YAML, read as plain types, with a limit on alias expansion."""

from __future__ import annotations

from typing import Any, Final

import yaml

MAX_VALUES: Final = 100_000


def load(text: str | bytes) -> Any:
    """Return the plain values of a YAML text.

    A few nested aliases may expand to more values than fit in memory, so values are counted before creation.

    Raises:
        ValueError: it has more than MAX_VALUES values, or is nested too deeply. yaml.YAMLError; UnicodeDecodeError.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _count(node, {}) > MAX_VALUES:
            raise ValueError(f"its aliases expand to more than {MAX_VALUES} values")
        return loader.construct_document(node)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Count a node's values with all aliases expanded; each node is checked once."""
    if id(node) not in known:
        known[id(node)] = MAX_VALUES + 1  # while counting: a node that contains itself is infinite
        parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        is_scalar = isinstance(node, yaml.ScalarNode)
        known[id(node)] = 1 if is_scalar else 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]
