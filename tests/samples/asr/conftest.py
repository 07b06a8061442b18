"""One board with the image of the acoustic model, for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arm_client.client import Board, private_board
from recognizer import Network, build_image, load_network


@pytest.fixture(scope="session")
def network() -> Network:
    return load_network()


@pytest.fixture(scope="package")
def asr_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_image(tmp_path_factory.mktemp("asr"))


@pytest.fixture(scope="package")
def asr_board(asr_image: Path) -> Iterator[Board]:
    with private_board(asr_image) as board:
        yield board
