"""Another class for a living object, for as long as a trace is on: without one, its methods are untouched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def swap_class(one: Any, noting: Callable[[Any], type], *, is_on: bool) -> None:
    """Give an object the class that ``noting`` derives from its own, or the one that it had before.

    Args:
        one: The object.
        noting: Derives a class, with no slots of its own; the same one each time.
        is_on: Whether it is to have that class.
    """
    kind = type(one)
    is_noting = kind.__name__ == "Noting"
    if is_on and not is_noting:
        one.__class__ = noting(kind)
    elif is_noting and not is_on:
        one.__class__ = kind.__base__
