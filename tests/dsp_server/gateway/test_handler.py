"""The handler of one connection, apart from the gateway."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dsp_server.gateway.handler import ConnectionHandler, SendQueue
from dsp_server.gateway.observer import Observer
from dsp_server.gateway.remote_client import RemoteClient
from hbrt.board.paths import BoardPaths
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import RELAY_SAYS, RemoteFrame, decode
from tests.limits import open_descriptors

NOWHERE = BoardPaths(Path("/nowhere/at-all"))


@pytest.mark.parametrize("kind", [RemoteClient, Observer])
def test_one_that_cannot_start_leaves_nothing_open(
    kind: type[ConnectionHandler], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    send_queue = SendQueue()
    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread_left)
        handler = kind(b"x", "x", NOWHERE, send_queue, print)
        with pytest.raises(RuntimeError, match="can't start"):
            handler.start()
    assert open_descriptors() == before
    assert send_queue.take_all() == []
    send_queue.close()


@pytest.mark.parametrize("kind", [RemoteClient, Observer])
def test_a_defect_costs_one_connection_and_is_reported(
    kind: type[ConnectionHandler], monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(_: ConnectionHandler) -> None:
        raise ZeroDivisionError("of nothing")

    said: list[str] = []
    send_queue = SendQueue()
    monkeypatch.setattr(kind, "_serve", defect)
    kind(b"x", "whoever", NOWHERE, send_queue, said.append).run()
    (_, gone), (_, end) = send_queue.take_all()
    message: Message = decode(gone or b"", RELAY_SAYS)
    assert message.kind == RemoteFrame.GONE
    assert end is None
    assert said[0].startswith(f"The {kind.ROLE} of whoever failed")
    assert "ZeroDivisionError: of nothing" in said[0]
    send_queue.close()
