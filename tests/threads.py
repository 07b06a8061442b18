"""Work in many threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from tests.limits import PATIENCE_S


def in_threads(work: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
    """Results of ``work(one)`` for each one given, in threads that begin together; an error of one is raised."""
    values = list(given)
    results: dict[int, Any] = {}
    errors: list[BaseException] = []
    together = threading.Barrier(len(values))

    def run(number: int) -> None:
        try:
            together.wait(PATIENCE_S)
            results[number] = work(values[number])
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(values))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(values))]
