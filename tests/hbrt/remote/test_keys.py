"""Directories of keys: private, complete, and refused when they are not."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hbrt.errors import WrongUseError
from hbrt.remote import keys as curve_keys
from hbrt.remote.keys import KeysError
from tests.limits import PATIENCE_S


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    directory = tmp_path / "keys"
    assert curve_keys.make_server(directory)
    return directory


def test_nobody_else_can_read_them(keys: Path) -> None:
    curve_keys.add_client(keys, "alice")
    for path in (keys, *keys.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_program_gets_its_own_pair_and_the_relays_public_key(keys: Path) -> None:
    mine = curve_keys.program_keys(curve_keys.add_client(keys, "alice"))
    server = curve_keys.server_pair(keys)
    assert mine.server == server.public
    assert curve_keys.clients_by_key(keys) == {mine.own.public: "alice"}
    assert len({mine.own.public, mine.own.secret, server.public, server.secret}) == 4


def test_keys_are_never_made_anew(keys: Path) -> None:
    before = curve_keys.server_pair(keys)
    assert not curve_keys.make_server(keys)
    assert curve_keys.server_pair(keys) == before
    curve_keys.add_client(keys, "alice")
    with pytest.raises(WrongUseError, match="already has a key named alice"):
        curve_keys.add_client(keys, "alice")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "-x", "a b", "x" * 33])
def test_names_that_are_none(keys: Path, name: str) -> None:
    with pytest.raises(WrongUseError, match="is not a key name"):
        curve_keys.add_client(keys, name)


def test_who_was_removed_may_not_come_in_and_a_broken_file_lets_nobody_in(keys: Path) -> None:
    curve_keys.add_client(keys, "alice")
    (keys / "clients" / "alice.key").unlink()
    (keys / "clients" / "mallory.key").write_text("curve\n    public-key = nonsense\n")
    (keys / "clients" / "empty.key").write_bytes(b"\xff\0")
    assert set(curve_keys.clients_by_key(keys).values()) <= {"mallory"}
    assert all(len(key) != 40 for key in curve_keys.clients_by_key(keys))


def test_a_secret_that_others_can_read_is_refused(keys: Path) -> None:
    secret = keys / "server.key_secret"
    secret.chmod(0o640)
    with pytest.raises(KeysError, match=r"Others can read the secret key .* \(mode 640\); run 'chmod 600 "):
        curve_keys.server_pair(keys)


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(KeysError, match=r"is not private"):
        curve_keys.make_server(tmp_path)


def test_keys_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match=r"No such key: .*/server.key_secret; create them with 'hbrt keys new "):
        curve_keys.server_pair(tmp_path)
    with pytest.raises(KeysError, match=r"No such key: .*/client.key_secret; create them on the relay's machine"):
        curve_keys.program_keys(tmp_path)


def test_keys_that_cannot_be_written_are_not_begun(keys: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from hbrt.remote.keys import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"  # as a full disk
        "for what in (lambda: make_server(Path(sys.argv[1])), lambda: add_client(Path(sys.argv[2]), 'bob')):\n"
        "    try:\n"
        "        what()\n"
        "    except KeysError as error:\n"
        "        print(error)\n"
    )
    fresh = tmp_path / "fresh"
    said = subprocess.run(
        [sys.executable, "-c", code, fresh, keys], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout.splitlines()
    assert said[0].startswith(f"Cannot write the relay's keys in {fresh}: File too large")
    assert said[1].startswith(f"Cannot write the keys for bob in {keys}: File too large")
    assert [path.name for path in fresh.iterdir()] == ["clients"]
    assert curve_keys.make_server(fresh)
    assert curve_keys.add_client(keys, "bob").is_dir()


def test_a_path_that_the_system_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match=r"Cannot read the key .*: File name too long; create them with 'hbrt keys new"):
        curve_keys.server_pair(tmp_path / ("x" * 300))
    (tmp_path / "file").write_text("")
    with pytest.raises(KeysError, match=r"No such key: .*file/server\.key_secret; create them with"):
        curve_keys.server_pair(tmp_path / "file")


def test_where_a_program_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HBRT_KEYS", str(tmp_path / "mine"))
    assert curve_keys.default_directory() == tmp_path / "mine"
    monkeypatch.delenv("HBRT_KEYS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert curve_keys.default_directory() == tmp_path / "hbrt" / "keys"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert curve_keys.default_directory() == tmp_path / ".config" / "hbrt" / "keys"


@pytest.mark.parametrize("name", ["", "clients"])
def test_keys_that_others_can_write_are_refused(keys: Path, name: str) -> None:
    (keys / name).chmod(0o777)
    for read in (curve_keys.server_pair, curve_keys.clients_by_key):
        with pytest.raises(KeysError, match=rf"{keys / name} \(mode 777\).*chmod 700"):
            read(keys)


def test_a_fifo_or_a_huge_file_keeps_nobody_else_out_and_is_named(keys: Path) -> None:
    curve_keys.add_client(keys, "alice")
    os.mkfifo(keys / "clients" / "eve.key")
    with (keys / "clients" / "big.key").open("wb") as big:
        big.truncate(1 << 30)
    assert list(curve_keys.clients_by_key(keys).values()) == ["alice"]
    secret = keys / "server.key_secret"
    secret.unlink()
    os.mkfifo(secret, 0o600)
    with pytest.raises(KeysError, match=f"Cannot read the key {secret}: it is not a regular file"):
        curve_keys.server_pair(keys)
