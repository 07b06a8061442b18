"""``hbrt estimate MODEL.onnx``: the time of a model's run on accelerators, layer by layer. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from hbrt.accelerators.chips import ALIASES, assumed, chip_named, chips, run_of
from hbrt.accelerators.layer import Layer
from hbrt.cli.tables import Column, Table, most_of, number, time_of_us
from hbrt.findings.text import counted
from hbrt.lazy import how_to_install
from hbrt.profiles.profile import active, find, packaged
from hbrt.profiles.timeline import shares
from hbrt.settings import rounded

SUFFIX: Final = ".onnx"
MAX_LAYERS: Final = 10
"""The slowest layers that are shown of a board; --json has all."""


def boards_of(names: Sequence[str] | None) -> Sequence[str]:
    """The boards to estimate: the named ones, otherwise the profile's, otherwise all with figures.

    Raises:
        click.UsageError: one has no figures.
    """
    if names is None:
        name = active().chip
        return [name] if name in chips() or name in ALIASES else [*chips(), *({name} & assumed().keys())]
    for name in names:
        if chip_named(name) is None:
            raise click.UsageError(
                f"Models cannot be estimated for {name!r}: no parameters are fitted or assumed. Fitted are "
                f"{', '.join([*chips(), *ALIASES])}; assumed {', '.join(assumed())}."
            )
    return names


def document_of_model(file: Path, names: Sequence[str] | None) -> dict[str, Any]:
    """Estimate the time of a model's run on boards, as plain data.

    Args:
        file: The ONNX model.
        names: Of the boards; None for the profile's or, without one, all.

    Raises:
        click.UsageError: it cannot be read, has open sizes, or a board is not known.
    """
    layers, boards = _layers_of(file), boards_of(names)
    if not layers:
        raise click.UsageError(f"{file} has no layer that an accelerator computes.")
    return {
        "what": str(file),
        "precision": " and ".join(sorted({one.precision for one in layers if one.macs})) or "int8",
        "macs": sum(one.macs for one in layers),
        "weights": sum(one.weight_bytes for one in layers),
        "largest_feature": max(one.output.elements * one.feature_bits / 8 for one in layers),
        "boards": [_estimate(layers, name) for name in boards],
    }


def parts_shown(document: dict[str, Any]) -> Iterator[object]:
    """The tables and lines for a document from ``document_of_model``."""
    boards = document["boards"]
    yield Table(_BOARDS, boards)
    slowest = boards[0]
    layers = counted(len(slowest["layers"]), "layer")
    yield (
        f"\n{Path(document['what']).name}: {layers}, {rounded(document['macs'] / 1e6)} M "
        f"multiplications, {rounded(document['weights'] / 1e6)} MB of weights, the largest feature "
        f"{rounded(document['largest_feature'] / 1e6)} MB; modeled for {document['precision']} on one core, "
        "all layers on the accelerator, nothing else on the DDR; all cores share the DDR, by assumption. Where "
        "nothing else is, 90% of published figures lie in such a range of fits that have not seen the network's family "
        "(docs/accuracy.md)."
    )
    for one in boards:
        if one["assumed"]:
            yield f"Assumed for {one['board']}, not fitted: {one['assumed']}."
    yield f"\nThe slowest layers on {slowest['board']}:"
    columns = (
        Column("LAYER", "name"),
        Column("KIND"),
        number("TIME", lambda one: time_of_us(one["us"])),
        number("SHARE", lambda one: f"{one['us'] / slowest['run_us']:.0%}"),
        Column("BOUND BY", "bound"),
    )
    yield Table(columns, sorted(slowest["layers"], key=lambda one: -one["us"])[:MAX_LAYERS])


def _layers_of(file: Path) -> Sequence[Layer]:
    try:
        import onnx

        from hbrt.accelerators.onnx_layers import UnknownSizesError, layers_of_model
    except ImportError as error:
        raise click.UsageError(f"A model needs the package onnx ({error}); {how_to_install('dnn')}.") from None
    try:
        return layers_of_model(onnx.load(str(file), load_external_data=False))
    except UnknownSizesError as error:
        raise click.UsageError(f"{file}: {error}") from None
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - onnx raises what protobuf and its checks do
        raise click.UsageError(f"{file} is not an ONNX model, or is damaged: {error}") from None


def _estimate(layers: Sequence[Layer], name: str) -> dict[str, Any]:
    run = run_of(layers, name)
    moved = sum(one.feature_bytes + one.weight_bytes for one in layers)
    parts = run.times._fields[1:]
    bounds = {"run": run.us - float(run.times.us.sum()), **dict.fromkeys(parts, 0.0)}
    rows = []
    for at, layer in enumerate(layers):
        one_us, bound = float(run.times.us[at]), run.times.bound(at)
        bounds[bound] += one_us
        of_parts = {f"{part}_us": float(getattr(run.times, part)[at]) for part in parts}
        rows.append({"name": layer.name, "kind": layer.kind, "us": one_us, "bound": bound, **of_parts})
    return {
        "board": name,
        "assumed": run.why,
        "run_us": run.us,
        "low_us": run.low_us,
        "high_us": run.high_us,
        "frames_per_s": 1_000_000 / run.us,
        "ddr_mb_per_s": moved / run.us,
        **_all_cores(name, run.us, moved / run.us),
        "bounds": {part: part_us / run.us for part, part_us in bounds.items()},
        "layers": rows,
    }


def _all_cores(name: str, run_us: float, bytes_per_us: float) -> dict[str, Any]:
    """How many cores the board has, and the frames per second of all of them, assuming that they share its DDR."""
    if name not in packaged():
        return {"cores": 1, "all_cores_per_s": 1_000_000 / run_us}
    profile = find(name)
    cores = profile.whole(f"cores.{profile.accelerator}.count")
    share = shares([bytes_per_us] * cores, profile.number("ddr.mb_per_s"))[0]
    return {"cores": cores, "all_cores_per_s": cores * share * 1_000_000 / run_us}


_BOARDS: Final = (
    Column("BOARD"),
    number("A RUN", lambda one: time_of_us(one["run_us"])),
    number("90% FROM", lambda one: time_of_us(one["low_us"])),
    number("TO", lambda one: time_of_us(one["high_us"])),
    number("FRAMES/S", lambda one: rounded(one["frames_per_s"])),
    number("ALL CORES", lambda one: f"{rounded(one['all_cores_per_s'])} of {one['cores']}"),
    number("DDR", lambda one: f"{rounded(one['ddr_mb_per_s'] / 1000)} GB/s"),
    Column("MOST OF IT", lambda one: most_of(one["bounds"])),
)
