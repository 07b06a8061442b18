"""What a relay says of the ends of tasks, on a wire that changes bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from arm_client.transport.remote import Remote
from hbrt.mailbox.table import ANSWER, Answer, State
from hbrt.profiles.work import WORK
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import TASK_END
from tests.each import each


@each("handle, state", [(1, 256), (1, 9), (1, int(State.READY)), (0xFFFF, int(State.DONE))])
def test_an_end_that_cannot_be_breaks_the_protocol(handle: int, state: int) -> None:
    carrier = Remote()
    carrier.tasks = cast("Any", SimpleNamespace(handles=[0] * 8))
    answer: Any = Answer(*([0] * len(Answer._fields)))
    raw = TASK_END.pack(handle, state, ANSWER.pack(*answer), bytes(WORK.size))
    with pytest.raises(MalformedMessageError, match=f"ended in state {state}"):
        carrier._on_end(raw, b"")
