"""Loops over arrays that numba, if installed, compiles and caches on disk for later starts.

A kernel is an ordinary function in a subset of Python; it may call other kernels of its own file (numba recompiles a
caller only if the caller's file has changed). Each user has a fallback: `compiled()` is None when numba is missing
(the extra `pointcloud`) or turned off by its own setting NUMBA_DISABLE_JIT=1. Nothing is imported or compiled
before the first call of `compiled()`. Kernels keep IEEE arithmetic: no fast math, no threads.

Machine code is stored in the first available of these directories: NUMBA_CACHE_DIR, `$XDG_CACHE_HOME/hbrt/kernels`
(`~/.cache/hbrt/kernels`), `hbrt-<uid>-kernels` in the temporary directory. It is not stored next to the source, which
may be read-only. If none is available, each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache, update_wrapper
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from hbrt.board import private_files

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_lock = threading.RLock()


class Kernel(Generic[Arguments, Result]):
    """A loop, and its compiled form once requested. Use it as a decorator.

    Attributes:
        loop: The function itself: the same computation in Python, hundreds of times slower.
    """

    def __init__(self, loop: Callable[Arguments, Result]) -> None:
        self.loop = loop
        self._is_known = False
        self._compiled: Callable[Arguments, Result] | None = None

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run the loop in Python, as when called from a kernel that itself runs in Python."""
        return self.loop(*args, **kwargs)

    def compiled(self) -> Callable[Arguments, Result] | None:
        """Return the compiled loop, or None without numba. It is compiled, or loaded from disk, on first call."""
        if not self._is_known:
            # A signal may run an urgent op in the middle of this, which must not see a half-loaded module.
            with _lock, _no_signals():
                if not self._is_known:
                    self._compiled = _compile(self.loop)
                    self._is_known = True
        return self._compiled


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def numba_module() -> Any:
    """Return numba, or None if it is not installed, does not match this numpy, or is turned off."""
    try:
        numba = import_module("numba")
    except ImportError:
        return None
    return None if numba.config.DISABLE_JIT else numba


def _compile(loop: Callable[Arguments, Result]) -> Callable[Arguments, Result] | None:
    numba = numba_module()
    if numba is None:
        return None
    directory = cache_directory()
    with _numba_cache(numba.config, directory):
        compiled: Callable[Arguments, Result] = numba.njit(
            nogil=True, error_model="numpy", cache=directory is not None
        )(_linked(loop))
    return compiled


def _linked(loop: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the loop with the kernels that it calls by name compiled; the loop itself if it calls none."""
    function = cast("FunctionType", loop)
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    kernels = {name: kernel.compiled() for name, kernel in called.items() if isinstance(kernel, Kernel)}
    if not kernels:
        return loop
    linked = FunctionType(function.__code__, {**function.__globals__, **kernels}, function.__name__)
    return cast("Callable[Arguments, Result]", update_wrapper(linked, function))


@contextlib.contextmanager
def _numba_cache(config: Any, directory: Path | None) -> Iterator[None]:
    """Let numba cache functions decorated in the block in a directory; the program's own functions are not affected."""
    before = config.CACHE_DIR
    if directory is not None:
        config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def cache_directory() -> Path | None:
    """Return the cache directory for machine code; None if none is available."""
    configured = os.environ.get("NUMBA_CACHE_DIR")
    if configured:
        return Path(configured)
    candidates = [Path(tempfile.gettempdir()) / f"hbrt-{os.getuid()}-kernels"]
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # no HOME, and no such user
        candidates.insert(0, (Path(base) if base else Path.home() / ".cache") / "hbrt" / "kernels")
    return next((path for path in candidates if _is_ours(path)), None)


def _is_ours(path: Path) -> bool:
    """Whether a directory that only this user can write exists or can be created: its contents are executed."""
    try:
        private_files.make_directory(path)
        info = path.lstat()
    except OSError:
        return False
    is_private = stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o022
    return is_private and os.access(path, os.W_OK | os.X_OK)
