"""Arrays and buffers in device memory: addresses of views, what loses its address, what a task refuses."""

from __future__ import annotations

import ctypes
import gc
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import arm_client as hb
from arm_client import Board, BoardArray, CallerError, OutOfMemoryError

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

pytestmark = pytest.mark.dsp_board(image="images/ops.py")
MORE_THAN_ALL_SLOTS = 1200


class Standing:
    """Stands for an integer, or raises when it is asked for it; has nothing else of a number."""

    def __init__(self, number: int | BaseException) -> None:
        self._number = number

    def __index__(self) -> int:
        if isinstance(self._number, BaseException):
            raise self._number
        return self._number


class TestAddresses:
    def test_views_know_their_own(self, dsp_board: Board) -> None:
        array = dsp_board.empty((4, 6), np.int16)
        array[...] = np.arange(24).reshape(4, 6)
        base = array.phy_addr
        assert base % 64 == 0
        for view, offset in (
            (array[1:], 12),
            (array[2], 24),
            (array[0, 3:], 6),
            (array.reshape(-1)[5:], 10),
            (array.view(np.uint8)[1], 12),
            (array.T, 0),
            (array[::2, 1::2], 2),
            (array[::-1], 36),
            (np.broadcast_to(array, (2, 4, 6), subok=True), 0),
            (array[1:2][0][2:3], 16),
        ):
            assert isinstance(view, BoardArray)
            assert view.phy_addr == base + offset

    def test_empty_and_scalar_shapes(self, dsp_board: Board) -> None:
        for shape in ((), (0,), (3, 0, 2), 5, (2, 2)):
            array = dsp_board.empty(shape)
            assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
            assert array.phy_addr % 64 == 0

    def test_copies_and_results_have_none(self, dsp_board: Board) -> None:
        array = dsp_board.from_array(np.arange(6, dtype=np.float32))
        for copy in (array.copy(), array[[0, 2]], array.astype(np.int8), pickle.loads(pickle.dumps(array))):  # noqa: S301
            assert isinstance(copy, BoardArray)
            with pytest.raises(CallerError, match="This array is not in device memory: copying gave an ordinary array"):
                _ = copy.phy_addr
        for result in (array + 1, np.sqrt(array), np.concatenate([array, array]), array @ array, array.sum()):
            assert not isinstance(result, BoardArray) or result.board_buffer is None
        assert type(array + 1) is np.ndarray
        assert type(array.sum()) is np.float32

    def test_in_place_work_stays_in_device_memory(self, dsp_board: Board) -> None:
        array = dsp_board.from_array(np.ones(6, np.float32))
        array += 1
        np.multiply(array, 3, out=array)
        assert array.tolist() == [6.0] * 6
        assert array.phy_addr

    def test_from_array_takes_whatever_numpy_takes(self, dsp_board: Board) -> None:
        strided = np.arange(20)[::3]
        sources: list[Any] = [[1, 2, 3], 7, strided, np.array([[1.5]], ">f8"), np.zeros((0, 3)), range(4), True]
        for source in sources:
            array = dsp_board.from_array(source)
            np.testing.assert_array_equal(array, np.asarray(source))
            assert array.dtype == np.asarray(source).dtype
            assert array.flags.c_contiguous
        like = dsp_board.empty_like(strided)
        assert (like.shape, like.dtype) == (strided.shape, strided.dtype)
        assert not like.any()

    def test_memory_goes_with_the_last_view(self, dsp_board: Board) -> None:
        array = dsp_board.empty(1000)
        view = array[10:20]
        del array
        gc.collect()
        assert dsp_board.live_bytes() == 4000
        view[:] = 1
        del view
        gc.collect()
        assert dsp_board.live_bytes() == 0


class TestRefusals:
    @pytest.mark.parametrize("shape", [-1, (3, -1), (-2, -2)])
    def test_negative_dimensions(self, dsp_board: Board, shape: Any) -> None:
        with pytest.raises(CallerError, match="has a negative dimension"):
            dsp_board.empty(shape)

    @pytest.mark.parametrize("shape", [1 << 30, (1 << 20, 1 << 20), (1 << 40, 1 << 40), (np.int64(1 << 62), 4)])
    def test_more_than_a_block_can_have(self, dsp_board: Board, shape: Any) -> None:
        with pytest.raises(CallerError, match="A block must have 1 to 4294967295 bytes"):
            dsp_board.empty(shape)

    def test_more_than_there_is(self, dsp_board: Board) -> None:
        with pytest.raises(OutOfMemoryError, match="3221225472") as caught:
            dsp_board.alloc(3 << 30)
        assert caught.value.status == hb.HB_SYS_OUT_OF_MEMORY

    @pytest.mark.parametrize("shape", [(1,) * 65, (1 << 70, 0)])
    def test_a_shape_that_numpy_cannot_have(self, dsp_board: Board, shape: Any) -> None:
        with pytest.raises(CallerError, match="numpy does not support arrays of shape"):
            dsp_board.empty(shape)

    @pytest.mark.parametrize("dtype", ["nope", "f4,(", "3x", 7, {"names": ["a"]}, [("a", "nope")]])
    def test_a_type_that_is_none(self, dsp_board: Board, dtype: Any) -> None:
        sentence = "use np.float32, np.int8 or another numpy type"
        with pytest.raises(CallerError, match=sentence) as caught:
            dsp_board.empty(3, dtype=dtype)
        assert caught.value.status == hb.HB_SYS_INVALID_ARGUMENT
        with dsp_board.alloc(64) as buffer, pytest.raises(CallerError, match=sentence):
            buffer.array(dtype, 3)

    def test_types_that_are_python_objects(self, dsp_board: Board) -> None:
        with pytest.raises(CallerError, match="holds Python objects"):
            dsp_board.empty(3, object)
        with pytest.raises(CallerError, match="holds Python objects"):
            dsp_board.from_array([object()])  # type: ignore[arg-type]

    def test_shapes_and_sizes_that_are_no_integers(self, dsp_board: Board) -> None:
        bad: list[Any] = [1.5, "3", None, (2, 2.0)]
        for shape in bad:
            with pytest.raises(TypeError):
                dsp_board.empty(shape)
        assert dsp_board.live_bytes() == 0

    def test_an_array_larger_than_its_buffer(self, dsp_board: Board) -> None:
        with dsp_board.alloc(100) as buffer:
            assert buffer.array(np.uint8, 100).nbytes == 100
            with pytest.raises(CallerError, match=r"needs 104 bytes, but the buffer at 0x[0-9a-f]+ has 100"):
                buffer.array(np.float32, (2, 13))

    def test_a_freed_buffer(self, chip: Chip) -> None:
        buffer = chip.board.alloc(64)
        array = buffer.array(np.uint8, 64)
        buffer.free()
        buffer.free()  # a second time does nothing
        for use in (
            buffer.view,
            lambda: buffer.array(np.uint8, 4),
            lambda: chip.board.submit(chip.ECHO, buffer),
            lambda: chip.board.submit(chip.ECHO, None, array),
        ):
            with pytest.raises(CallerError, match=f"The buffer at {buffer.phy_addr:#x} was freed") as caught:
                use()
            assert caught.value.status == hb.HB_SYS_NOT_ALLOCATED

    def test_arrays_that_a_task_cannot_take(self, chip: Chip) -> None:
        board = chip.board
        array = board.empty((4, 4))
        cases: tuple[tuple[Any, str], ...] = (
            (array.T, "has strides .4, 16. for shape .4, 4.; the DSP needs C order. Copy it with board.from_array"),
            (array[:, :2], "the DSP needs C order"),
            (array[::-1], "the DSP needs C order"),
            (array.copy(), "This array is not in device memory"),
        )
        for bad, sentence in cases:
            for arguments in ((bad, None), (None, bad)):
                with pytest.raises(CallerError, match=sentence):
                    board.submit(chip.ECHO, *arguments)
        with pytest.raises(CallerError, match="The output is a ndarray; it must be in device memory"):
            board.submit(chip.ECHO, None, np.zeros(4))  # type: ignore[arg-type]
        with pytest.raises(CallerError, match="at a multiple of 8 bytes") as caught:
            board.submit(chip.ECHO, array[0, 1:], array)  # type: ignore[arg-type]
        assert caught.value.status == hb.HB_DSP_UNALIGNED_ADDRESS
        assert board.call(chip.ECHO, array[1], array[2]) is not None

    def test_an_array_of_another_board(
        self, chip: Chip, dsp_board_factory: Callable[..., AbstractContextManager[Board]]
    ) -> None:
        with dsp_board_factory() as other:
            foreign = other.empty(4)
            for arguments in ((foreign, None), (None, foreign), (foreign.board_buffer, None)):
                with pytest.raises(CallerError, match="is not on this connection's board; copy it with from_array"):
                    chip.board.submit(chip.ECHO, *arguments)
            del arguments, foreign


class Pair(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("a", ctypes.c_int32), ("b", ctypes.c_uint64))


class TestParameters:
    @pytest.mark.parametrize(
        "params",
        [
            b"12345678abcd",
            bytearray(b"12345678abcd"),
            memoryview(b"12345678abcd"),
            Pair.from_buffer_copy(b"12345678abcd"),
            (ctypes.c_int * 3).from_buffer_copy(b"12345678abcd"),
            np.frombuffer(b"12345678abcd", np.int32),
            np.frombuffer(b"12345678abcd", np.uint8).reshape(3, 4),
        ],
        ids=lambda params: type(params).__name__,
    )
    def test_are_copied_byte_for_byte(self, chip: Chip, params: Any) -> None:
        output = chip.board.empty(12, np.uint8)
        assert chip.board.call(chip.ECHO, params, output) is output
        assert bytes(output) == b"12345678abcd"

    def test_arrays_and_buffers_of_the_board_go_as_they_are(self, chip: Chip) -> None:
        array, output = chip.board.from_array(np.arange(4, dtype=np.uint16)), chip.board.empty(4, np.uint16)
        chip.board.call(chip.ECHO, array, output)
        assert output.tolist() == [0, 1, 2, 3]
        assert array.board_buffer is not None
        output[:] = 0
        chip.board.call(chip.ECHO, array.board_buffer, output.board_buffer)
        assert output.tolist() == [0, 1, 2, 3]

    def test_none_and_nothing(self, chip: Chip) -> None:
        for params in (None, b"", bytearray(), chip.board.empty(0), np.zeros(0)):
            assert chip.board.call(hb.HB_DSP_RPC_CMD_PING, params) is None  # type: ignore[arg-type]

    def test_large_ones_and_small_ones_after_each_other(self, chip: Chip) -> None:
        output = chip.board.empty(100_000, np.uint8)
        for size in (10, 100_000, 10, 300, 5000, 1):
            chip.board.call(chip.ECHO, b"\x07" * size, output)
            assert (output[:size] == 7).all()
            assert not output[size:].any()
            output[:] = 0

    def test_what_has_no_bytes(self, chip: Chip) -> None:
        bad: list[Any] = ["text", 5, [1, 2], np.zeros((4, 4))[:, ::2], object()]
        for params in bad:
            with pytest.raises(CallerError, match="pass bytes, a ctypes structure, or an array of this board"):
                chip.board.submit(chip.ECHO, params)
        assert chip.board.live_tasks() == 0

    def test_scheduling_arguments_are_checked(self, chip: Chip) -> None:
        cases: tuple[tuple[dict[str, Any], int], ...] = (
            ({"core": 4}, hb.HB_DSP_INVALID_CORE),
            ({"priority": 256}, hb.HB_DSP_INVALID_PRIORITY),
            ({"custom_id": 1 << 63}, hb.HB_DSP_INVALID_ARGUMENT),
            ({"custom_id": -(1 << 63) - 1}, hb.HB_DSP_INVALID_ARGUMENT),
        )
        for arguments, status in cases:
            with pytest.raises(CallerError) as caught:
                chip.board.submit(chip.ECHO, **arguments)
            assert caught.value.status == status
        for cmd in (-1, 0x10000):
            with pytest.raises(CallerError, match="but must be 0x0 to 0xffff"):
                chip.board.submit(cmd)
        for wrong in ("5", 1.5, None):
            with pytest.raises(TypeError):
                chip.board.submit(wrong)  # type: ignore[arg-type]
        assert chip.board.call(np.int32(0), custom_id=(1 << 63) - 1) is None  # type: ignore[arg-type]
        assert chip.board.live_tasks() == 0

    def test_whatever_stands_for_an_integer_is_one(self, chip: Chip) -> None:
        for one in (True, np.uint8(1), np.array(1), Standing(1)):
            given: Any = one
            for arguments in ({"core": given}, {"priority": given}, {"custom_id": given}):
                assert chip.board.call(hb.HB_DSP_RPC_CMD_PING, b"x", **arguments) is None
        for name, much, sentence in (
            ("cmd", 0x10000, "rpcCmd is 0x10000, but must"),
            ("core", 300, "dspCoreId is 300; this board"),
            ("priority", 300, "The priority is 300, but"),
            ("custom_id", 1 << 63, f"The custom_id is {1 << 63}, but"),
        ):
            with pytest.raises(CallerError, match=sentence):
                chip.board.call(**{"cmd": hb.HB_DSP_RPC_CMD_PING, name: Standing(much)})  # type: ignore[arg-type]
        wrong: Any
        for wrong in ([], [1], {}, "1", b"1", 0.0, 1.0, np.float64(0), np.zeros(2, int)):
            with pytest.raises(TypeError, match="integer"):
                chip.board.call(hb.HB_DSP_RPC_CMD_PING, core=wrong)
        assert chip.board.live_tasks() == 0

    @pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
    def test_number_that_raises_costs_no_slot(self, chip: Chip, error: type[BaseException]) -> None:
        broken: Any = Standing(error())
        for name in ("cmd", "priority", "core", "custom_id"):
            arguments = {"cmd": hb.HB_DSP_RPC_CMD_PING, name: broken}
            for _ in range(MORE_THAN_ALL_SLOTS):
                with pytest.raises(error):
                    chip.board.call(**arguments)
        assert chip.board.call(hb.HB_DSP_RPC_CMD_PING) is None
        assert chip.board.live_tasks() == 0


def test_prints_show_a_board_and_a_buffer_with_their_values(dsp_board: Board) -> None:
    assert repr(dsp_board) == f"<Board {dsp_board.path.name}: {dsp_board.core_count} cores, {dsp_board.path}>"
    buffer = dsp_board.alloc(100)
    shown = f"<Buffer {buffer.phy_addr:#x}, 100 bytes"
    assert repr(buffer) == f"{shown}>"
    buffer.free()
    assert repr(buffer) == f"{shown}, freed>"
