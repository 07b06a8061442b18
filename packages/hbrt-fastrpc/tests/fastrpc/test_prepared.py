"""Messages that libcdsprpc.so sends by itself, in slots that this test reads in its place."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastrpc.c_library.prepared import Lent, _Prepared
from fastrpc.invocations.kept import Borrower, Kept, KeptMessages
from fastrpc.wire import scalars
from fastrpc.wire.types import remote_arg
from tests.arm_client.interrupts import is_interrupted
from tests.fastrpc.test_kept import a_message
from tests.limits import PATIENCE_S

WORD, SLOT = scalars.make(2, 1, 0), 5


class Library:
    """The slots of a library, in which all invocations collide."""

    def __init__(self, on_lend: Callable[[], object] = lambda: None) -> None:
        self.slots = (_Prepared * 64)()
        self.arguments = (remote_arg * 1)()
        self.arguments[0].buf.nLen = 8

        def place_of(*_: int) -> int:
            on_lend()
            return SLOT

        self.lent = Lent(ctypes.addressof(self.slots), place_of)

    def lend(self, handle: int, kept: Kept) -> None:
        self.lent.lend(handle, WORD, ctypes.addressof(self.arguments), kept)

    def send(self, handle: int) -> bool:
        """Send an invocation as fastrpc.c does; returns whether its message was lent."""
        slot = self.slots[SLOT]
        is_lent = bool(slot.version and not slot.version % 2 and slot.handle == handle and slot.word == WORD)
        slot.calls += is_lent
        return is_lent


@pytest.fixture
def messages() -> KeptMessages:
    return KeptMessages(lambda _: None)


def two(messages: KeptMessages) -> tuple[Kept, Kept]:
    first, second = a_message(messages), a_message(messages)
    assert messages.keep((1,), first)
    assert messages.keep((2,), second)
    return first, second


def test_colliding_invocations_take_turns_in_a_slot(messages: KeptMessages) -> None:
    library = Library()
    both = two(messages)
    for _ in range(1000):
        for handle, kept in enumerate(both, 1):
            library.lend(handle, kept)
            assert [library.send(one) for one in (1, 2)] == [handle == 1, handle == 2]
    assert [kept.tally.calls for kept in both] == [1000, 999]
    assert messages.sent_by_c().calls == 1
    assert [len(kept.slots) for kept in both] == [0, 1]


def test_a_message_whose_slot_has_another_is_forgotten_alone(messages: KeptMessages) -> None:
    library = Library()
    first, second = two(messages)
    first.opened.remote = 7
    library.lend(1, first)
    library.lend(2, second)
    library.lent.take_back(SLOT, first)  # of a thread that has read the slots of the first before
    messages.discard(first.opened)
    assert library.send(2)
    messages.discard()
    assert not library.send(2)


def test_a_library_takes_back_no_calls_of_another(messages: KeptMessages) -> None:
    one, other = Library(), Library()
    first, second = two(messages)
    for library in (one, other):
        library.lend(1, first)
        assert library.send(1)
    one.lend(2, second)
    assert (first.tally.calls, messages.sent_by_c().calls) == (1, 1)
    assert other.send(1)
    assert messages.sent_by_c().calls == 2


def test_a_message_forgotten_before_it_is_lent_is_not_sent(messages: KeptMessages) -> None:
    library = Library(messages.discard)
    kept, _ = two(messages)
    library.lend(1, kept)
    assert not library.send(1)
    assert not kept.slots  # and the library keeps no buffer


@pytest.mark.parametrize("is_read_before", [False, True])
def test_a_message_forgotten_while_it_is_lent_is_not_sent(messages: KeptMessages, *, is_read_before: bool) -> None:
    """Its slots may be read before this one is added, or after."""

    class Slots(dict[Borrower, int]):
        def __setitem__(self, borrower: Borrower, number: int) -> None:
            if not is_read_before:
                super().__setitem__(borrower, number)
            forgetting.start()
            assert has_read.wait(PATIENCE_S)
            super().__setitem__(borrower, number)

        def items(self) -> Any:
            found = [*super().items()]
            has_read.set()
            return found

    library, has_read = Library(), threading.Event()
    forgetting = threading.Thread(target=messages.discard)
    kept, _ = two(messages)
    kept.slots = Slots()
    library.lend(1, kept)
    forgetting.join(PATIENCE_S)
    assert not forgetting.is_alive()
    assert not library.send(1)
    assert not kept.slots


@pytest.fixture
def no_collection() -> Iterator[None]:
    """No finalizer of an earlier test's objects runs meanwhile: Python would drop an interrupt in it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_an_interrupt_leaves_a_slot_to_the_next_invocation(messages: KeptMessages) -> None:
    at, is_open = 0, True
    while is_open:
        at += 1
        library = Library()
        first, second = two(messages)
        library.lend(1, first)
        is_open = is_interrupted(at, lambda: library.lend(2, second))  # noqa: B023 - called at once
        assert library.slots[SLOT].version % 2 == 0
        assert library.send(1) + library.send(2) <= 1
        library.lend(2, second)
        assert library.send(2)
        is_open |= is_interrupted(at, messages.discard)
        messages.discard()
        assert not library.send(1)
        assert not library.send(2)
    assert at > 10


def test_a_signal_handler_invokes_in_the_middle(messages: KeptMessages) -> None:
    class Slots(dict[Borrower, int]):
        def __setitem__(self, borrower: Borrower, number: int) -> None:
            library.lend(2, second)  # as a handler would that runs here
            super().__setitem__(borrower, number)

    library = Library()
    first, second = two(messages)
    first.slots = Slots()
    library.lend(1, first)
    assert [library.send(one) for one in (1, 2)] == [True, False]
    library.lend(2, second)
    assert [library.send(one) for one in (1, 2)] == [False, True]


def test_a_forks_child_does_not_wait_for_the_lock(messages: KeptMessages) -> None:
    library = Library()
    kept, _ = two(messages)
    with library.lent._lock:
        pid = os.fork()
        if not pid:
            lending = threading.Thread(target=library.lend, args=(1, kept), daemon=True)
            lending.start()
            lending.join(PATIENCE_S)
            os._exit(0 if library.send(1) else 1)
    assert os.waitpid(pid, 0)[1] == 0
