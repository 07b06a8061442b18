"""Layers of published networks, the time of a layer, published figures, and how the fit meets those held out."""

from __future__ import annotations

import numpy as np
import pytest

from arm_client.commands.estimate.accuracy import goals
from hbrt.accelerators.chips import assumed, chip_named, chips, family_of_chip, run_of
from hbrt.accelerators.figures import (
    WITHIN,
    Figure,
    Judged,
    figures,
    judged,
    judged_wide,
    order_of,
    spread_of,
    within_90,
)
from hbrt.accelerators.layer import MOVE, Net, Tensor
from hbrt.accelerators.networks import NETWORKS, layers_of
from hbrt.accelerators.time_model import Chip, run_us, times_of, work_of
from tests.each import each

CHIP = Chip(1000, 100, 50, 64, 32, 16, 0.5, 1, 2, 5, 32, 16)


@each(
    "name, gigamacs, megaweights",
    [
        ("yolov5s", 8.25, 7.2),
        ("yolov5su", 12.0, 9.1),
        ("yolov8n", 4.35, 3.2),
        ("yolov8x", 128.9, 68.2),
        ("yolo11m", 34.0, 20.1),
        ("yolov10b", 46.0, 19.1),
        ("yolox_s", 13.4, 9.0),
        ("yolov7", 52.4, 36.9),
        ("resnet50", 4.1, 25.5),
        ("resnext50_32x4d", 4.25, 25.0),
        ("mobilenetv2", 0.3, 3.5),
        ("googlenet", 1.5, 6.6),
        ("repvgg_b1g2", 8.8, 41.4),
        ("resnext101_32x8d", 16.4, 88.7),
        ("wide_resnet50_2", 11.4, 68.9),
        ("densenet121", 2.83, 8.0),
        ("regnet_x_3_2gf", 3.18, 15.3),
        ("clip_images", 4.4, 87.8),
        ("mobilenetv3_large_100", 0.22, 5.5),
        ("mobilenetv4_conv_small", 0.19, 3.8),
        ("mobilenetv4_conv_medium", 0.84, 9.7),
        ("yolov9t", 4.1, 2.1),
        ("yolov9s", 13.4, 7.2),
        ("yolov9m", 38.4, 20.1),
        ("yolov9c", 51.4, 25.5),
    ],
)
def test_a_network_has_the_size_that_its_authors_publish(name: str, gigamacs: float, megaweights: float) -> None:
    layers = layers_of(name)
    assert sum(one.macs for one in layers) / 1e9 == pytest.approx(gigamacs, rel=0.05)
    assert sum(one.weights for one in layers) / 1e6 == pytest.approx(megaweights, rel=0.05)


@each("name, megaweights", [("yolo12n", 2.6), ("yolo12m", 20.2), ("yolo12x", 59.1)])
def test_yolo12_has_the_weights_that_its_authors_publish(name: str, megaweights: float) -> None:
    assert sum(one.weights for one in layers_of(name)) / 1e6 == pytest.approx(megaweights, rel=0.01)


def test_the_longer_of_computing_and_moving_decides_where_they_overlap() -> None:
    net = Net()
    x = net.conv(Tensor(32, 10, 10), 16, act="relu")  # 51 200 multiplications, 4 800 elements
    net.conv(x, 8, act="silu")  # groups of 32 and 16 channels: 4 times its multiplications
    net.pool(x, 2)
    work = work_of(net.layers, CHIP.input_group, CHIP.output_group)
    times = times_of(work, CHIP)
    assert times.compute == pytest.approx([51.2, 51.2, 0])
    assert times.features == pytest.approx([75, 37.5, 0.5 * 2000 / 64])
    assert times.us == pytest.approx([75 + 16 + 2, 51.2 + 50 + 2, 0.5 * 2000 / 64 + 2])
    assert [times.bound(at) for at in range(3)] == ["features", "compute", "features"]
    assert run_us(net.layers, CHIP) == pytest.approx(5 + times.us.sum())
    without = times_of(work, CHIP._replace(overlap=0))
    assert np.all(without.us >= times.us)


def test_kinds_have_rates_of_their_own() -> None:
    net = Net()
    x = Tensor(64, 4, 4)
    net.conv(x, 64, 3, groups=64, act="")
    net.matmul(x, x, Tensor(1, 16, 16), 64)
    work = work_of(net.layers, 32, 32)
    assert times_of(work, CHIP).compute == pytest.approx([64 * 16 * 9 / 100, 256 * 64 / 50])
    assert net.move(x, output=x) == x
    assert net.layers[-1].kind == MOVE


def test_the_tables_have_rows_enough_and_each_has_a_source() -> None:
    known = [one for one in figures() if one.is_known]
    assert len(known) >= 150
    assert len({one.model for one in known}) >= 40
    assert all(one.published_us > 0 and " 20" in one.source.replace("(", " ") for one in figures())
    assert all(one.clock for one in figures())
    assert len({(one.model, one.chip) for one in figures()}) == len(figures())
    held_out = sum(one.is_held_out for one in known)
    assert 0.4 < held_out / len(known) < 0.6


def test_the_held_out_rows_are_within_the_band() -> None:
    rows = tuple(one for one in judged() if one.figure.is_held_out)
    assert [one.what for one in goals(rows) if not one.is_met] == []
    assert all(0 < spread_of(name) < 0.5 for name in chips())
    assert chip_named("rk3568") == chip_named("rk3566") is not None
    assert chip_named("none") is None


def test_the_range_of_numbers_of_16_bits_holds_the_published_times_of_float16() -> None:
    rows = judged_wide()
    assert {one.figure.precision for one in rows} == {"fp16"}
    assert not any(one.figure.is_known for one in rows)
    runs = [run_of(one.figure.layers, one.figure.chip) for one in rows]
    assert [one.us for one in runs] == [one.modeled_us for one in rows]
    inside = [run.low_us <= one.figure.published_us <= run.high_us for run, one in zip(runs, rows, strict=True)]
    assert sum(inside) >= WITHIN * len(rows)
    assert all(one.high_us == pytest.approx(one.us / (1 - within_90(rows)), rel=0.01) for one in runs)
    layers = layers_of("resnet50")
    run = run_of(layers, "rk3588")
    mixed = run_of([layers[0]._replace(feature_bits=16), *layers[1:]], "rk3588")
    assert mixed.high_us / mixed.us < 1.5 * run.high_us / run.us  # one layer of 16 bits is not the whole run


def test_a_chip_without_figures_is_assumed_and_its_range_holds_its_factors() -> None:
    layers = layers_of("resnet50")
    run, like = run_of(layers, "j5"), run_of(layers, "x5")
    assert run.why
    assert not like.why
    slow, fast = (run_us(layers, assumed()["j5"].chip(at)) for at in (0, 2))
    assert run.low_us < fast < run.us < slow < run.high_us
    assert like.low_us == pytest.approx(like.us / (1 + family_of_chip("x5").within_90))
    wide = [one._replace(feature_bits=16, weight_bits=16) for one in layers]
    slower = run_of(wide, "x5")
    assert like.us < slower.us < 8 * like.us
    assert "16 bits" in slower.why
    assert slower.low_us < slower.us / (1 + family_of_chip("x5").within_90)


def test_a_band_tells_when_it_is_missed() -> None:
    good, bad = (Judged(Figure(f"m{us}", "c", "int8", 100, "here"), us) for us in (100, 150))
    assert all(one.is_met for one in goals((good, good)))
    assert next(one.what for one in goals((good, bad)) if not one.is_met) == "median error"
    assert order_of((good, bad), "chip") == 1.0
    faster = Judged(Figure("m", "c", "int8", 50, "here"), 200)
    assert order_of((good, faster), "chip") == 0.0


def test_every_network_can_be_built() -> None:
    for name in NETWORKS:
        assert all(one.output.elements > 0 for one in layers_of(name)), name
