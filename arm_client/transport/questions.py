"""Requests that one thread (the carrier) sends and answers for all others, undone if nobody takes the answer.

An interrupt (Ctrl-C, or a signal handler that raises) may end a request at the entry of any function and after any C
call, but only in the main thread. So the carrier does everything that must be atomic, and whatever was granted to an
interrupted caller is undone. A handler may itself send a request in the middle of one, which holds no lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hbrt.attach.question import Question


class Questions:
    """Questions that have no answer yet, or whose answer has not been taken."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, Question] = {}

    def ask(self, question: Question, put: Callable[[int], float], refuse: Callable[[], None]) -> Any:
        """Send a question and wait; returns the answer.

        Args:
            question: The question.
            put: Passes it to the carrier under a number, and sets ``sent``; returns how long to wait, in seconds.
            refuse: Raises the error for a missing answer.
        """
        number = 0
        try:
            number = self._add(question)
            question.wait(put(number))
            if question.answer is None:
                refuse()
        except BaseException:
            question.is_left = True
            if not question.sent[0]:
                self._open.pop(number, None)
            self._undo_left(number, question)
            raise
        # Call nothing from here on, so that no interrupt comes between the answer and the caller.
        del self._open[number]
        return question.answer

    def discard(self, question: Question, put: Callable[[int], float]) -> None:
        """Send a question without waiting for the answer."""
        question.is_left = True
        put(self._add(question))

    def answer(self, number: int, answer: Any) -> None:
        """Called by the carrier: deliver an answer."""
        question = self._open.get(number)
        if question is not None:
            question.answer = answer if question.on_answer is None else question.on_answer(answer)
            if question.is_left:
                self._undo_left(number, question)
            question.end()

    def end(self) -> None:
        """End every wait, because no more answers will come."""
        for question in list(self._open.values()):
            question.end()

    def _add(self, question: Question) -> int:
        number = next(self._numbers)
        self._open[number] = question
        return number

    def _undo_left(self, number: int, question: Question) -> None:
        """Undo an answer that nobody takes, once: by its caller or by the carrier, whichever comes later."""
        if question.answer is None or self._open.pop(number, None) is None:
            return
        if question.undo is not None:
            question.undo(question.answer)
