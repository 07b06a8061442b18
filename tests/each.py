"""Many quick cases in one test: pytest's own parametrize takes longer for a case than many of them do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test to run once for each value, as ``pytest.mark.parametrize``; all runs share its fixtures.

    Args:
        names: The names of its arguments, with commas between.
        values: The value of the one argument, or a sequence with one for each. A failure names those that it is of.
    """
    arguments = [name.strip() for name in names.split(",")]
    given = [dict(zip(arguments, value if len(arguments) > 1 else (value,), strict=True)) for value in values]
    assert given, names

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            for one in given:
                try:
                    test(*args, **fixtures, **one)
                except BaseException as error:
                    error.add_note(f"with {', '.join(f'{name}={value!r}' for name, value in one.items())}")
                    raise

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        vars(run)["__signature__"] = signature.replace(parameters=kept)
        return run

    return decorate
