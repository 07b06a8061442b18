"""What serves a connection of the relay, apart from the gate."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dsp_server.gateway.handler import Attendant
from dsp_server.gateway.observer import Looker
from dsp_server.gateway.remote_client import Deputy
from dsp_server.gateway.send_queue import Outbox
from hbrt.board.paths import BoardPaths
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import RELAY_SAYS, Kind, decode

NOWHERE = BoardPaths(Path("/nowhere/at-all"))


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("kind", [Deputy, Looker])
def test_one_that_cannot_start_leaves_nothing_open(kind: type[Attendant], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    outbox = Outbox()
    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread_left)
        attendant = kind(b"x", "x", NOWHERE, outbox, print)
        with pytest.raises(RuntimeError, match="can't start"):
            attendant.start()
    assert open_descriptors() == before
    assert outbox.take_all() == []
    outbox.close()


@pytest.mark.parametrize("kind", [Deputy, Looker])
def test_a_defect_costs_one_connection_and_is_told(kind: type[Attendant], monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(_: Attendant) -> None:
        raise ZeroDivisionError("of nothing")

    said: list[str] = []
    outbox = Outbox()
    monkeypatch.setattr(kind, "_serve", defect)
    kind(b"x", "whoever", NOWHERE, outbox, said.append).run()
    (_, gone), (_, end) = outbox.take_all()
    message: Message = decode(gone or b"", RELAY_SAYS)
    assert message.kind == Kind.GONE
    assert end is None
    assert said[0].startswith(f"The {kind.__name__.lower()} of whoever failed")
    assert "ZeroDivisionError: of nothing" in said[0]
    outbox.close()
