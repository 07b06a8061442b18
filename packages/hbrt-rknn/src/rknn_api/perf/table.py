"""The table of layers printed by eval_perf, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hbrt.borders.printable import printable
from rknn_api.perf.cost import Cost
from rknn_api.perf.layers import Layer, Shape

_NOTE = (
    "Modeled, not measured: times by parameters fitted to published times of whole models (docs/accuracy.md), cycles "
    "by published rates of the NPU and the DDR; the CPU's layers have none."
)


def layer_table(layers: Sequence[Layer], costs: Sequence[Cost]) -> str:
    """The table, with totals and a ranking of op types.

    Args:
        layers: Layers of the model.
        costs: Cost of each.

    Source: RKNN SDK advanced guide (chapter 5), 5.3.2
    """
    count = len(costs[0].shares)
    cores = "/".join(map(str, range(count)))
    head = ["ID", "OpType", "DataType", "Target", "InputShape", "OutputShape", "DDR Cycles", "NPU Cycles"]
    head += ["Total Cycles", "Time(us)", "MacUsage(%)"]
    head += [f"WorkLoad({cores})-ImproveTheoretical"] if count > 1 else []
    head += ["RW(KB)", "FullName"]
    rows = [_row(at, layer, cost) for at, (layer, cost) in enumerate(zip(layers, costs, strict=True), 1)]
    total = sum(cost.time_us for cost in costs)
    moved = sum(cost.rw_bytes for cost in costs)
    return "\n".join(
        [
            "Network Layer Information Table",
            _NOTE,
            *_aligned([head, *rows]),
            f"Total Operator Elapsed Time(us), modeled: {total:.0f}",
            f"Total Memory RW Amount(MB), modeled: {moved / (1 << 20):.2f}",
            "",
            "Operator Time Consuming Ranking Table, modeled",
            *_aligned(_ranking(layers, costs, total)),
        ]
    )


def _row(at: int, layer: Layer, cost: Cost) -> list[str]:
    is_npu = layer.target == "NPU"
    usage = (f"{cost.mac_usage:.2f}" if layer.macs else "\\") if is_npu else ""
    row = [str(at), layer.op_type, layer.dtype, layer.target, _shapes(layer.inputs), _shapes((layer.output,))]
    row += [str(number) if is_npu else "" for number in (cost.ddr_cycles, cost.npu_cycles, cost.total_cycles)]
    row += [f"{cost.time_us:.1f}" if is_npu else "", usage]
    if len(cost.shares) > 1:
        row.append("/".join(f"{share:.1%}" for share in cost.shares) + f" - Up:{cost.improvement:.1%}")
    return [*row, str(cost.rw_bytes // 1024), printable(layer.name)]


def _shapes(shapes: Sequence[Shape]) -> str:
    return ",".join(f"({','.join(map(str, shape))})" for shape in shapes)


def _ranking(layers: Sequence[Layer], costs: Sequence[Cost], total: float) -> list[list[str]]:
    times: dict[str, list[float]] = {}
    for layer, cost in zip(layers, costs, strict=True):
        if layer.target == "NPU":
            times.setdefault(layer.op_type, []).append(cost.time_us)
    rows = [
        [name, str(len(one)), f"{sum(one):.1f}", f"{100 * sum(one) / total if total else 0:.2f}"]
        for name, one in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]
    return [
        ["OpType", "CallNumber", "NPUTime(us)", "TimeRatio(%)"],
        *rows,
        ["Total", str(sum(map(len, times.values()))), f"{total:.1f}", "100.00"],
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
