"""What a skeleton in C does to its arguments and may not do, under the check memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import fastrpc
from arm_client.client import private_board
from fastrpc import FASTRPC_ASYNC_POLL, fastrpc_async_descriptor, remote_arg, remote_handle64
from fastrpc.wire import uri
from fastrpc.wire.scalars import make
from tests.fastrpc import test_hexagon
from tests.fastrpc.test_c_programs import HERE, STRICT, build

URI = uri.of_interface("careless") + "&_dom=cdsp"


SOURCE = HERE / "programs" / "careless_image.c"


@pytest.fixture(scope="module", params=["native", pytest.param("hexagon", marks=test_hexagon.pytestmark)])
def target(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, target: str) -> Path:
    folder = tmp_path_factory.mktemp("careless")
    strict = STRICT[:4] if target == "native" else [*STRICT[:2], "-Werror"]
    return build(folder / "image.so", SOURCE, "--dsp", "--target", target, *strict)


def invoke(handle: int, method: int, size_bytes: int, *, is_shared: bool) -> bytes:
    """An input and an output of this many bytes; returns the output."""
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
    with private_board(image, cores=1, check=check) as board, opened() as handle:
        for size_bytes in (100, 128):
            assert invoke(handle, 4, size_bytes, is_shared=False) == b"\7" * size_bytes
            invoke(handle, 4, size_bytes, is_shared=True)
        assert texts_of(board) == []
        for is_shared in (False, True):
            invoke(handle, 2, 100, is_shared=is_shared)
        assert invoke(handle, 3, 128, is_shared=False) == b"\7" * 128
        kinds, texts = [one["kind"] for one in board.status()["findings"]], " ".join(texts_of(board))
    assert sorted(set(kinds)) == ["input-written", "overrun"]
    who = "of careless_skel_handle_invoke has"
    assert f"Method 2 {who} changed argument 0, an input of 100 bytes, from byte 5 on" in texts
    assert f"Method 3 {who} written past the end of argument 1, which has 128 bytes: byte 1 past its end" in texts


def test_an_overrun_of_shared_memory_is_named(image: Path) -> None:
    with private_board(image, cores=1, check="memory") as board, opened() as handle:
        invoke(handle, 4, 100, is_shared=True)
        assert texts_of(board) == []
        invoke(handle, 3, 100, is_shared=True)
        (one,) = board.status()["findings"]
    assert one["kind"] == "overrun"
    assert "wrote past the end of the block" in one["text"]
    assert ", 1 byte past the end." in one["text"]
    assert f"The task was submitted at {__file__}:" in one["text"]
    assert f"The block was allocated at {__file__}:" in one["text"]


def test_a_read_past_an_output_is_named_by_its_line(image: Path, target: str) -> None:
    with private_board(image, cores=1, check="memory") as board, opened() as handle:
        invoke(handle, 6, 100, is_shared=True)
        found = board.status()["findings"]
    if target == "hexagon":
        assert found == []  # accesses of QEMU are not seen
        return
    line = next(at for at, text in enumerate(SOURCE.read_text().splitlines(), 1) if "case 6:" in text)
    assert [one["kind"] for one in found] == ["out-of-block"]
    assert f"reads at {SOURCE}:{line} 4097 bytes past the end of the block" in found[0]["text"]


@pytest.mark.parametrize("freed", [0, 1])
def test_memory_that_is_freed_while_an_invocation_uses_it_is_named(image: Path, freed: int) -> None:
    with private_board(image, cores=1, check="memory") as board, opened() as handle:
        arguments, descriptor, result = (remote_arg * 2)(), fastrpc_async_descriptor(FASTRPC_ASYNC_POLL), ctypes.c_int()
        memory = [fastrpc.rpcmem_alloc(25, 1, 100) for _ in arguments]
        for one, address in zip(arguments, memory, strict=True):
            one.buf.pv, one.buf.nLen = address, 100
        assert fastrpc.remote_handle64_invoke_async(handle, descriptor, make(5, 1, 1), arguments) == 0
        fastrpc.rpcmem_free(memory[freed])
        assert fastrpc.fastrpc_async_get_status(descriptor.jobid, -1, result) == 0
        fastrpc.rpcmem_free(memory[1 - freed])
        (one,) = board.status()["findings"]
    assert one["kind"] == "use-after-free"
    assert f"allocated at {__file__}:" in one["text"]
    assert f"is freed while a task of command 0xfa57, submitted at {__file__}:" in one["text"]


@contextmanager
def opened() -> Iterator[int]:
    handle = remote_handle64()
    assert fastrpc.remote_handle64_open(URI, handle) == 0
    yield handle.value
    assert fastrpc.remote_handle64_close(handle) == 0


def texts_of(board: Any) -> list[str]:
    return [one["text"] for one in board.status()["findings"]]
