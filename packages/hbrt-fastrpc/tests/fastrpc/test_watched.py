"""What a skeleton in C does to its arguments and may not do, under the check memory."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

import fastrpc
from arm_client.client import private_board
from fastrpc import remote_arg, remote_handle64
from fastrpc.wire import uri
from fastrpc.wire.scalars import make
from tests.fastrpc.test_c_programs import HERE, STRICT, build

URI = uri.of_interface("careless") + "&_dom=cdsp"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("careless")
    return build(folder / "image.so", HERE / "programs" / "careless_image.c", "--dsp", *STRICT[:4])


def invoke(handle: int, method: int, size_bytes: int, *, is_shared: bool) -> bytes:
    """An input and an output of so many bytes; returns the output."""
    arguments = (remote_arg * 2)()
    memory = [fastrpc.rpcmem_alloc(25, 1, size_bytes) if is_shared else None for _ in arguments]
    kept = [bytearray(size_bytes) for _ in arguments]
    for one, shared, own in zip(arguments, memory, kept, strict=True):
        one.buf.pv = shared or address_of(own)
        one.buf.nLen = size_bytes
    assert fastrpc.remote_handle64_invoke(handle, make(method, 1, 1), arguments) == 0
    for shared in filter(None, memory):
        fastrpc.rpcmem_free(shared)
    return bytes(kept[1])


def address_of(raw: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(raw))


@pytest.mark.parametrize("check", ["memory", "all"])
def test_changed_inputs_and_overrun_copies_are_named(image: Path, check: str) -> None:
    with private_board(image, cores=1, check=check) as board:
        handle = remote_handle64()
        assert fastrpc.remote_handle64_open(URI, handle) == 0
        for size_bytes in (100, 128):
            assert invoke(handle.value, 4, size_bytes, is_shared=False) == b"\7" * size_bytes
            invoke(handle.value, 4, size_bytes, is_shared=True)
        assert texts_of(board) == []
        for is_shared in (False, True):
            invoke(handle.value, 2, 100, is_shared=is_shared)
        assert invoke(handle.value, 3, 128, is_shared=False) == b"\7" * 128
        assert fastrpc.remote_handle64_close(handle) == 0
        kinds, texts = [one["kind"] for one in board.status()["findings"]], " ".join(texts_of(board))
    assert sorted(set(kinds)) == ["input-written", "overrun"]
    who = "of careless_skel_handle_invoke has"
    assert f"Method 2 {who} changed argument 0, an input of 100 bytes, from byte 5 on" in texts
    assert f"Method 3 {who} written past the end of argument 1, which has 128 bytes: byte 1 behind it" in texts


def texts_of(board: Any) -> list[str]:
    return [one["text"] for one in board.status()["findings"]]
