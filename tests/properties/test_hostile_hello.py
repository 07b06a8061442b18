"""Any packet to the attach socket: a lease or a refusal comes back, and the next one is let in."""

from __future__ import annotations

import os
import socket

import msgpack
from hypothesis import HealthCheck, given, settings, strategies as st

from arm_client.client import Board
from hbrt.board.paths import BoardPaths
from hbrt.protocol import control
from tests.limits import PATIENCE_S

TEXT = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | TEXT | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
PACKETS = st.one_of(
    st.binary(min_size=1, max_size=400),
    st.dictionaries(st.sampled_from(["v", "pid", "name", "x"]), VALUES, max_size=4).map(msgpack.packb),
    VALUES.map(lambda name: msgpack.packb({"v": control.VERSION, "name": name})),
)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(packet=PACKETS)
def test_any_hello_gets_a_lease_or_a_refusal(dsp_board: Board, packet: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(20.0)
        peer.connect(BoardPaths(dsp_board.path).attach_address)
        peer.send(packet)
        raw, fds, _, _ = socket.recv_fds(peer, 1 << 20, 64)
    for fd in fds:
        os.close(fd)
    answer = control.unpack_map(raw, 1 << 20)
    assert answer["ok"] in {0, 1}
    assert bool(fds) is bool(answer["ok"])
    assert answer["ok"] or answer["text"]
    dsp_board.call(0, timeout=PATIENCE_S)
