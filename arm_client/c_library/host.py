"""libhbrt.so's Python side: creates a C function for each C name on a program's first call.

The other side is native/arm/host.c, which has started Python, or runs inside a Python process. No exception leaves a
function: it becomes a message on standard error and a status.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import arm_client
import hbrt.dnn_types
import hbrt.types
from arm_client.c_library import call_sites
from arm_client.c_library.prototypes import Prototype, by_numbers, prototype, without_body
from arm_client.cabi import arguments, call_site
from arm_client.cabi.last_error import last_error, note
from arm_client.session.process import process
from hbrt.borders import guests
from hbrt.borders.printable import LINES, printable
from hbrt.ddr.faults import instruction
from hbrt.status import Status, name_of
from hbrt.types import hbDSPRpcCtrlParam, hbDSPTask_t, hbSysMem

VERSION = 9
_TYPES = {**vars(hbrt.types), **vars(hbrt.dnn_types)}
_EXPECTED = frozenset({0, *map(int, (Status.HB_DSP_TIMEOUT, Status.HB_DNN_TIMEOUT, Status.HB_SYS_NOT_SUPPORTED))})


class _Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("signature", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
    )


class _Shown(ctypes.Structure):
    _fields_ = (("task", ctypes.c_uint64), ("self", ctypes.c_uint64), ("thread", ctypes.c_int32))


class _Host(ctypes.Structure):
    """``host`` of native/arm/host.c, field by field."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("site", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_uint64)),
        ("is_embedded", ctypes.c_int32),
        ("is_over", ctypes.c_int32),
        ("forking", ctypes.c_uint64),
        ("is_interrupted", ctypes.c_int32),
        ("find", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Entry))),
        ("end", ctypes.CFUNCTYPE(None)),
        ("lent", ctypes.POINTER(ctypes.c_void_p)),
        ("watch_releases", ctypes.CFUNCTYPE(None)),
        ("wait_at", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(_Shown))),
        ("place_in_program", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("left", ctypes.CFUNCTYPE(ctypes.c_int32)),
        ("answer", ctypes.PYFUNCTYPE(None, ctypes.c_int64)),
    )


_GUESTS = {
    "fastrpc": ("remote_", "rpcmem_", "fastrpc_", "dspqueue_", "hbrt_fastrpc_"),
    "rknn": ("rknn_", "hbrt_rga_"),
    "rdk": ("sp_",),
}
"""Entry point in ``hbrt.c_names`` and its extra -> prefixes of its C names."""


class Guest(Protocol):
    """The C names of a guest."""

    TYPES: Mapping[str, Any]
    """The declarations of its C names."""

    def function(self, name: str, given: Prototype, host: Any) -> Callable[..., Any]:
        """Return the function for a C name, which takes addresses as numbers; ``host`` is a ``_Host``."""

    def refusal(self, name: str, status: int) -> tuple[str, str] | None:
        """Return the C name as programs write it, and the name of its status; None if there is nothing to print."""


_kept: list[Any] = []  # objects whose addresses C holds
_texts: dict[str, ctypes.c_char_p] = {}
_last = threading.local()
_told: set[tuple[str, int, str]] = set()
_ending: list[bool] = []
_pointers: dict[type, Any] = {
    ctypes.POINTER(kind): kind for kind in (hbSysMem, hbDSPTask_t, hbDSPRpcCtrlParam)
}  # structures themselves make calls fastest


def connect(address: int) -> None:
    """Let libhbrt.so, and the libraries linked to it, find their functions.

    Args:
        address: Address of its ``host``.

    Raises:
        ValueError: the library belongs to a different version of hbrt.
    """
    host = _Host.from_address(address)
    if host.version != VERSION:
        raise ValueError(
            f"this libhbrt.so belongs to a different version of hbrt (layout {host.version}, not "
            f"{VERSION}): rebuild the program with 'hbrt cc' (in a clone: make native before)."
        )
    functions = _Host.find.offset, _Host.end.offset
    find = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Entry))(lambda entry: _find(host, entry.contents))
    made = find, ctypes.CFUNCTYPE(None)(_end)
    _kept.extend(made)
    for offset, function in zip(functions, made, strict=True):
        ctypes.c_void_p.from_address(address + offset).value = ctypes.cast(function, ctypes.c_void_p).value
    call_sites.install(lambda: host.site(instruction()), lambda: _waits(host), host.place_in_program)
    if host.is_embedded:
        arguments.NULL = "NULL"
        os.environ.pop("PYTHONHOME", None)  # set for another Python: this one ignored it, and its children must, too
        _take_arguments()
        os.register_at_fork(
            before=lambda: setattr(host, "forking", threading.get_ident()),
            after_in_parent=lambda: setattr(host, "forking", 0),
            after_in_child=lambda: setattr(host, "forking", 0),
        )
    else:
        atexit.register(setattr, host, "is_over", 1)  # the objects whose addresses C holds end with the interpreter


def _waits(host: _Host) -> Iterator[call_sites.WaitInC]:
    """Each thread waiting for the board in C."""
    wait, at = _Shown(), 0
    while (place := host.wait_at(at, ctypes.byref(wait))) is not None:
        if place:
            yield call_sites.WaitInC(wait.task, place, wait.thread, wait.self)
        at += 1


def _take_arguments() -> None:
    """Set ``sys.argv`` to the program's arguments: a board shows its name."""
    try:
        parts = Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return
    sys.argv = [os.fsdecode(part) for part in parts]


def _end() -> None:
    """Exit like Python, but keep the interpreter: threads of the program may continue."""
    _ending.append(True)
    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - sessions close in these
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BaseException:  # noqa: BLE001 - nothing is left that could report it
        traceback.print_exc()


def _find(host: _Host, entry: _Entry) -> None:
    """Set an entry's function; one that cannot be loaded is skipped with a message."""
    name = entry.name.decode()
    try:
        guest = guest_of(name)
        given = prototype(entry.signature.decode(), guest.TYPES if guest else _TYPES)
        call = guest.function(name, given, host) if guest else _function(name)
        result, kinds = by_numbers(given) if guest else given
        if name in {"hbDSPRpc", "hbDSPSetTaskDoneCb", "remote_handle64_invoke", "remote_handle_invoke"}:
            call = _lending(host, call)
        if name == "hbDSPWaitTaskDone":
            call = _going_on(host, call)
        is_text = result is ctypes.c_char_p  # which a callback passes as an address
        serve = _text_function(host, name, call) if is_text else _status_function(host, name, call, kinds)
        made = ctypes.CFUNCTYPE(ctypes.c_void_p if is_text else result, *kinds)(serve)
        _kept.append(made)
        entry.function = ctypes.cast(made, ctypes.c_void_p).value
    except guests.MissingGuestError as error:
        _say(str(error))
    except BaseException as error:  # noqa: BLE001 - ctypes would lose it
        _say(f"Cannot use {name}: {type(error).__name__}: {error}")


def _lending(host: _Host, call: Callable[..., int]) -> Callable[..., int]:
    """Wrap ``call`` so that the library then makes the most frequent calls itself, unless a check needs their steps."""

    def made(*given: Any) -> int:
        status = call(*given)
        tasks = process.default.tasks if process.default is not None else None
        if process.default is not None and process.default.notifier.watched:
            host.watch_releases()
        address = tasks.lend() if tasks is not None else 0
        if address != (host.lent[0] or 0):
            _kept.append(tasks)  # a thread may still be in a call that uses it
            host.lent[0] = address
        return status

    return made


def _function(name: str) -> Callable[..., Any]:
    """Return the Python function for a C name that is not a guest's: the client's, or one of the emulator's own."""
    if name == "hbrt_last_error":
        return last_error
    if name == "hbrt_register_layer":
        from arm_client.c_library.layers import register

        return register
    return cast("Callable[..., Any]", getattr(arm_client, name, None) or without_body(name, _unsupported))


def _unsupported(sentence: str) -> int:
    _say(sentence)
    return note(Status.HB_SYS_NOT_SUPPORTED, sentence)


@cache
def guest_of(name: str) -> Guest | None:
    """Return the guest that provides a C name; None for one of the client's.

    Raises:
        MissingGuestError: it is not installed.
    """
    extra = next((extra for extra, begins in _GUESTS.items() if name.startswith(begins)), None)
    return None if extra is None else cast("Guest", guests.load("hbrt.c_names", extra, f"A program's {name}()", extra))


def _going_on(host: _Host, call: Callable[..., int]) -> Callable[..., int]:
    """Adapt ``call`` to a wait that began in C: it waits for the remaining time, and its message has the full time."""

    def made(task: Any, timeout: int) -> int:
        left_ms = host.left()
        status = call(task, left_ms)
        if status == Status.HB_DSP_TIMEOUT and left_ms != timeout and process.default is not None:
            tasks = process.default.tasks
            status = note(tasks.refusals.not_ended(timeout), tasks.why())
        return status

    return made


def _status_function(host: _Host, name: str, call: Callable[..., int], kinds: tuple[Any, ...]) -> Callable[..., int]:
    """Wrap a Python call for C: pointers become its arguments, NULL becomes None, and nothing is raised.

    It returns the status through ``answer``, since ctypes returns garbage if a signal handler raises at its start.
    """
    converts = [_conversion(kind) for kind in kinds]
    answer = host.answer

    def serve(*given: Any) -> int:
        try:
            status = int(call(*[convert(one) for convert, one in zip(converts, given, strict=True)]))
        except KeyboardInterrupt:  # in a Python program that loaded this library, the program gets it when C returns
            host.is_interrupted = 1
            status = int(Status.HB_SYS_NOT_RUNNING)
        except BaseException:  # noqa: BLE001 - ctypes would lose it
            _say(f"{name} failed; this is a bug in hbrt:\n{traceback.format_exc()}")
            status = int(Status.HB_SYS_NOT_RUNNING)
        else:
            if status not in _EXPECTED:
                _report(name, status)
        answer(status)
        return status

    return serve


def _conversion(kind: Any) -> Callable[[Any], Any]:
    if kind in _pointers:
        return lambda given: given.contents if given else None
    if issubclass(kind, (ctypes._Pointer, ctypes._CFuncPtr)):  # type: ignore[attr-defined]  # noqa: SLF001
        return lambda given: given or None
    return lambda given: given


def _text_function(host: _Host, name: str, call: Callable[..., str]) -> Callable[..., int | None]:
    """Wrap a C name that returns text: a constant, or the latest text of its thread."""
    answer = host.answer

    def serve(*given: Any) -> int | None:
        try:
            text = call(*given)
            if name == "hbrt_last_error":
                _last.text = kept = ctypes.c_char_p(text.encode("utf-8", "replace"))
            else:
                kept = _texts.setdefault(text, ctypes.c_char_p(text.encode("utf-8", "replace")))
            address = ctypes.cast(kept, ctypes.c_void_p).value or 0
            answer(address)
        except BaseException:  # noqa: BLE001 - as above
            _say(f"{name} failed; this is a bug in hbrt:\n{traceback.format_exc()}")
            return None
        return address

    return serve


def _report(name: str, status: int) -> None:
    """Print the reason for a refusal, once per line of the program: C only gets a number.

    An op's return value needs no reason.
    """
    guest = guest_of(name)
    refusal = guest.refusal(name, status) if guest else (name, name_of(status))
    if refusal is None:
        return
    name, status_name = refusal
    # The models' log has its own messages, and threads that still call at process exit need none.
    if name.startswith(("hbDNN", "hbrt_register_layer")) or status_name == str(status) or _ending:
        return
    site = call_site.call_site()
    if (site, status, name) in _told:
        return
    _told.add((site, status, name))
    _say(f"{site}: {name}: {last_error()} [{status_name}]")


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed or None
        sys.stderr.write(f"hbrt: {printable(text, LINES)}\n")
