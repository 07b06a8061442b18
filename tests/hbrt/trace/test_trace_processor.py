"""Perfetto's own trace processor on our traces: it finds nothing wrong with them, and answers in SQL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from hbrt.control.ask import ask
from hbrt.trace.save import save

COUNT = 20
ON_TRACKS = (  # a track of Chrome's JSON is a thread
    "create view shown as select s.*, coalesce(t.name, h.name) as track from slice s join track t on s.track_id = t.id "
    "left join thread_track k on k.id = t.id left join thread h using (utid)"
)
OPS = "select count(*) from shown where name = 'softmax' and depth = 0"
ARROWS = (
    "select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id "
    "where a.name = '{}' and b.name = '{}' and a.ts <= b.ts"
)
WAITS = "select count(*) from slice where name = 'DMA wait'"
NESTED = (
    "select count(*) from slice c join slice p on c.parent_id = p.id where c.name = 'DMA wait' and p.name = 'softmax'"
)
OVERLAP = (
    "select count(*) from shown d join shown c on d.ts < c.ts + c.dur and c.ts < d.ts + d.dur "
    "where d.name = 'copy' and d.track = 'core 0 DMA' and c.name = 'compute' and c.track = 'core 0 ops'"
)
COUNTER = "select max(value), min(value) from counter c join track t on c.track_id = t.id where t.name like '{}'"


@pytest.fixture
def traced(dsp_board: Board) -> Path:
    """The directory of a trace of some softmaxes on a board, by a program that was attached before."""
    board = dsp_board.session.link.paths
    ask(board, "trace", do="on", events=1 << 16)
    for _ in range(COUNT):
        nn.softmax(dsp_board, np.zeros((1, 60_000), np.float32))
    return Path(ask(board, "trace", do="off", events=0)["directory"])


@pytest.mark.long
@pytest.mark.parametrize("ending", [".pftrace", ".json"])
def test_a_trace_answers_in_sql(traced: Path, tmp_path: Path, ending: str) -> None:
    from tests.hbrt.trace.processor import TraceProcessor  # imports pandas: half a second of collecting

    file = tmp_path / f"t{ending}"
    save(traced, file)
    trace = TraceProcessor(file)
    try:
        assert trace.troubles() == []
        trace.ask(ON_TRACKS)
        assert trace.ask(OPS) == [(2 * COUNT,)]  # measured and modeled
        for begin, end in (("submit softmax", "claim"), ("claim", "softmax"), ("softmax", "end of softmax")):
            assert trace.ask(ARROWS.format(begin, end)) == [(COUNT,)]
        assert trace.ask(NESTED) == trace.ask(WAITS) != [(0,)]
        assert trace.ask(OVERLAP)[0][0] > 0
        assert trace.ask(COUNTER.format("core _ TCM bank 0, bytes%"))[0][0] > 0
        assert trace.ask(COUNTER.format("waiting tasks, priority 0%")) == [(1, 0)]
    finally:
        trace.close()
