"""YAML of others is bounded by what it stands for, not by its length."""

from __future__ import annotations

import pytest

from hbrt.borders import yaml_text
from tests.each import each


@each("form", ["[{}]", "{{k: [{}]}}", "{{<<: [{}]}}"])
def test_nested_aliases_are_counted_before_they_are_made(form: str) -> None:
    lines = [f"a{at}: &a{at} {form.format(', '.join([f'*a{at - 1}'] * 9))}" for at in range(1, 20)]
    with pytest.raises(ValueError, match="its aliases expand to more than"):
        yaml_text.load("\n".join(["a0: &a0 {x: 1}", *lines]))


def test_depth_and_a_value_in_itself_are_refused_and_plain_text_is_read() -> None:
    for text, why in (("[" * 1000, "nested too deeply"), ("&a [*a]", "more than")):
        with pytest.raises(ValueError, match=why):
            yaml_text.load(text)
    text = "a: &a {x: 1}\nb: {<<: *a, y: [*a, 2]}\n"
    assert yaml_text.load(text) == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}, 2]}}
    assert yaml_text.load("") is None
