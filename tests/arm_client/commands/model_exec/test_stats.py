"""The arithmetic and the texts of hrt_model_exec: flags, summaries, dumps, classes, regions, profiles."""

from __future__ import annotations

import csv
import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from arm_client.commands.model_exec import dump
from arm_client.commands.model_exec.compare import Limits, likeness
from arm_client.commands.model_exec.flags import FlagCommand, as_click, boolean_flag, flag
from arm_client.commands.model_exec.infer import classes_of
from arm_client.commands.model_exec.inputs import rois_of
from arm_client.commands.model_exec.stats import MAX_ROUNDS, Latencies, Rounds, Summary, progress_line, summary_block
from arm_client.dnn.profile.profiler import StepProfile
from hbrt.models.run.steps import StepTime
from tests.each import each


@each(
    "given, taken",
    [
        ("--model_file=a.onnx", "--model_file=a.onnx"),
        ("-model_file a.onnx", "--model_file a.onnx"),
        ("--roi_infer --roi=1,2,3,4", "--roi_infer=true --roi=1,2,3,4"),
        ("--roi_infer false", "--roi_infer false"),
        ("--noroi_infer", "--roi_infer=false"),
        ("-h", "-h"),
        ("--number -5", "--number -5"),
        ("--a -- --noroi_infer", "--a -- --noroi_infer"),
        ("--roi_infer", "--roi_infer=true"),
        ("--nothing", "--nothing"),
    ],
)
def test_flags_are_written_as_on_the_board(given: str, taken: str) -> None:
    assert as_click(given.split(), {"roi_infer", "roi"}) == taken.split()


@each(
    "arguments, printed",
    [
        ("", "False 1"),
        ("--on", "True 1"),
        ("--on=False --count=2 --count=3", "False 3"),
        ("-on 1 -count=4", "True 4"),
        ("--on --noon", "False 1"),
    ],
)
def test_a_command_takes_flags(arguments: str, printed: str) -> None:
    @click.command(cls=FlagCommand)
    @flag("count", int, 1, "How many.")
    @boolean_flag("on", "Whether.")
    def command(count: int, *, on: bool) -> None:
        click.echo(f"{on} {count}")

    assert CliRunner().invoke(command, arguments.split()).output == printed + "\n"
    bad = CliRunner().invoke(command, ["--on=maybe"])
    assert (bad.exit_code, "Invalid boolean 'maybe': expected true or false." in bad.output) == (2, True)
    other = CliRunner().invoke(command, ["-log_level=3"])
    assert (other.exit_code, "--log_level is a flag of the S series" in other.output) == (2, True)
    unknown = CliRunner().invoke(command, ["--log"])
    assert (unknown.exit_code, "No such option" in unknown.output) == (2, True)


def summary_of(latencies: list[float], run_time_ms: float, threads: int) -> Summary:
    taken = Latencies()
    for latency in latencies:
        taken.add(latency)
    return taken.summary(run_time_ms, threads)


def test_a_summary_adds_up() -> None:
    summary = summary_of([1.0, 2.0, 3.0, 6.0], 8.0, 2)
    assert (summary.frame_count, summary.total_latency, summary.average) == (4, 12.0, 3.0)
    assert (summary.minimum, summary.maximum, summary.fps) == (1.0, 6.0, 500.0)
    assert summary.percentiles == {50: 2.5, 90: pytest.approx(5.1), 99: pytest.approx(5.91)}
    assert summary.document()["percentiles_ms"]["p50"] == 2.5
    assert summary.document()["frame_count"] == 4
    assert progress_line(summary) == (
        "Frame count: 4,  Thread Average: 3.000000 ms,  thread max latency: 6.000000 ms,  "
        "thread min latency: 1.000000 ms,  FPS: 500.000000"
    )
    assert summary_block(summary).splitlines() == [
        "Running condition:",
        "  Thread number is: 2",
        "  Frame count   is: 4",
        "  Program run time: 8.000 ms",
        "Perf result:",
        "  Frame totally latency is: 12.000 ms",
        "  Average    latency    is: 3.000 ms",
        "  Frame      rate       is: 500.000 FPS",
        "Latency percentiles:",
        "  p50 is: 2.500 ms",
        "  p90 is: 5.100 ms",
        "  p99 is: 5.910 ms",
    ]


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=50))
def test_percentiles_lie_between_the_least_and_the_most(latencies: list[float]) -> None:
    summary = summary_of(latencies, 1.0, 1)
    values = [summary.minimum, *summary.percentiles.values(), summary.maximum]
    assert all(low <= high * (1 + 1e-12) for low, high in pairwise(values))


def test_a_long_run_is_summed_up_from_a_sample() -> None:
    taken = Latencies(most_kept=2000)
    for number in range(20_000):
        taken.add(float(number))
    summary = taken.summary(1.0, 1)
    assert (summary.frame_count, summary.minimum, summary.maximum) == (20_000, 0.0, 19_999.0)
    assert summary.average == 9999.5
    for percent, value in summary.percentiles.items():
        assert value == pytest.approx(200 * percent, abs=800)  # 2000 frames drawn: about 220 is one deviation
    assert taken.summary(1.0, 1, is_last=False).percentiles == {}


def test_no_frame_has_no_summary() -> None:
    with pytest.raises(ValueError, match="No frame ran"):
        summary_of([], 1.0, 1)


@each(
    "axis, lines",
    [
        (0, ["0 1 2 3 4 5"]),
        (1, ["0 1 2 3 4 5"]),
        (2, ["0 1 2", "3 4 5"]),
        (3, ["0", "1", "2", "3", "4", "5"]),
        (4, ["0", "1", "2", "3", "4", "5"]),
    ],
)
def test_lines_of_a_dump_break_at_the_axis(axis: int, lines: list[str]) -> None:
    assert dump.as_text(np.arange(6, dtype=np.int8).reshape(1, 2, 3), axis, 3).splitlines() == lines


def test_numbers_of_a_dump_have_their_decimals() -> None:
    assert dump.as_text(np.array([1 / 3, -2], np.float32), 0, 4) == "0.3333 -2.0000\n"
    assert dump.as_text(np.array([(1 << 64) - 1], np.uint64), 0, 4) == "18446744073709551615\n"
    assert dump.as_text(np.array(7, np.int32), 4, 0) == "7\n"
    assert dump.as_text(np.empty((0, 3), np.float32), 1, 2) == ""
    assert dump.as_text(np.array([True]), 0, 2) == "1\n"


def test_names_of_files_hold_nothing_that_a_shell_minds() -> None:
    assert dump.file_name("a/b", "frame0", 1, "x:0 y") == "a_b_frame0_1_x_0_y"


def test_classes_are_those_of_the_highest_scores() -> None:
    (found,) = classes_of(np.array([[[0.1, 0.5], [0.5, 0.7]]]), 3)
    assert found == [{"id": 3, "score": 0.7}, {"id": 1, "score": 0.5}, {"id": 2, "score": 0.5}]
    assert [len(classes) for classes in classes_of(np.zeros(2))] == [2]
    two = classes_of(np.array([[0.0, 1.0], [2.0, 0.0]], np.float32), 1)
    assert two == [[{"id": 1, "score": 1.0}], [{"id": 0, "score": 2.0}]]


def test_regions_are_four_numbers_each() -> None:
    found = rois_of(" 2,4,123,125 ;6,8,111,113;")
    assert [(roi.left, roi.top, roi.right, roi.bottom) for roi in found] == [(2, 4, 123, 125), (6, 8, 111, 113)]
    for wrong in ("1,2,3", "1,2,3,4,5", "a,b,c,d"):
        with pytest.raises(click.UsageError, match=f"Invalid --roi '{wrong}'"):
            rois_of(wrong)


def steps(*times: tuple[str, str, int, int]) -> list[StepTime]:
    return [StepTime(name, processor, start * 1_000_000, end * 1_000_000) for name, processor, start, end in times]


def test_a_profile_counts_whole_runs_of_each_thread(tmp_path: Path) -> None:
    profile = StepProfile(["a", "soft", "b"])

    def run(start: int) -> None:
        for step in steps(
            ("a", "BPU", start, start + 2), ("soft", "DSP", start + 2, start + 3), ("b", "BPU", start + 5, start + 9)
        ):
            profile.observe(step)

    def fail() -> None:
        profile.observe(steps(("a", "BPU", 0, 50))[0])

    for job in (fail, lambda: run(10)):
        job()
    thread = threading.Thread(target=run, args=(100,))
    thread.start()
    thread.join()
    assert profile.run_count == 2
    document = profile.document()
    assert document["model_latency"]["soft"] == {"avg_time": 1.0, "max_time": 1.0, "min_time": 1.0}
    assert document["processor_latency"]["BPU_inference_time_cost"]["avg_time"] == 6.0
    assert document["processor_latency"]["DSP_inference_time_cost"]["avg_time"] == 1.0
    assert document["task_latency"]["TaskRunningTime"]["max_time"] == 9.0

    profile.write(tmp_path / "new", {"FPS": 1.0}, {"thread_num": 2})
    first, second = (tmp_path / "new" / "profiler.log").read_text().split("***")
    assert json.loads(first) == {"perf_result": {"FPS": 1.0}, "running_condition": {"thread_num": 2}}
    assert json.loads(second) == document
    with (tmp_path / "new" / "profiler.csv").open() as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    assert [(row["name"], row["processor"], row["count"]) for row in rows] == [
        ("a", "BPU", "2"),
        ("soft", "DSP", "2"),
        ("b", "BPU", "2"),
    ]

    profile.clear()
    assert profile.document() == {"model_latency": {}, "processor_latency": {}, "task_latency": {}}


def spread_of(averages: list[float]) -> tuple[Rounds, float | None]:
    rounds = Rounds(2, 5.0)
    for average in averages:
        rounds.add(average - 0.5)
        rounds.add(average + 0.5)
    return rounds, rounds.spread_percent


def test_rounds_end_when_their_averages_agree() -> None:
    rounds, spread = spread_of([10.0] * 5)
    assert (rounds.count, spread, rounds.is_open) == (5, 0.0, False)
    assert spread_of([10.0] * 4)[0].is_open
    assert spread_of([10.0])[1] is None
    assert spread_of([5.0, 15.0] * 5)[0].is_open
    assert not spread_of([1.0, 100.0] * (MAX_ROUNDS // 2))[0].is_open


@each("count, quantile", [(5, 2.776), (10, 2.262), (30, 2.045)])
def test_the_spread_has_the_quantile_of_student(count: int, quantile: float) -> None:
    averages = [100.0 + (at % 2) for at in range(count)]
    expected = 100 * quantile * np.std(averages, ddof=1) / count**0.5 / np.mean(averages)
    assert spread_of(averages)[1] == pytest.approx(expected, rel=0.02)


LIMITS = Limits(0.999, 0.01)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=30))
def test_likeness_against_the_definition(pairs: list[tuple[float, float]]) -> None:
    here, reference = (np.array([pair[side] for pair in pairs]).reshape(1, -1) for side in (0, 1))
    found = likeness("n", "Op", "v", here, reference, LIMITS)
    errors = np.abs(here - reference)
    assert found.largest_error == errors.max()
    assert errors[found.where] == errors.max()
    if (here == reference).all():
        assert (found.cosine, found.differs) == (1.0, False)
    if errors.max() > 0.011 * np.abs(reference).max():
        assert found.differs


@each(
    "here, reference, differs",
    [
        ([1, np.nan], [1, np.nan], False),
        ([1, np.inf], [1, np.inf], False),
        ([0, 0], [0, 0], False),
        ([1, np.nan], [1, 2], True),
        ([1, 2], [1, np.nan], True),
        ([1, np.inf], [1, 2], True),
        ([0, 0], [1e-9, 0], True),
        ([2, 2], [1, 1], True),
        ([], [], False),
    ],
)
def test_likeness_of_special_values(here: list[float], reference: list[float], differs: bool) -> None:  # noqa: FBT001 - of a table
    found = likeness("n", "Op", "v", np.array(here), np.array(reference), LIMITS)
    assert found.differs == differs
    json.dumps(found.document(), allow_nan=False)
