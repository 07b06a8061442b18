"""A model file in a board's directory, stored once for all programs; each locks it while in use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

from onnx import ModelProto

from hbrt.models.run.accelerator import file_of
from hbrt.models.run.shared_session import made_of


class ModelFile:
    """A model file in a board's directory, used by this process until ``close``."""

    def __init__(self, board: Path, data: bytes) -> None:
        """Write it, unless another program has.

        Raises:
            OSError: no room, or no permission.
        """
        import hashlib  # it loads a crypto library

        self.key = hashlib.blake2b(data, digest_size=20).hexdigest()
        self.path = file_of(board, self.key)
        self._fd = -1
        for left in board.glob("model-*"):  # left by killed programs
            with contextlib.suppress(FileNotFoundError), left.open("rb") as file:
                _remove_unused(left, file.fileno())
        while self._fd < 0:
            self._fd = self._opened() if self.path.exists() else self._written(data)

    def reader(self) -> Callable[[], ModelProto]:
        """Read the model, even after ``close`` or when the board is gone."""
        file = os.fdopen(os.dup(self._fd), "rb")

        def read() -> ModelProto:
            proto = ModelProto()
            file.seek(0)
            proto.ParseFromString(file.read())
            return proto

        weakref.finalize(read, file.close)
        return read

    def close(self) -> None:
        """Remove the file, unless another program uses it."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        _remove_unused(self.path, fd)
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)  # a reader has the file open, too
        os.close(fd)

    def _opened(self) -> int:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return -1
        fcntl.flock(fd, fcntl.LOCK_SH)
        if _is_at(self.path, fd):
            return fd
        os.close(fd)  # its last user has just removed it
        return -1

    def _written(self, data: bytes) -> int:
        part = self.path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)  # first, since other programs remove unused files
            with os.fdopen(os.dup(fd), "wb") as file:
                file.write(data)
            part.rename(self.path)
        except FileNotFoundError:  # it was removed before the lock
            os.close(fd)
            return -1
        except BaseException:
            os.close(fd)
            part.unlink(missing_ok=True)
            raise
        return fd


def _remove_unused(path: Path, fd: int) -> None:
    """Remove a model file that only this descriptor uses, which may hold a lock on it."""
    with contextlib.suppress(OSError):  # in use by another program, or gone
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, fd):
            path.unlink()
            for one in made_of(path):  # used by the cores
                one.unlink(missing_ok=True)


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
