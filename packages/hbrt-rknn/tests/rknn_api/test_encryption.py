"""Encrypted model files: read as before by whoever has the key; another key and a change can be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rknn_api.container import Container
from rknn_api.encryption import decrypted, encrypted
from rknn_api.errors import RknnError, RknnStatus
from rknn_api.lite.rknn_lite import RKNNLite
from rknn_api.toolkit.rknn import RKNN
from tests.rknn_api.capi.models import model


def results(path: Path) -> list[np.ndarray]:
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0, lite.last_error
    assert lite.init_runtime() == 0, lite.last_error
    found = lite.inference([np.arange(180, dtype=np.float32).reshape(1, 6, 10, 3)])
    lite.release()
    assert found is not None
    return found


def test_a_program_reads_it_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_BPU", "inline")  # without a board
    plain, rknn = tmp_path / "net.rknn", RKNN()
    plain.write_bytes(model("int8"))
    hidden = tmp_path / "net.crypt.rknn"
    assert b"Conv" in plain.read_bytes()
    expected = results(plain)
    for level in (1, 2, 3):
        assert rknn.export_encrypted_rknn_model(str(plain), crypt_level=level) == 0, rknn.last_error
        assert b"Conv" not in hidden.read_bytes()
        for one, other in zip(expected, results(hidden), strict=True):
            np.testing.assert_array_equal(one, other)
        hidden.unlink()


def test_what_cannot_be_encrypted_is_said(tmp_path: Path) -> None:
    plain, rknn = tmp_path / "net.rknn", RKNN()
    plain.write_bytes(model("int8"))
    assert rknn.export_encrypted_rknn_model(plain, tmp_path / "hidden.rknn") == 0
    for given, level, sentence in (
        (tmp_path / "hidden.rknn", 1, "is already encrypted"),
        (plain, 4, "Invalid crypt_level 4: must be 1, 2 or 3."),
        (tmp_path / "none.rknn", 1, "cannot be read: No such file or directory"),
    ):
        assert rknn.export_encrypted_rknn_model(given, tmp_path / "new.rknn", level) == -1
        assert sentence in rknn.last_error
    plain.write_bytes(model("int8", "rv1106"))
    assert rknn.export_encrypted_rknn_model(plain, tmp_path / "new.rknn") == -1
    assert "rv1106 does not run encrypted models" in rknn.last_error
    assert not (tmp_path / "new.rknn").exists()


def test_another_key_and_a_change_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, key = model("int8"), tmp_path / "key"
    key.write_text("0123456789abcdef0123\n")
    monkeypatch.setenv("HBRT_RKNN_KEY", str(key))
    hidden = encrypted(data, 1)
    assert decrypted(hidden, "The model") == data
    assert Container.from_bytes(hidden).metadata.target_platform == "rk3588"

    def refusal(given: bytes) -> str:
        with pytest.raises(RknnError) as refused:
            decrypted(given, "The model")
        assert refused.value.status in {RknnStatus.RKNN_ERR_MODEL_INVALID, RknnStatus.RKNN_ERR_FAIL}
        return refused.value.text

    for at in (70, len(hidden) // 2, len(hidden) - 1):
        changed = bytearray(hidden)
        changed[at] ^= 1
        assert "is damaged: it was changed or truncated" in refusal(bytes(changed))
    assert "is damaged: it was changed or truncated" in refusal(hidden[:-5])
    assert "is truncated" in refusal(hidden[:30])
    assert "version 1, level 9" in refusal(hidden[:12] + b"\x09" + hidden[13:])
    key.write_text("0123456789abcdef0124\n")
    assert f"the key in {key} is a different one" in refusal(hidden)
    key.write_text("short")
    assert "has 5 bytes; it must have 16 or more" in refusal(hidden)
    key.unlink()
    assert "cannot be read: No such file" in refusal(hidden)
    monkeypatch.delenv("HBRT_RKNN_KEY")
    assert "set HBRT_RKNN_KEY to the file of its key" in refusal(hidden)
    own = encrypted(data, 1)
    assert decrypted(own, "The model") == data
    assert "its header was changed" in refusal(own[:20] + b"xx" + own[22:])
