"""Encrypted model files: AES-256-GCM, which detects changes, with a key derived from a secret by scrypt.

A header, which the cipher authenticates, and the encrypted file::

    0   char[8]  "HBRTRKNX"
    8   uint32   version of the layout, 1
    12  uint8    level, 1 to 3: how much work the key takes
    13  uint8    1 with a key of the user's, 0 with the emulator's own, which is not a secret
    14  uint16   0
    16  uint8[16] salt
    32  uint8[12] nonce
    44  uint8[16] what tells another key

Source: RKNN SDK advanced guide (chapter 5), 5.9
Emulator: the format, the cipher and the key; a board's runtime has its own key.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hbrt import settings
from rknn_api.errors import RknnError, RknnStatus, invalid_model, invalid_parameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"HBRTRKNX"
LEVELS: Final = {1: 14, 2: 16, 3: 17}
"""scrypt's cost by level, as a power of two."""
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<8sIBBH16s12s16s")
_OWN: Final = b"hbrt hides a model from viewers, and no more"
_LEAST: Final = 16  # bytes of a user's key
_MOST: Final = 2**31 - 1  # bytes that the cipher takes at once


def encrypted(data: bytes, level: int) -> bytes:
    """Encrypt a model file with the key from HBRT_RKNN_KEY or, if unset, the emulator's own.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: unknown level, or it is already encrypted; RKNN_ERR_FAIL: the key cannot be
            read, or the library is not installed.
    """
    if level not in LEVELS or isinstance(level, bool):
        raise invalid_parameter(f"Invalid crypt_level {level!r}: must be 1, 2 or 3.")
    if len(data) > _MOST:
        raise invalid_parameter(f"The model has {len(data)} bytes; at most {_MOST} can be encrypted.")
    salt, nonce = os.urandom(16), os.urandom(12)
    has_key = settings.is_given("HBRT_RKNN_KEY")
    key, told = _keys(_secret(has_key=has_key), salt, level)
    head = _HEAD.pack(MAGIC, _VERSION, level, has_key, 0, salt, nonce, told)
    return head + _cipher(key).encrypt(nonce, data, head)


def is_encrypted(data: bytes | memoryview) -> bool:
    """Whether a model file is encrypted."""
    return bytes(data[: len(MAGIC)]) == MAGIC


def decrypted(data: bytes | memoryview, label: str) -> bytes:
    """The model file inside.

    Args:
        data: The encrypted file.
        label: Its name in messages.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: wrong key, or the file was changed or truncated; the message says which.
    """
    if len(data) < _HEAD.size:
        raise invalid_model(f"{label} is damaged: it is truncated.")
    head = bytes(data[: _HEAD.size])
    _, version, level, has_key, _, salt, nonce, told = _HEAD.unpack(head)
    if version != _VERSION or level not in LEVELS:
        raise invalid_model(f"{label} is encrypted with format version {version}, level {level}; export it again.")
    if has_key and not settings.is_given("HBRT_RKNN_KEY"):
        raise invalid_model(f"{label} is encrypted; set HBRT_RKNN_KEY to the file of its key.")
    key, expected = _keys(_secret(has_key=bool(has_key)), salt, level)
    if told != expected:
        raise invalid_model(
            f"{label} cannot be decrypted: the key in {settings.text('HBRT_RKNN_KEY')} is a different one."
            if has_key
            else f"{label} is damaged: its header was changed."
        )
    from cryptography.exceptions import InvalidTag

    try:
        return _cipher(key).decrypt(nonce, bytes(data[_HEAD.size :]), head)
    except InvalidTag:
        raise invalid_model(f"{label} is damaged: it was changed or truncated after it was encrypted.") from None


def _secret(*, has_key: bool) -> bytes:
    if not has_key:
        return _OWN
    path = Path(settings.text("HBRT_RKNN_KEY"))
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise RknnError(
            RknnStatus.RKNN_ERR_FAIL, f"The key {path} of HBRT_RKNN_KEY cannot be read: {error.strerror}."
        ) from None
    if len(secret) < _LEAST:
        raise RknnError(
            RknnStatus.RKNN_ERR_FAIL,
            f"The key {path} of HBRT_RKNN_KEY has {len(secret)} bytes; it must have {_LEAST} or more, such as those of "
            "'openssl rand -hex 32'.",
        )
    return secret


@lru_cache(maxsize=4)
def _keys(secret: bytes, salt: bytes, level: int) -> tuple[bytes, bytes]:
    """The cipher's key, and a check value that reveals a wrong one."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    made = Scrypt(salt=salt, length=48, n=1 << LEVELS[level], r=8, p=1).derive(secret)
    return made[:32], made[32:]


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
