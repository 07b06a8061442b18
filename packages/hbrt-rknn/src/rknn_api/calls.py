"""Shared by the toolkit's and the runtime's objects: return codes with messages, and the names of the cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import GraphError
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.log import Log
from rknn_api.platforms import CoreMask
from rknn_api.run.runner import refused


class Calls:
    """An object whose calls return 0, or -1 with a message on standard error.

    Attributes:
        last_error: The message of the last call that failed.
    """

    NPU_CORE_AUTO = CoreMask.NPU_CORE_AUTO
    NPU_CORE_0 = CoreMask.NPU_CORE_0
    NPU_CORE_1 = CoreMask.NPU_CORE_1
    NPU_CORE_2 = CoreMask.NPU_CORE_2
    NPU_CORE_0_1 = CoreMask.NPU_CORE_0_1
    NPU_CORE_0_1_2 = CoreMask.NPU_CORE_0_1_2
    NPU_CORE_ALL = CoreMask.NPU_CORE_ALL

    def __init_subclass__(cls) -> None:
        """Make a call treat an unknown argument like an invalid one."""
        for name, call in list(vars(cls).items()):
            if callable(call) and not name.startswith("_"):
                setattr(cls, name, _answering(call))

    def __init__(self, verbose: bool = False, verbose_file: str | Path | None = None) -> None:  # noqa: FBT001, FBT002 - theirs
        """Begin.

        Args:
            verbose: Log each step.
            verbose_file: A file that also receives the log.

        Raises:
            OSError: the file cannot be written.
        """
        self.last_error = ""
        self._before: list[Any] | None = None  # with async_mode, the outputs of the last frame
        self._log = Log(verbose=verbose, file=verbose_file)

    def list_devices(self) -> tuple[list[str], list[str]]:
        """Devices that a program can run on: none over adb, and the emulated board."""
        return [], ["emulator"]

    def _in_turn(self, outputs: list[Any]) -> list[Any]:
        """The result of inference: with async_mode, the outputs of the previous frame, except for the first frame."""
        if self._before is None:
            return outputs
        before, self._before = self._before, outputs
        return before or [one.copy() for one in outputs]

    def call(self, where: str, call: Callable[[], object]) -> int:
        """Run a call: 0, or -1 with its message."""
        try:
            call()
        except (RknnError, GraphError, OSError) as error:
            let_out(error)
            if isinstance(error, RknnError):
                return self._fail(where, error)
            if isinstance(error, GraphError):
                return self._fail(where, refused(error))
            return self._fail(where, RknnError(RknnStatus.RKNN_ERR_FAIL, f"{error.filename}: {error.strerror}."))
        return 0

    def _fail(self, where: str, error: RknnError) -> int:
        self.last_error = error.text
        self._log.error(where, error.text)
        return -1


def _answering(call: Callable[..., Any]) -> Callable[..., Any]:
    taken = signature(call)

    @wraps(call)
    def answered(self: Calls, *given: Any, **named: Any) -> Any:
        try:
            taken.bind(self, *given, **named)
        except TypeError as error:
            names = ", ".join(list(taken.parameters)[1:])
            code = self._fail(call.__name__, invalid_parameter(f"{error}: its arguments are {names or 'none'}."))
            return code if taken.return_annotation == "int" else None
        return call(self, *given, **named)

    return answered


def path_of(given: object, what: str) -> Path:
    """A path given by a program.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: it is invalid.
    """
    if not isinstance(given, (str, Path)) or not str(given):
        said = repr(given) if isinstance(given, str) else type(given).__name__
        raise invalid_parameter(f"{what} is {said}; give the path of a file.")
    if "\0" in str(given):
        raise invalid_parameter(f"{what} is {str(given)!r}; a path has no NUL.")
    return Path(given)
