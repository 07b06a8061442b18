"""Arguments of the vendor's calls, read as in C, and what a call returns when one is rejected."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any, Final, ParamSpec, TypeVar

from arm_client.cabi.arguments import integer, referent, short_repr
from arm_client.cabi.last_error import note, returning_status
from fastrpc.wire.aee import Aee, AeeError
from hbrt.borders.interrupts import let_out

P = ParamSpec("P")
R = TypeVar("R")

_LEAST, _END = -(1 << 63), 1 << 64

note_code: Final = partial(returning_status, AeeError, lambda error, _: (error.code, error.sentence))()
"""A decorator: the function returns 0, or the code of its AeeError."""


def returns_code(call: Callable[P, None]) -> Callable[P, int]:
    """``note_code``, for a function whose parameters of type ``int`` accept what C converts: see ``number``."""
    return note_code(_by_numbers(call))


def returns_value(failed: R) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like ``returns_code``, for a function with a result, which is ``failed`` after an AeeError."""

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        numbered = _by_numbers(call)

        @wraps(call)
        def wrapped(*given: P.args, **named: P.kwargs) -> R:
            try:
                return numbered(*given, **named)
            except AeeError as error:
                let_out(error)
                note(error.code, error.sentence)
                return failed

        return wrapped

    return decorate


def number(name: str, given: Any) -> int:
    """The number passed for a parameter: an integer, 0 for None, or the address of an array.

    Raises:
        AeeError: AEE_EBADPARM: it is not one of these, or has more than 64 bits.
    """
    found = 0 if given is None else integer(given)
    if found is None:
        try:
            found = (
                ctypes.addressof(given)
                if isinstance(given, ctypes.Array)
                else int(given.__array_interface__["data"][0])
            )
        except Exception as error:  # noqa: BLE001 - whatever an object's own code raises
            let_out(error)
            raise AeeError(Aee.AEE_EBADPARM, f"{name} is {short_repr(given)}; pass a number.") from None
    if not _LEAST <= found < _END:
        raise AeeError(Aee.AEE_EBADPARM, f"{name} is {found}, which has more than 64 bits.")
    return found


def place(name: str, given: Any) -> Any:
    """The ctypes integer for a result, passed itself or by ``byref()``.

    Raises:
        AeeError: AEE_EBADPARM: it is something else.
    """
    try:
        found = referent(given)
        if isinstance(found, ctypes._SimpleCData) and type(found.value) is int:  # noqa: SLF001 - their base class
            return found
    except Exception as error:  # noqa: BLE001 - as above
        let_out(error)
    raise AeeError(Aee.AEE_EBADPARM, f"{name} is {short_repr(given)}; pass a ctypes integer for the result.")


def _by_numbers(call: Callable[P, R]) -> Callable[P, R]:
    """Convert the arguments of parameters whose type is ``int``."""
    names = [one.name if one.annotation == "int" else "" for one in signature(call).parameters.values()]

    @wraps(call)
    def wrapped(*given: P.args, **named: P.kwargs) -> R:
        made: Any = [
            number(name, one) if name and type(one) is not int else one for name, one in zip(names, given, strict=False)
        ]
        more: Any = {name: number(name, one) if name in names else one for name, one in named.items()}
        return call(*made, *given[len(made) :], **more)  # type: ignore[arg-type] # converted in place

    return wrapped
