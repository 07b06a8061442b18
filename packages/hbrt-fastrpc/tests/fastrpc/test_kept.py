"""Messages that are sent again."""

from __future__ import annotations

from typing import Any, cast

from fastrpc.counting import Statistics, Tally
from fastrpc.domains import Opened
from fastrpc.invocations.kept import Kept, KeptMessages
from fastrpc.invocations.messages import Made


class Buffer:
    size_bytes = 4096


def a_message(messages: KeptMessages) -> Kept:
    """A message without copies."""
    made = Made(cast("Any", Buffer()), (1, 2, 3, 0, 0x1000, 96, 0, 0), [], [], [], [], Statistics(1), 0, [], {})
    return Kept(made, Opened(1, 1, 3, "file:///x"), messages.changes, Tally(made.each))


def test_all_are_forgotten_while_the_oldest_is_looked_for() -> None:
    class Emptied(dict[Any, Any]):
        """As if another thread forgot all once their number is known."""

        def __len__(self) -> int:
            count = super().__len__()
            if count > 64:
                messages.discard()
            return count

    messages = KeptMessages(lambda _: None)
    messages._kept = Emptied()
    for number in range(65):
        assert messages.keep((number,), a_message(messages))
    assert not [*messages._kept]


def test_an_invalid_message_that_another_thread_sends_is_not_released() -> None:
    taken: list[Kept | None] = []
    released: list[Any] = []

    class Shared(dict[Any, Any]):
        """As if another thread repeated the call at once."""

        def setdefault(self, key: Any, kept: Any = None) -> Any:
            found = super().setdefault(key, kept)
            taken.append(messages.take(key))
            return found

    messages = KeptMessages(released.append)
    kept = a_message(messages)
    messages.discard()
    messages._kept = Shared()
    if not messages.keep((1,), kept):
        released.append(kept.made.buffer)  # as the runtime does
    assert taken == [kept]
    assert released == []
    assert kept.is_forgotten
    assert messages.take((1,)) is None
