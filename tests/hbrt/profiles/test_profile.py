"""Profiles: the packaged one is whole and sourced, one's own takes the rest from its base, and a bad one is refused."""

import re
from pathlib import Path

import pytest

from hbrt.profiles.keys import KEYS
from hbrt.profiles.profile import BadProfileError, find, load, packaged
from tests.each import each

SOURCES = Path(__file__).resolve().parents[3] / "docs" / "sources.md"


@each("name", packaged())
def test_each_constant_of_a_packaged_profile_has_a_source_or_a_range_with_a_reason(name: str) -> None:
    manuals = [
        f"{row[1]}, " if row[2] == "-" else f"{row[1]} ({row[2]}), "
        for row in re.findall(r"^(\| ([^|]+?) \| ([^|]+?) \|)", SOURCES.read_text("utf-8"), re.MULTILINE)
    ]
    profile = find(name)
    constants = profile.constants
    wanted = {key for key, rule in KEYS.items() if rule.of in {"", *profile.cores}}
    assert wanted <= constants.keys() <= {*KEYS, *(f"codes.{code}" for code in profile.codes)}
    for key, one in constants.items():
        assert one.low <= one.value <= one.high, key
        assert one.why if one.is_assumed else one.source.startswith(tuple(manuals)), key


def test_a_cycle_of_the_j5_is_1_543_ns() -> None:
    profile = find("j5")
    assert profile.ns(81) == 125
    assert profile.ns(profile.clock_hz) == 1_000_000_000
    assert profile.us(648) == 1


def test_each_chip_has_its_cores_and_its_priorities() -> None:
    cores = {name: {kind: one.count for kind, one in find(name).cores.items()} for name in packaged()}
    assert (cores["j5"], cores["sd865"]) == ({"dsp": 2, "bpu": 2}, {"dsp": 4})
    assert (cores["x3"], cores["x5"], cores["s100"]) == ({"bpu": 2}, {"bpu": 1}, {"dsp": 1, "bpu": 1})
    assert {name: kinds["npu"] for name, kinds in cores.items() if "npu" in kinds} == {
        **dict.fromkeys(name for name in cores if name.startswith("r")), **dict.fromkeys(
            ("rk2118", "rk3562", "rk3566", "rk3568", "rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b"), 1
        ), "rk3576": 2, "rk3588": 3,
    }  # fmt: skip
    assert str(find("rk3588").cores["npu"]) == "3 NPU cores of 1000 MHz"
    # In the mailbox a larger priority goes first, whatever a chip's own direction is.
    assert [find("j5").board_priority(one) for one in (0, 255)] == [0, 255]
    assert [find("sd865").board_priority(one) for one in (255, 1)] == [0, 254]
    assert [find("rk3588").board_priority(one) for one in (2, 1, 0)] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"The priority is 3, but must be 2 \(lowest\) to 0 \(highest\)\."):
        find("rk3588").board_priority(3)
    assert (find("rv1103b").codes["RKNN_ERR_PARAM_INVALID"], find("j5").codes) == (-5, {})


def test_a_constant_of_cores_that_a_board_has_not_is_named_with_what_to_do() -> None:
    with pytest.raises(
        BadProfileError, match=r"rk3588 .* has no vector\.bits: it has no DSP core\. Choose one that has"
    ):
        find("rk3588").whole("vector.bits")


def test_the_number_of_dsp_cores_is_the_settings_else_the_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HBRT_CORES", raising=False)
    assert [find(name).dsp_cores() for name in ("j5", "sd865", "rk3588")] == [2, 4, 0]
    monkeypatch.setenv("HBRT_CORES", "1")
    assert (find("j5").dsp_cores(), find("j5").dsp_cores(3)) == (1, 3)
    for name, wanted in (("rk3588", None), ("rk3588", 2), ("j5", 0)):
        with pytest.raises(BadProfileError, match=f"do not fit a board with the profile {name}, which has "):
            find(name).dsp_cores(wanted)


def test_a_profile_takes_what_it_lacks_from_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "j5"\n[ddr]\nstall_cycles = { value = 7, source = "our board" }\n')
    mine = load(file)
    assert (mine.name, mine.whole("ddr.stall_cycles")) == ("mine", 7)
    assert "ddr.stall_cycles" not in mine.assumed
    changed = find("j5").constants.items() ^ mine.constants.items()
    assert {key for key, _ in changed} == {"ddr.stall_cycles"}
    (tmp_path / "next.toml").write_text('base = "mine.toml"\n')
    assert load(tmp_path / "next.toml").whole("ddr.stall_cycles") == 7


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[ddr", "Cannot read the profile"),
        ("", 'cores.dsp.count is missing; add it, or base = "j5" to take it from there.'),
        ('base = "bad.toml"', "chain of base profiles has a cycle"),
        (
            f'base = "{"x" * 5000}"',
            f"base is '{'x' * 5000}', which is not a readable file (File name too long); write a file's",
        ),
        ('base = "~nobody-here/a"', "base is '~nobody-here/a', which is not a readable file (Could not "),
        ('base = "none.toml"', "base is 'none.toml', which is not a file; write a file's name, or one of j5, rk2118, "),
        ("name = 3", "name is 3, but must be text."),
        (
            "[idma]\nsetup = {value = 1, source = 'x'}",
            "unknown constant idma.setup; did you mean idma.setup_cycles?",
        ),
        ("[idma]\nrow_cycles = 3", "idma.row_cycles is 3; write { value = 3, source = ... }"),
        ("idma.row_cycles = {value = -1, source = 'x'}", "value is -1; write an integer from 0 to 1,000,000 cycles."),
        ("idma.row_cycles = {value = 1.5, source = 'x'}", "value is 1.5; write an integer"),
        ("idma.row_cycles = {value = 'a', source = 'x'}", "value is 'a'; write an integer"),
        ("idma.row_cycles = {value = nan, source = 'x'}", "value is nan; write an integer"),
        ("idma.row_cycles = {value = true, source = 'x'}", "value is True; write an integer"),
        ("idma.row_cycles = {value = 1, source = ''}", "source is ''; write where the value comes from."),
        ("idma.row_cycles = {value = 1}", "needs value, and either source = a text or assumed = [low, high]."),
        ("idma.row_cycles = {value = 9, assumed = [1, 2]}", "value is 9, outside assumed, 1 to 2; widen it."),
        ("idma.row_cycles = {value = 1, assumed = 2}", "assumed is 2; write [low, high]."),
        ("idma.row_cycles = {value = 1, source = 'x', low = 2}", "has 'low'; a constant has value, and either source"),
    ],
)
def test_a_bad_profile_is_refused_with_key_value_and_what_is_allowed(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "bad.toml"
    has_base = not text or "base" in text or text == "name = 3"
    file.write_text(text if has_base else f'base = "j5"\n{text}\n')
    with pytest.raises(BadProfileError, match=re.escape(sentence)):
        load(file)


def test_changed_constants_are_checked_as_those_of_a_file() -> None:
    slow = find("j5").with_values({"ddr.stall_cycles": 500})
    assert slow.constants["ddr.stall_cycles"][:3] == (500, 20, 500)
    with pytest.raises(BadProfileError, match=r"Unknown constant 'ddr\.stal'; did you mean ddr\.stall_cycles\?"):
        slow.with_values({"ddr.stal": 1})


def test_a_profile_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    for text in ("a = " + "[" * 5000, "[" + "a." * 5000 + "a]\nb = 1"):
        (tmp_path / "deep.toml").write_text(text)
        with pytest.raises(BadProfileError, match="Cannot read"):
            load(tmp_path / "deep.toml")
