"""The acoustic model: in uint8 the same bits in numpy, in blocks and in C, however calls are cut."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from arm_client.client import Board, connect
from arm_client.errors import CallerError, OpFailedError
from recognizer import (
    DeviceNetwork,
    Network,
    Per,
    Recognizer,
    filter_banks,
    forward,
    forward_uint8,
    held_out,
    matrix as qm,
    quantized_weights,
    rows_of,
    word_error_rate,
)
from recognizer.device import CMD_UINT8


@pytest.fixture(scope="module")
def rows(network: Network) -> np.ndarray:
    return rows_of(filter_banks(held_out(1)[0].samples)[:51], network.context)


@pytest.mark.parametrize("is_exact", [False, True])
def test_uint8_is_the_same_bits_in_numpy_in_blocks_and_in_c(
    asr_board: Board, network: Network, rows: np.ndarray, *, is_exact: bool
) -> None:
    weights, features = quantized_weights(network), qm.quantize(rows)
    plain = forward_uint8(network, weights, features, is_exact=is_exact)
    if is_exact:
        blocked = forward_uint8(network, weights, features, is_exact=True, is_blocked=True)
        assert_array_equal(blocked.values, plain.values)
    stored = DeviceNetwork(asr_board, network, is_exact=is_exact)(rows).stored
    assert stored is not None
    assert_array_equal(stored.values, plain.values)
    assert (stored.scale, stored.zero_point) == (plain.scale, plain.zero_point)


def test_calls_and_blocks_may_be_cut_in_any_way(asr_board: Board, network: Network, rows: np.ndarray) -> None:
    one, many = (DeviceNetwork(asr_board, network, is_one_block=is_one) for is_one in (True, False))
    whole = one(rows)
    assert (len(whole.tasks), whole.maps) == (1, 3)
    assert whole.least_multiplier >= 40
    for device, maps in ((one, 3), (many, 2 + many.buffers - 4)):
        for per, calls in ((Per.FORWARD, 1), (Per.LAYER, 5), (Per.OPERATION, 28)):
            found = device(rows, per)
            assert len(found.tasks) == calls
            assert found.maps == maps if calls == 1 else found.maps > maps
            assert_array_equal(found.scores, whole.scores)


def test_float_on_the_dsp_is_float_on_the_cpu(asr_board: Board, network: Network, rows: np.ndarray) -> None:
    expected = forward(network, rows)
    assert expected.shape[0] == len(rows) - 2 * network.context
    assert_allclose(DeviceNetwork(asr_board, network, is_float=True)(rows).scores, expected, atol=1e-3)
    exact = DeviceNetwork(asr_board, network, is_exact=True)(rows)
    assert np.abs(exact.scores - expected).max() < 0.06 * np.abs(expected).max()


def test_words_of_voices_that_were_not_trained_on(asr_board: Board, network: Network) -> None:
    said = held_out(2)
    with connect(str(asr_board.path)) as board:
        on_dsp = Recognizer.on_dsp(DeviceNetwork(board, network))
        rates = [
            word_error_rate([one.words for one in said], [recognize(one.samples).words for one in said])
            for recognize in (Recognizer(network), on_dsp)
        ]
    assert max(rates) <= 0.1
    assert abs(rates[0] - rates[1]) <= 0.02


def test_an_l_that_loses_the_numbers_fails_with_the_operation(
    asr_board: Board, network: Network, rows: np.ndarray
) -> None:
    with pytest.raises(OpFailedError, match="operation 0: with L = 256 its numbers would be lost"):
        DeviceNetwork(asr_board, network, denominator=256)(rows)


def test_more_rows_than_were_allocated_are_refused(asr_board: Board, network: Network, rows: np.ndarray) -> None:
    with pytest.raises(CallerError, match="allocate with a larger most_frames"):
        DeviceNetwork(asr_board, network, most_frames=10)(rows)


@pytest.mark.parametrize("shape", [(128,), (40, 120), (40, 256)])
def test_features_of_another_shape_are_refused(asr_board: Board, network: Network, shape: tuple[int, ...]) -> None:
    with pytest.raises(CallerError, match="a row must have 128 numbers"):
        DeviceNetwork(asr_board, network)(np.zeros(shape, np.float32))


def test_a_board_without_the_op_says_what_to_do(dsp_board: object, network: Network, rows: np.ndarray) -> None:
    with connect() as board, pytest.raises(CallerError, match=r"hbrt cc --dsp -o tdnnf\.so"):
        DeviceNetwork(board, network)(rows)


def test_nonsense_in_the_blocks_fails_the_task_alone(asr_board: Board, network: Network, rows: np.ndarray) -> None:
    device = DeviceNetwork(asr_board, network, most_frames=60)
    good = device(rows).scores
    noise = random.Random(1)
    steps, param, heads = np.array(device._steps), bytes(device._param), bytes(device._heads)
    blocks: list[Any] = [memoryview(device._param), memoryview(device._heads)]
    views = [np.asarray(device._steps), *(np.frombuffer(block.cast("B"), np.uint8) for block in blocks)]
    failed = 0
    for _ in range(150):
        view = noise.choice(views)
        at = noise.randrange(0, view.nbytes, 4)
        value = noise.choice([0, 1, 2, 3, 5, 255, 1 << 16, (1 << 31) - 1, (1 << 32) - 1])
        view[at : at + 4].view(np.uint32)[0] = value
        try:
            asr_board.call(CMD_UINT8, device._param, device._output)
        except OpFailedError:
            failed += 1
        device._steps[:] = steps
        ctypes.memmove(ctypes.addressof(device._param), param, len(param))
        ctypes.memmove(ctypes.addressof(device._heads), heads, len(heads))
    assert failed > 20
    assert_array_equal(device(rows).scores, good)
