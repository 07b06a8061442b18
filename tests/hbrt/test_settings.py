"""Settings from the environment: one table, and what is said about a value that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hbrt import settings
from hbrt.settings import TABLE, BadSettingError, format_size, parse_size
from tests.each import each

READERS: dict[str, Callable[[str], Any]] = {
    "bool": settings.flag,
    "int": settings.integer,
    "size": settings.size_bytes,
    "choice": settings.choice,
    "words": settings.words,
    "seeded": settings.seeded,
}


def test_every_setting_is_of_a_known_kind_and_its_default_is_one() -> None:
    assert len({setting.name for setting in TABLE}) == len(TABLE)
    for setting in TABLE:
        assert setting.name.startswith(("HBRT_", "HB_"))
        assert setting.help
        kind = setting.kind.partition(":")[0]
        assert kind in {"path", "text", "bool", "int", "size", "choice", "seeded", "words"}


@pytest.mark.parametrize("name", [setting.name for setting in TABLE])
def test_default_can_be_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    kind = next(setting.kind for setting in TABLE if setting.name == name).partition(":")[0]
    reader = READERS.get(kind, settings.text)
    value = reader(name)
    monkeypatch.setenv(name, "")  # empty is as good as not set
    assert reader(name) == value


def test_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_CORES", "4")
    monkeypatch.setenv("HBRT_DDR", "512M")
    monkeypatch.setenv("HBRT_CACHE", "strict")
    assert settings.integer("HBRT_CORES") == 4
    assert settings.size_bytes("HBRT_DDR") == 512 << 20
    assert settings.seeded("HBRT_CACHE") == ("strict", 0)


@pytest.mark.parametrize(
    ("raw", "value"),
    [("1", True), ("true", True), ("YES", True), ("on", True), ("0", False), ("No", False), ("OFF", False)],
)
def test_yes_and_no(raw: str, monkeypatch: pytest.MonkeyPatch, *, value: bool) -> None:
    monkeypatch.setenv("HBRT_AUTOSTART", raw)
    assert settings.flag("HBRT_AUTOSTART") is value


BAD = (
    (
        "HBRT_AUTOSTART",
        "maybe",
        "Invalid HBRT_AUTOSTART 'maybe': must be 1 or 0. It sets: start a private board if no",
    ),
    ("HBRT_CORES", "two", "Invalid HBRT_CORES 'two': must be an integer. It sets: DSP cores of a board"),
    ("HBRT_CORES", "2.5", "Invalid HBRT_CORES '2.5': must be an integer."),
    ("HBRT_CORES", "-1", "Invalid HBRT_CORES -1: must be 0 or more. It sets: DSP cores of a board"),
    (
        "HBRT_AGING_MS",
        "9" * 20,
        f"Invalid HBRT_AGING_MS {'9' * 20}: must be 0 to 1000000000. It sets: milliseconds of waiting",
    ),
    ("HBRT_CACHE", "magic", "Invalid HBRT_CACHE 'magic': must be coherent, strict or evicting:SEED, as in evicting:7."),
    ("HBRT_DDR", "lots", "Invalid HBRT_DDR 'lots': expected a number with K, M, G or T, as in 512M or 2G."),
)


@pytest.mark.parametrize(("name", "raw", "text"), BAD)
def test_settings_are_looked_at_before_anybody_reads_them(
    name: str, raw: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.check()
    monkeypatch.setenv(name, raw)
    settings.check("HBRT_SPIN_US", "HBRT_HOME")
    for names in ((), (name,)):
        with pytest.raises(BadSettingError) as caught:
            settings.check(*names)
        assert str(caught.value).startswith(text)


def test_one_without_a_least_value_has_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_SPIN_US", "9" * 20)
    with pytest.raises(
        BadSettingError, match=r"Invalid HBRT_SPIN_US 9{20}: must be 1000000000 or less\. It sets: micro"
    ):
        settings.integer("HBRT_SPIN_US")


@each(
    "raw, value",
    [
        ("1", 1),
        ("4096", 4096),
        ("64k", 64 << 10),
        ("64M", 64 << 20),
        ("64MB", 64 << 20),
        ("64MiB", 64 << 20),
        ("2G", 2 << 30),
        (" 2 g ", 2 << 30),
        ("0.5G", 1 << 29),
        ("1T", 1 << 40),
    ],
)
def test_sizes(raw: str, value: int) -> None:
    assert parse_size(raw) == value


@each("raw", ["", "0", "-1", "-2G", "G", "2X", "1e999", "nan", "inf", "2GG", "0x10", "1,5G"])
def test_what_is_no_size(raw: str) -> None:
    with pytest.raises(BadSettingError, match="expected a number with K, M, G or T"):
        parse_size(raw)


@pytest.mark.parametrize("raw", ["9" * 20, "4294967296T"])
def test_what_is_more_than_any_memory_holds(raw: str) -> None:
    with pytest.raises(BadSettingError, match=f"The size '{raw}' is too large for any memory or file; use less"):
        parse_size(raw)


@each(
    "count, text",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64.0 MiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_size_as_text(count: int, text: str) -> None:
    assert format_size(count) == text
