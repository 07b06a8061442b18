"""The formulas of onnx_edit: how they map a tensor's dimensions. Pure.

    formula := groups [ "[" assignment ("," assignment)* "]" ] "->" groups
    groups := group ("," group)*
    group := (letter | "1")+
    assignment := letter "=" number

A group on the left is a dimension of the tensor; several letters in it split the dimension, the leftmost outermost. A
group on the right is a dimension of the new tensor; several letters in it are merged in the order written. A ``1`` on
the left stands for a dimension of size 1, and one on the right inserts such a dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from rknn_api.errors import RknnError, invalid_parameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

Size = int | str
"""Placeholder for a size that depends on the data: equal texts in one formula are equal sizes."""

_GROUPS = re.compile(r"[a-z1]+(?:,[a-z1]+)*")
_ASSIGNED = re.compile(r"([a-z])=([1-9]\d*)")


@dataclass(frozen=True)
class Edit:
    """The effect of a formula on a tensor: Reshape to ``split``, Transpose by ``order``, Reshape to ``new``.

    Attributes:
        original: Sizes before.
        split: Sizes by letter, in the order of the left side.
        order: Where each letter of the right side is on the left side.
        new: Sizes after.
    """

    original: tuple[Size, ...]
    split: tuple[Size, ...]
    order: tuple[int, ...]
    new: tuple[Size, ...]

    @property
    def turned(self) -> tuple[Size, ...]:
        """Sizes by letter, in the order of the right side."""
        return tuple(self.split[at] for at in self.order)

    @property
    def back(self) -> tuple[int, ...]:
        """The order that undoes ``order``."""
        return tuple(self.order.index(at) for at in range(len(self.order)))

    def apply(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array of the original dimensions, with the new ones."""
        turned = array.reshape([-1 if isinstance(size, str) else size for size in self.split]).transpose(self.order)
        return turned.reshape([-1 if isinstance(size, str) else size for size in self.new])


@dataclass(frozen=True)
class Formula:
    """A parsed formula.

    Attributes:
        text: The original text.
        left: Letters of each dimension; empty for a dimension of size 1.
        right: Letters of each new dimension; empty for an inserted one.
        assigned: Sizes by letter.
    """

    text: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    assigned: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Parse a formula. Spaces are ignored.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: it breaks a rule; the message says which.

        Source: RKNN SDK advanced guide (chapter 5), 5.13.2
        """
        dense = re.sub(r"\s", "", text)
        sides = dense.split("->")
        if len(sides) != 2:
            raise _wrong(text, f"it has {len(sides) - 1} arrows '->'; it must have one")
        left, bracket, rest = sides[0].partition("[")
        if bracket and not rest.endswith("]"):
            raise _wrong(text, "the bracket of its assignments does not end before '->'")
        for groups in (left, sides[1]):
            if not _GROUPS.fullmatch(groups):
                raise _wrong(text, f"{groups!r} has characters other than letters a to z, 1 and commas between them")
        assigned: dict[str, int] = {}
        for one in rest[:-1].split(",") if bracket else ():
            found = _ASSIGNED.fullmatch(one)
            if found is None:
                raise _wrong(text, f"the assignment {one!r} is not a letter, '=' and a number above 0")
            if found[1] in assigned:
                raise _wrong(text, f"{found[1]!r} is assigned twice")
            assigned[found[1]] = int(found[2])
        formula = cls(
            text,
            tuple(group.replace("1", "") for group in left.split(",")),
            tuple(group.replace("1", "") for group in sides[1].split(",")),
            assigned,
        )
        formula._check_letters()
        return formula

    def _check_letters(self) -> None:
        left, right = "".join(self.left), "".join(self.right)
        for side, given in (("left", left), ("right", right)):
            twice = {letter for letter in given if given.count(letter) > 1}
            if twice:
                raise _wrong(self.text, f"{_listed(twice)} is twice on the {side}")
        for what, letters in (
            ("is missing on the right", set(left) - set(right)),
            ("is missing on the left", set(right) - set(left)),
            ("is assigned but not used", set(self.assigned) - set(left)),
        ):
            if letters:
                raise _wrong(self.text, f"{_listed(letters)} {what}")

    def of(self, shape: Sequence[int | None]) -> Edit:
        """The effect of the formula on a tensor.

        Args:
            shape: Its sizes; None if they depend on the data.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the dimensions do not fit; the message says which.
        """
        if len(shape) != len(self.left):
            raise _wrong(
                self.text, f"it has {len(self.left)} dimensions on the left but the tensor {shape} has {len(shape)}"
            )
        sizes: dict[str, Size] = {}
        for group, size in zip(self.left, shape, strict=True):
            sizes |= self._split(group, size)
        letters, turned = "".join(self.left), "".join(self.right)
        return Edit(
            tuple(_merged(group, sizes) for group in self.left),
            tuple(sizes[letter] for letter in letters),
            tuple(letters.index(letter) for letter in turned),
            tuple(_merged(group, sizes) for group in self.right),
        )

    def _split(self, group: str, size: int | None) -> dict[str, Size]:
        """Sizes of the letters of one dimension."""
        if not group and size not in {1, None}:
            raise _wrong(self.text, f"a 1 on the left stands for a dimension of size {size}; use a letter")
        sizes: dict[str, Size] = {letter: self.assigned.get(letter, letter) for letter in group}
        still_open = [letter for letter, one in sizes.items() if one == letter]
        known = prod(one for one in sizes.values() if isinstance(one, int))
        if len(still_open) > 1:
            raise _wrong(self.text, f"{_listed(still_open)} of {group!r} are both open; assign all but one")
        if size is None:
            return sizes
        if still_open:
            if size % known:
                raise _wrong(self.text, f"{group!r} is {size}, so {still_open[0]!r} would be {size / known:g}")
            sizes[still_open[0]] = size // known
        elif group and known != size:
            raise _wrong(self.text, f"{group!r} is assigned {known} but the dimension is {size}")
        return sizes


def _merged(group: str, sizes: Mapping[str, Size]) -> Size:
    """The product of the letters' sizes; 1 without letters."""
    known = prod(size for letter in group if isinstance(size := sizes[letter], int))
    still_open = sorted(size for letter in group if isinstance(size := sizes[letter], str))
    return "*".join([*([] if known == 1 else [str(known)]), *still_open]) if still_open else known


def _listed(letters: Iterable[str]) -> str:
    return ", ".join(repr(letter) for letter in sorted(letters))


def _wrong(text: str, why: str) -> RknnError:
    return invalid_parameter(f"The formula {text!r} is wrong: {why}.")
