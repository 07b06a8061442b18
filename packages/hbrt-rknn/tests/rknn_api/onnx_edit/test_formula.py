import numpy as np
import pytest
from hypothesis import given, strategies as st

from rknn_api.errors import RknnError
from rknn_api.onnx_edit.formula import Formula

VECTORS = [
    ("a,b,c,d->1,ad,b,c", [4, 48, 1, 8], [1, 32, 48, 1]),
    ("a,b,c,d->1,ab,c,d", [4, 8, 48, 1], [1, 32, 48, 1]),
    ("a,b,c,d->1,a,d,b,c", [4, 48, 1, 8], [1, 4, 8, 48, 1]),
    ("a,b,c,d->1,a,b,c,d", [4, 8, 48, 1], [1, 4, 8, 48, 1]),
    ("a,b,c->a,b,1,c", [2, 3, 5], [2, 3, 1, 5]),
    ("a,b,c->a,1,c,b,1,1", [2, 3, 5], [2, 1, 5, 3, 1, 1]),
    ("a,b,c,d,e->ab,c,d,e", [2, 3, 4, 5, 6], [6, 4, 5, 6]),
    ("a,b,c,d->a,d,b,c", [1, 3, 4, 5], [1, 5, 3, 4]),
    ("a,b,c,d->d,acb,1", [2, 3, 4, 5], [5, 24, 1]),
    ("a,bc,de,f[b=2,d=4]->ab,fe,dc,1", [3, 24, 20, 7], [6, 35, 48, 1]),
    ("ab,c,d,qk[a=2,k=8]->aq,cd,1,kb", [32, 4, 1, 64], [16, 4, 1, 128]),
    ("a,1,c,d->a,c,d,1", [2, 1, 3, 4], [2, 3, 4, 1]),
    ("a,b,1,d->a,b,d,1", [32, 4, 1, 64], [32, 4, 64, 1]),
    ("a,b->b,a", [2, 3], [3, 2]),
    ("c , a -> a , c", [2, 3], [3, 2]),
    ("ab,c,d[a=2]->a,c,d,b", [None, None, None], [2, "c", "d", "b"]),
    ("ab,c,d[a=2,b=5,c=7,d=11]->a,c,d,b", [None, None, None], [2, 7, 11, 5]),
]
REFUSED = [
    ("ab,c,d,qk[a=5,k=8]->aq,cd,1,kb", [32, 4, 1, 64], "'b' would be 6.4"),
    ("a,1,c,d->a,c,1", [2, 1, 3, 4], "'d' is missing on the right"),
    ("ab,c,d->a,c,d,b", [6, 2, 3], "'a', 'b' of 'ab' are both open"),
    ("a,bc,de,f[b=2,c=24,d=4]->ab,fe,dc,1", [3, 24, 20, 7], "assigned 48 but the dimension is 24"),
    ("a,bc,de,fl[b=2,d=4]->ab,fe,dc,1", [3, 24, 20, 7], "'l' is missing on the right"),
    ("a,2,c->a,c,2", [2, 2, 3], "characters other than letters"),
    ("a,b", [2, 3], "has 0 arrows"),
    ("a,b->b,a->a,b", [2, 3], "has 2 arrows"),
    ("a,b->b,a,a", [2, 3], "'a' is twice on the right"),
    ("a,b[a=0]->b,a", [2, 3], "the assignment 'a=0'"),
    ("a,b[a=2->b,a", [2, 3], "bracket"),
    ("a,b[z=2]->b,a", [2, 3], "'z' is assigned but not used"),
    ("a,1->a", [2, 3], "stands for a dimension of size 3"),
    ("a,b,c->a,b,c", [2, 3], "has 3 dimensions on the left"),
]


@pytest.mark.parametrize(("text", "shape", "new"), VECTORS)
def test_a_formula_gives_the_new_dimensions(text: str, shape: list[int | None], new: list[int | str]) -> None:
    assert list(Formula.parse(text).of(shape).new) == new


def test_the_letters_carry_no_order() -> None:
    array = np.arange(6).reshape(2, 3)
    swapped = [Formula.parse(text).of([2, 3]).apply(array) for text in ("a,b->b,a", "c,a->a,c")]
    assert (swapped[0] == array.T).all()
    assert (swapped[1] == array.T).all()


def test_the_dimensions_are_taken_apart_and_merged_in_the_order_written() -> None:
    array = np.arange(32 * 4 * 64).reshape(32, 4, 1, 64)
    wanted = np.einsum("abcdqk->aqcdkb", array.reshape(2, 16, 4, 1, 8, 8)).reshape(16, 4, 1, 128)
    edit = Formula.parse("ab,c,d,qk[a=2,k=8]->aq,cd,1,kb").of(array.shape)
    assert (edit.apply(array) == wanted).all()
    assert Formula.parse("a,b,c,d->1,ad,b,c").of([4, 48, 1, 8]).back == (0, 2, 3, 1)


@pytest.mark.parametrize(("text", "shape", "why"), REFUSED)
def test_a_wrong_formula_says_which_rule_it_breaks(text: str, shape: list[int], why: str) -> None:
    with pytest.raises(RknnError) as caught:
        Formula.parse(text).of(shape)
    assert why in caught.value.text


@given(st.text("abc1,[]=->2 ", max_size=24), st.lists(st.integers(0, 9), max_size=4))
def test_any_text_is_a_formula_or_is_refused(text: str, shape: list[int]) -> None:
    try:
        edit = Formula.parse(text).of(shape)
    except RknnError:
        return
    assert edit.apply(np.zeros(shape)).shape == edit.new
