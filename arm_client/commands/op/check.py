"""``hbrt op check``: run an op and a reference on the same inputs, on a board, and report where they differ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.commands.op.cases import Case, Difference, Shape, cases, first_difference, written_type
from arm_client.commands.op.loading import BadNameError, load_named, trace_of
from arm_client.errors import HbrtError
from hbrt.nn_types import hbDSPSoftmaxParam

if TYPE_CHECKING:
    from arm_client.arrays import BoardArray
    from arm_client.client import Board

Reference = Callable[[Any], Any]
Params = Callable[[Any, Any], Any]


class CheckFailedError(Exception):
    """The caller's own function failed, or returned a value that cannot be compared; the message has its traceback."""


class Checked(NamedTuple):
    """What a check found."""

    cases: int
    largest_ulp: int
    case: Case | None = None  # the first that differs
    difference: Difference | None = None


def load_function(what: str) -> Callable[..., Any]:
    """Function named as ``module:function`` or ``file.py:function``.

    Raises:
        BadNameError: no such module, file or function, or an import failed, with its error.
    """
    function: Callable[..., Any] = load_named(what, "function")
    if not callable(function):
        raise BadNameError(f"{what} is not a function.")
    return function


def to_dtype(name: str) -> np.dtype[Any]:
    """Element type by numpy's name.

    Raises:
        BadNameError: no floating-point or integer type.
    """
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # numpy reads some texts as lists of fields
        dtype = np.dtype(object)
    if not _is_comparable(dtype):
        raise BadNameError(f"Unknown type {name!r}: expected float32, int8, uint8, int16 or the like.")
    return dtype.newbyteorder("=")


def _is_comparable(dtype: np.dtype[Any]) -> bool:
    """Whether it is a numeric type of a DSP whose differences are counted in ulp."""
    return dtype.kind in "fiu" and dtype.itemsize <= 8


def load_params(what: str) -> Params:
    """Function that makes the input block: from the input array or, if it takes two arguments, also from the output.

    Raises:
        BadNameError: as `load_function`, or it can be called with neither one array nor two.
    """
    function = load_function(what)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return lambda data, _output: function(data)
    if _takes(signature, 1):
        return lambda data, _output: function(data)
    if _takes(signature, 2):
        return function
    raise BadNameError(
        f"{what} is {what.rpartition(':')[2]}{signature}, which takes neither one nor two arrays: it "
        f"must take the input, or the input and the output."
    )


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with this many arguments."""
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def default_params(data: BoardArray, _output: BoardArray) -> hbDSPSoftmaxParam:
    """The parameter structure that softmax and many others take: {int32 data_size; uint64 input}, 16 bytes."""
    return hbDSPSoftmaxParam(data_size=data.nbytes, input=data.phy_addr)


def check(
    board: Board,
    cmd: int,
    reference: Reference,
    params: Params,
    *,
    count: int,
    dtype: np.dtype[Any],
    seed: int,
    ulp: int,
    atol: float,
    special: bool,
    shapes: Sequence[Shape] = (),
    timeout_s: float,
) -> Checked:
    """Compare case by case; stops at the first difference.

    Raises:
        HbrtError: the op failed; a note names the case.
        CheckFailedError: the reference or the parameter function failed, or the reference returned a different type
            than the op writes.
    """
    largest = 0
    for case in cases(count, dtype, seed, special=special, shapes=shapes):
        returned = _result_of("The reference", case, reference, case.data.copy())
        try:
            expected = np.asarray(returned)
        except Exception as error:  # noqa: BLE001 - numpy's reasons, or those of the caller's object
            raise CheckFailedError(f"The reference returned no array for {case}: {error}") from None
        if not _is_comparable(expected.dtype):
            raise CheckFailedError(
                f"The reference returned an array of type {expected.dtype} for {case}: return the "
                f"expected contents of the output block, as numbers of at most 8 bytes."
            )
        expected = expected.astype(expected.dtype.newbyteorder("="), copy=False)
        data, output = board.from_array(case.data), board.empty(expected.shape, expected.dtype)
        block = _result_of("The function for the parameters", case, params, data, output)
        try:
            board.call(cmd, block, output, timeout=timeout_s)
        except HbrtError as error:
            error.add_note(f"The call that failed was {case}.")
            raise
        got = np.asarray(output)
        difference, apart = first_difference(got, expected, ulp, atol)
        largest = max(largest, apart)
        if difference is not None:
            if (written := written_type(got, expected, dtype)) is not None:
                raise CheckFailedError(
                    f"The reference returned {expected.dtype} for {case}, but the op writes {written}: "
                    f"read as that, its output matches the reference's numbers; read as "
                    f"{expected.dtype}, it does not. Return the expected contents of the output block, "
                    f"as with .astype(np.{written})."
                )
            return Checked(case.number + 1, largest, case, difference)
    return Checked(count, largest)


def _result_of(what: str, case: Case, function: Callable[..., Any], *arguments: object) -> Any:
    """The result of the caller's function."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the caller's function may raise anything
        raise CheckFailedError(f"{what} failed on {case}:\n{trace_of(error)}") from None
