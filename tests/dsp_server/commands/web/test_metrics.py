"""The metrics endpoint's text, of a document without a board."""

from __future__ import annotations

from dsp_server.commands.web.metrics import metrics_of


def test_labels_are_escaped_and_a_board_that_has_gone_is_down() -> None:
    assert metrics_of({"board": 'a"b\\\n', "gone": "why"}).splitlines() == [
        "# HELP hbrt_up Whether the board is running.",
        "# TYPE hbrt_up gauge",
        'hbrt_up{board="a\\"b\\\\\\n"} 0',
    ]
