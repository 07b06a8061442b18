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
    own = own_class(one)
    kind = noting(own) if is_on else own
    if type(one) is not kind:
        one.__class__ = kind


def own_class(one: Any) -> Any:
    """The class of an object while no trace is on."""
    kind = type(one)
    return kind.__base__ if kind.__name__ == "Noting" else kind
