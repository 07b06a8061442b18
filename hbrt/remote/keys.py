"""Directories of CURVE keys: who may connect to a relay over TCP. Certificates are ZeroMQ's own (ZPL) files.

A relay's directory has ``server.key_secret``, ``server.key`` and ``clients/NAME.key``, the accepted keys.
A program's directory has ``client.key_secret`` and the relay's ``server.key``. Directories are 0700, files 0600.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from hbrt import settings
from hbrt.board import private_files
from hbrt.borders.regular_files import read_regular
from hbrt.errors import BoardError, WrongUseError

SERVER, CLIENT, CLIENTS = "server", "client", "clients"
_PUBLIC, _SECRET = ".key", ".key_secret"
MAX_KEY_BYTES = 1 << 14
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class KeysError(BoardError):
    """Keys are missing, unreadable, or readable by others; the message says which and what to do."""


class KeyPair(NamedTuple):
    """A public key and its secret, in Z85 text."""

    public: bytes
    secret: bytes


class ProgramKeys(NamedTuple):
    """A program's keys: its own pair, and the relay's public key."""

    own: KeyPair
    server: bytes


def default_directory() -> Path:
    """Return where a program looks for its keys: HBRT_KEYS, else ``hbrt/keys`` in the user's settings directory."""
    configured = settings.text("HBRT_KEYS")
    if configured:
        return Path(configured).expanduser().absolute()
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "hbrt" / "keys"


def make_server(directory: Path) -> bool:
    """Create a relay's keys; returns False if the directory already has them.

    Raises:
        KeysError: the directory cannot be created or is not private.
    """
    _make_private(directory)
    _make_private(directory / CLIENTS)
    if (directory / f"{SERVER}{_SECRET}").exists():
        return False
    try:
        _write_pair(directory, SERVER)
    except OSError as error:
        for suffix in (_SECRET, _PUBLIC):
            (directory / f"{SERVER}{suffix}").unlink(missing_ok=True)
        raise KeysError(f"Cannot write the relay's keys in {directory}: {error.strerror}.") from None
    return True


def check_name(name: str) -> None:
    """Check the name of a key.

    Raises:
        WrongUseError: invalid name.
    """
    if not _NAME.fullmatch(name):
        raise WrongUseError(f"{name!r} is not a key name: use up to 32 letters, digits, '.', '_' and '-'.")


def add_client(directory: Path, name: str) -> Path:
    """Accept one more program: its public key goes to ``clients/``, its own directory next to it.

    Args:
        directory: A relay's key directory.
        name: The relay's name for it.

    Returns:
        The directory for the program's machine.

    Raises:
        WrongUseError: the name is invalid or taken. KeysError: as for ``make_server``.
    """
    check_name(name)
    mine, public = directory / f"for-{name}", directory / CLIENTS / f"{name}{_PUBLIC}"
    if public.exists() or mine.exists():
        raise WrongUseError(
            f"{directory} already has a key named {name}; remove {public} and {mine}, or use another name."
        )
    _make_private(mine)
    try:
        _write_pair(mine, CLIENT)
        _write(mine / f"{SERVER}{_PUBLIC}", (directory / f"{SERVER}{_PUBLIC}").read_bytes())
        _write(public, (mine / f"{CLIENT}{_PUBLIC}").read_bytes())
    except OSError as error:
        for path in (public, *mine.iterdir()):
            path.unlink(missing_ok=True)
        mine.rmdir()
        raise KeysError(f"Cannot write the keys for {name} in {directory}: {error.strerror}.") from None
    return mine


def server_pair(directory: Path) -> KeyPair:
    """Return a relay's own keys.

    Raises:
        KeysError: they are missing, or users other than the owner can read the secret.
    """
    _check_private(directory)
    _check_private(directory / CLIENTS)
    return _load_secret(directory / f"{SERVER}{_SECRET}", f"create them with 'hbrt keys new {directory}'")


def clients_by_key(directory: Path) -> dict[bytes, str]:
    """Return the names of accepted programs by public key; always reread, so that changes take effect at once."""
    found = {}
    _check_private(directory)
    _check_private(directory / CLIENTS)
    for path in sorted((directory / CLIENTS).glob(f"*{_PUBLIC}")):
        try:
            found[_load(path).public] = path.name.removesuffix(_PUBLIC)
        except KeysError:
            continue  # a file that is not a key accepts nobody
    return found


def _check_private(directory: Path) -> None:
    """Refuse a relay's folder that others can write: they could give themselves access."""
    try:
        mode = stat.S_IMODE(directory.stat().st_mode)
    except OSError:
        return  # missing files are reported by their reader
    if mode & 0o022:
        raise KeysError(
            f"Others can write the key directory {directory} (mode {mode:o}) and give themselves access; "
            f"run 'chmod 700 {directory}'."
        )


def program_keys(directory: Path) -> ProgramKeys:
    """Return the keys that a program needs to connect.

    Raises:
        KeysError: a file is missing, or users other than the owner can read the secret.
    """
    hint = "create them on the relay's machine with 'hbrt keys new --name NAME DIR', and copy DIR/for-NAME here"
    own = _load_secret(directory / f"{CLIENT}{_SECRET}", hint)
    return ProgramKeys(own, _load(directory / f"{SERVER}{_PUBLIC}", hint).public)


def _make_private(directory: Path) -> None:
    try:
        private_files.make_directory(directory)
        found = directory.stat()
    except OSError as error:
        raise KeysError(f"Cannot create the key directory {directory}: {error.strerror}.") from None
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise KeysError(
            f"The directory {directory} is not private, which would expose keys in it; choose another one, "
            f"or run 'chmod 700 {directory}'."
        )


def _write_pair(directory: Path, name: str) -> KeyPair:
    from zmq.auth import create_certificates

    for path in create_certificates(directory, name):  # the directory is private, so nobody reads them meanwhile
        Path(path).chmod(0o600)
    return _load_secret(directory / f"{name}{_SECRET}", "")


def _write(path: Path, content: bytes) -> None:
    fd = private_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        file.write(content)


def _load_secret(path: Path, hint: str) -> KeyPair:
    pair = _load(path, hint)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise KeysError(f"Others can read the secret key {path} (mode {mode:o}); run 'chmod 600 {path}'.")
    if not pair.secret:
        raise KeysError(f"The file {path} does not contain a secret key.")
    return pair


def _load(path: Path, hint: str = "") -> KeyPair:
    from zmq.auth import load_certificate

    try:
        read_regular(path, MAX_KEY_BYTES)  # ZeroMQ would read a FIFO or an endless file forever
        public, secret = load_certificate(path)
    except (OSError, ValueError) as error:
        why = _why_unreadable(path, error)
        raise KeysError(f"{why}; {hint}." if hint else f"{why}.") from None
    return KeyPair(public, secret or b"")


def _why_unreadable(path: Path, error: Exception) -> str:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"No such key: {path}"
    except OSError as refused:  # which ZeroMQ reports as an invalid file
        return f"Cannot read the key {path}: {refused.strerror}"
    return f"Cannot read the key {path}: {error.strerror if isinstance(error, OSError) else error}"
