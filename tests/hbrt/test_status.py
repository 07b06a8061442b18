"""Status codes: one number and one sentence each, and public values where they are public."""

from __future__ import annotations

from hbrt import status
from hbrt.status import Status, describe, name_of
from tests.each import each


def test_codes_are_unique() -> None:
    assert len(Status.__members__) == len(set(Status))  # an alias would be a member that is not listed
    assert len({int(member) for member in Status}) == len(Status)


def test_rows_are_sentences_with_a_source() -> None:
    for row in Status:
        assert row.sentence.endswith((".", "?"))
        assert row.sentence[0].isupper() or row.sentence.startswith("dspCoreId")
        assert row.source in {"public", "emulator"}
    sentences = [row.sentence for row in Status]
    told_by_both_families = {"NOT_RUNNING", "BOARD_LOST", "FORKED"}
    assert len(sentences) - len(set(sentences)) == len(told_by_both_families)


def test_success_is_zero_and_every_error_negative() -> None:
    assert [member for member in Status if member >= 0] == [Status.HB_SYS_SUCCESS]


@each("name", Status.__members__)
def test_flat_name_and_member_are_the_same_object(name: str) -> None:
    assert getattr(status, name) is Status[name]


def test_success_of_each_family_is_the_same_object() -> None:
    assert status.HB_DSP_SUCCESS is status.HB_DNN_SUCCESS is status.HB_SYS_SUCCESS is Status.HB_SYS_SUCCESS


def test_flat_names_are_no_more_than_the_members_and_the_successes() -> None:
    flat = {name for name in vars(status) if name.startswith("HB_")}
    assert flat == set(Status.__members__) | {"HB_DSP_SUCCESS", "HB_DNN_SUCCESS"}


def test_public_values_are_those_of_the_manual() -> None:
    public = {row.name: int(row) for row in Status if row.source == "public"}
    assert public["HB_DNN_INVALID_ARGUMENT"] == -6000001
    assert public["HB_DNN_MULTI_PROGRESS_USE_ERROR"] == -6000016
    assert (public["HB_SYS_INVALID_ARGUMENT"], public["HB_SYS_OUT_OF_MEMORY"]) == (-6000129, -6000130)
    assert public["HB_SYS_REGISTER_MEM_FAILED"] == -6000131
    assert not [name for name in public if name.startswith("HB_DSP")]


def test_emulators_numbers_are_in_a_block_that_no_public_code_uses() -> None:
    public = {int(row) for row in Status if row.source == "public"}
    chosen = {int(row) for row in Status if row.source == "emulator"}
    assert not public & chosen
    assert {int(member) for member in Status if member.name.startswith("HB_DSP")} <= set(range(-6000299, -6000256))


def test_name_and_sentence_of_codes_and_of_an_ops_own_value() -> None:
    assert name_of(-6000270) == "HB_DSP_CORE_LOST"
    assert describe(-6000270) == "The core died while it ran the task; other tasks continue."
    assert name_of(-42) == "-42"
    assert describe(-42) == "The op returned -42, which is not a runtime status code."
