"""Requests that one thread (the carrier) sends and answers for all others, and that are undone when nobody takes them.

An interrupt (Ctrl-C, a signal's handler that raises) may end a request at the entry of any function and after any call
of one in C, but in the main thread alone. So the carrier does all that must not be torn apart, and what was granted to
an asker that was interrupted is given back. A handler may itself ask in the middle of a request: it holds no lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hbrt.attach.question import Question


class Questions:
    """The questions that have no answer yet, or whose answer nobody has taken yet."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, Question] = {}

    def ask(self, question: Question, put: Callable[[int], float], refuse: Callable[[], None]) -> Any:
        """Ask and wait; returns the answer.

        Args:
            question: What is asked.
            put: Hands it to the carrier under a number, and sets ``sent``; returns how long to wait, in seconds.
            refuse: Raises what there is to say when no answer came.
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
        # Nothing is called from here on: no interrupt comes between the answer and who asked.
        del self._open[number]
        return question.answer

    def leave(self, question: Question, put: Callable[[int], float]) -> None:
        """Ask, and wait for no answer."""
        question.is_left = True
        put(self._add(question))

    def answer(self, number: int, answer: Any) -> None:
        """By the carrier: an answer has come."""
        question = self._open.get(number)
        if question is not None:
            question.answer = answer if question.on_answer is None else question.on_answer(answer)
            if question.is_left:
                self._undo_left(number, question)
            question.end()

    def end(self) -> None:
        """End every wait: no answer comes anymore."""
        for question in list(self._open.values()):
            question.end()

    def _add(self, question: Question) -> int:
        number = next(self._numbers)
        self._open[number] = question
        return number

    def _undo_left(self, number: int, question: Question) -> None:
        """Undo an answer that nobody takes, once: by its asker or by the carrier, the later of the two."""
        if question.answer is None or self._open.pop(number, None) is None:
            return
        if question.undo is not None:
            question.undo(question.answer)
