"""The words of HBRT_CHECK as what is watched."""

from __future__ import annotations

import pytest

from hbrt import settings
from hbrt.findings.checks import ALL, Check, checks_of
from hbrt.settings import BadSettingError


def test_words_name_what_is_watched() -> None:
    assert checks_of(settings.words("HBRT_CHECK", "memory, dma")) == Check.MEMORY | Check.DMA
    assert checks_of(settings.words("HBRT_CHECK", "all,fail-fast")) == ALL | Check.FAIL_FAST


def test_words_that_say_what_follows_from_a_finding_watch_nothing() -> None:
    assert checks_of(settings.words("HBRT_CHECK", "fail,tell")) == Check(0)
    assert checks_of(settings.words("HBRT_CHECK")) == Check(0)


def test_every_check_has_a_word_and_every_word_is_known() -> None:
    for check in ALL:
        assert checks_of(settings.words("HBRT_CHECK", str(check.name).lower())) == check


def test_unknown_word_is_refused() -> None:
    with pytest.raises(BadSettingError, match="Unknown word 'memroy' in HBRT_CHECK: expected tell, fail"):
        settings.words("HBRT_CHECK", "dma,memroy")


def test_all_fit_the_byte_of_the_mailbox() -> None:
    assert max(Check) < 256
