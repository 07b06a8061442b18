"""Layers of a test are its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arm_client.dnn.layers import layer


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Every test begins with no layers and leaves none."""
    before = dict(layer.registry._creators)
    layer.registry._creators.clear()
    layer.registry.generation += 1
    yield
    layer.registry._creators.clear()
    layer.registry._creators.update(before)
    layer.registry.generation += 1
