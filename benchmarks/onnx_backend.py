"""The ONNX project's backend cases through an API and through bare onnxruntime, on this machine, in one go.

    python -m benchmarks.onnx_backend [--api rknn] [--kind node] [--only SUBSTRING] [--markdown]

``hbDNN`` is hbDNNInitializeFromDDR, tensors of hbSysAllocMem and hbDNNInfer; ``rknn`` is load_onnx, build without
quantization and inference of the toolkit's Python names, on NPU cores. Both sides have the same session options
and are compared by the ONNX project's own rules. The nets of the kind "light" have weights of one value a tensor, and
so outputs of one value on any input: they are compared with onnxruntime, bit by bit, with random weights and inputs
too.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import click
import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto

from benchmarks._measure import table
from benchmarks._onnx_cases import (
    KINDS,
    MAX_DIMENSIONS,
    MAX_RKNN_DIMENSIONS,
    RKNN_TYPES,
    TYPES,
    Case,
    Run,
    bare,
    by_rknn,
    cases,
    on_board,
    random_inputs,
    with_random_weights,
)

RANDOM_INPUTS = 2
MIN_DISTINCT = 100
MAX_SHOWN = 150


class Api(NamedTuple):
    """An API that the cases are run by: how, and what it can carry."""

    name: str
    run: Callable[[ModelProto], Run]
    types: frozenset[int]
    most_dimensions: int
    type_name: str


APIS = {
    "hbdnn": Api("hbDNN", on_board, TYPES, MAX_DIMENSIONS, "hbDNNDataType"),
    "rknn": Api("rknn", by_rknn, RKNN_TYPES, MAX_RKNN_DIMENSIONS, "rknn_tensor_type"),
}


@dataclass
class Tally:
    """What became of the cases of one kind."""

    total: int = 0
    carried: int = 0
    board: int = 0
    bare: int = 0
    bare_all: int = 0
    behind: int = 0  # onnxruntime passes, the API does not
    not_carried: Counter[str] = field(default_factory=Counter)
    differs: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the counts of another kind."""
        self.total += other.total
        self.carried += other.carried
        self.board += other.board
        self.bare += other.bare
        self.bare_all += other.bare_all
        self.behind += other.behind
        self.not_carried += other.not_carried
        self.differs += other.differs


def judge(case: Case, tally: Tally, api: Api) -> None:
    """Run one case both ways."""
    tally.total += 1
    bare_why = _why(lambda: case.check(bare(case.model)))
    tally.bare_all += not bare_why
    reason = case.not_carried(api.types, api.most_dimensions)
    if reason:
        tally.not_carried[reason] += 1
        return
    tally.carried += 1
    board_why = _why(lambda: case.check(api.run(case.model)))
    if not board_why and case.kind == "light":
        board_why = _why(lambda: compare_on_random(case, api))
    tally.bare += not bare_why
    tally.board += not board_why
    if bool(bare_why) != bool(board_why):
        side, why = (f"{api.name} fails", board_why) if board_why else ("onnxruntime alone fails", bare_why)
        tally.differs.append(f"{case.name}: {side}: {why}")
        tally.behind += bool(board_why)


def compare_on_random(case: Case, api: Api) -> None:
    """Hold an API to bare onnxruntime bit by bit, with random weights and inputs.

    Raises:
        AssertionError: they differ, or the outputs tell nothing apart.
    """
    model = with_random_weights(case.model, seed=1)
    one, other = bare(model), api.run(model)
    for seed in range(RANDOM_INPUTS):
        inputs = random_inputs(model, seed)
        wanted, found = one(inputs), other(inputs)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            if np.unique(theirs).size < MIN_DISTINCT:
                raise AssertionError(f"The outputs have {np.unique(theirs).size} distinct values; that shows nothing.")


def _why(run: object) -> str:
    try:
        run()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - whatever a case raises is its result
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return ""


def run(kinds: Sequence[str], only: str, api: Api) -> dict[str, Tally]:
    """Run the cases of the kinds whose names have ``only`` in them."""
    tallies = {}
    for kind in kinds:
        tally = Tally()
        for case in cases([kind]):
            if only in case.name:
                judge(case, tally, api)
        tallies[kind] = tally
    return tallies


def report(tallies: dict[str, Tally], api: Api, *, markdown: bool) -> str:
    """The tables, what differs, and the last line."""
    whole = Tally()
    for tally in tallies.values():
        whole.add(tally)
    rows = [
        [kind, *(str(number) for number in (one.total, one.carried, one.board, one.bare, one.bare_all))]
        for kind, one in (*tallies.items(), ("all", whole))
    ]
    head = [
        "kind",
        "cases",
        "carried by the API",
        f"{api.name} passes",
        "onnxruntime passes",
        "onnxruntime passes, of all",
    ]
    reasons = [[reason, str(count)] for reason, count in whole.not_carried.most_common()]
    parts = [
        f"onnx {onnx.__version__}, onnxruntime {ort.__version__}, Python {platform.python_version()}.",
        table(head, rows, markdown=markdown),
        f"Cases with an input or output that {api.type_name} cannot carry, by the first such tensor:",
        table(["type", "cases"], reasons, markdown=markdown),
    ]
    parts.append(f"Cases that onnxruntime passes and {api.name} does not: {whole.behind}.")
    if whole.differs:
        parts.append("What differs:\n\n" + "\n".join(f"- {line}" for line in whole.differs))
    else:
        parts.append(f"Nothing differs: {api.name} passes each case that onnxruntime passes, and no other.")
    parts.append(f"{api.name} {whole.board}, onnxruntime {whole.bare}, cases {whole.carried}")
    return "\n\n".join(parts)


@click.command()
@click.option("--api", "api_name", type=click.Choice([*APIS]), default="hbdnn", help="What runs the cases.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these; all when not given.")
@click.option("--only", default="", help="Only cases with this in their names.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def main(*, api_name: str, kinds: tuple[str, ...], only: str, markdown: bool) -> None:
    """Run the ONNX project's backend cases through an API and through bare onnxruntime."""
    api = APIS[api_name]
    tallies = run(kinds or KINDS, only, api)
    print(report(tallies, api, markdown=markdown))
    sys.exit(any(tally.behind for tally in tallies.values()))


if __name__ == "__main__":
    main()
