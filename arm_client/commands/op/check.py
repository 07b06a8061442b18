"""``hbrt op check``: run a registered op and a reference on the same inputs, on a board, and say where they differ."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arm_client.commands.op.cases import Case, Difference, Shape, cases, first_difference, written_type
from arm_client.errors import HbrtError
from hbrt.nn_types import hbDSPSoftmaxParam

if TYPE_CHECKING:
    from arm_client.arrays import BoardArray
    from arm_client.client import Board

Reference = Callable[[Any], Any]
Params = Callable[[Any, Any], Any]


class BadReferenceError(ValueError):
    """What was given as MODULE:FUNCTION is not a function that will do; the message says what is wrong."""


class CheckFailedError(Exception):
    """The caller's own function failed, or returned what cannot be compared; the message has its traceback."""


class Checked(NamedTuple):
    """What a check found."""

    cases: int
    largest_ulp: int
    case: Case | None = None  # the first that differs
    difference: Difference | None = None


def load_function(what: str) -> Callable[..., Any]:
    """Function named as ``module:function`` or ``file.py:function``; modules are looked for here first.

    Raises:
        BadReferenceError: no such module, file or function; an import that fails says how.
    """
    where, _, name = what.rpartition(":")
    if not where or not name:
        raise BadReferenceError(f"{what!r} names no function; write MODULE:FUNCTION or FILE.py:FUNCTION.")
    try:
        if where.endswith(".py"):
            sys.path.insert(0, str(Path(where).resolve().parent))
            module = _module_in(where)
        else:
            sys.path.insert(0, str(Path.cwd()))
            module = importlib.import_module(where)
    except (ImportError, OSError, SyntaxError) as error:
        raise BadReferenceError(f"{where} cannot be imported: {error}.") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything when it is imported
        raise BadReferenceError(f"{where} cannot be imported:\n{_trace_of(error)}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise BadReferenceError(f"{where} has no function {name}.")
    function: Callable[..., Any] = found
    return function


def _module_in(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def to_dtype(name: str) -> np.dtype[Any]:
    """Element type by numpy's name.

    Raises:
        BadReferenceError: no floating-point or integer type.
    """
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # numpy reads some texts as lists of fields
        dtype = np.dtype(object)
    if not _is_comparable(dtype):
        raise BadReferenceError(f"{name!r} is no type to generate; write float32, int8, uint8, int16 or the like.")
    return dtype.newbyteorder("=")


def _is_comparable(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of numbers that a DSP may have, and that can be told apart in ulp."""
    return dtype.kind in "fiu" and dtype.itemsize <= 8


def load_params(what: str) -> Params:
    """Function that makes the input block: of the input array alone, or, when it asks for it, of the output, too.

    Raises:
        BadReferenceError: as `load_function`, or it can be called with neither one array nor two.
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
    raise BadReferenceError(
        f"{what} is {what.rpartition(':')[2]}{signature}, which can be called with neither one nor two arrays: let it "
        "take the input, or the input and the output."
    )


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
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
    on_case: Callable[[], None] = lambda: None,
) -> Checked:
    """Compare case by case; stops at the first difference.

    Raises:
        HbrtError: the op failed; a note says in which case.
        CheckFailedError: the reference, or what makes the parameters, failed; or the reference returned another type
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
                f"The reference returned an array of type {expected.dtype} for {case}: return the numbers that the "
                "output block must hold, of 8 bytes each at the most."
            )
        expected = expected.astype(expected.dtype.newbyteorder("="), copy=False)
        data, output = board.from_array(case.data), board.empty(expected.shape, expected.dtype)
        block = _result_of("What makes the parameters", case, params, data, output)
        try:
            board.call(cmd, block, output, timeout=timeout_s)
        except HbrtError as error:
            error.add_note(f"The call that failed was {case}.")
            raise
        got = np.asarray(output)
        difference, apart = first_difference(got, expected, ulp, atol)
        largest = max(largest, apart)
        on_case()
        if difference is not None:
            if (written := written_type(got, expected, dtype)) is not None:
                raise CheckFailedError(
                    f"The reference returned {expected.dtype} for {case}, but the op writes {written}: read as that, "
                    f"the bytes of its output are near the reference's numbers, and read as {expected.dtype} they are "
                    f"not. Return what the output block must hold, as with .astype(np.{written})."
                )
            return Checked(case.number + 1, largest, case, difference)
    return Checked(count, largest)


def _result_of(what: str, case: Case, function: Callable[..., Any], *arguments: object) -> Any:
    """What the caller's function returns."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the caller's function may raise anything
        raise CheckFailedError(f"{what} failed on {case}:\n{_trace_of(error)}") from None


def _trace_of(error: BaseException) -> str:
    """The traceback of an error, from the caller's own code on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in _NOT_THE_CALLERS:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


_NOT_THE_CALLERS = {
    __file__,
    importlib.__file__,
    "<frozen importlib._bootstrap>",
    "<frozen importlib._bootstrap_external>",
}
