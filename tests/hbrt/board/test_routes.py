"""HBRT_ROUTE: which board runs a command."""

from __future__ import annotations

import pytest

from hbrt.board.routes import Routing, parse_routing, route_of, routes_of
from hbrt.settings import BadSettingError
from tests.each import each


def test_a_command_has_the_board_of_its_entry() -> None:
    routes = routes_of("0x1000-0x10ff=tcp://a:1, 1024=farm://b:2/pool,0x2000=tcp://a:1")
    assert list(map(str, routes)) == ["0x400=farm://b:2/pool", "0x1000-0x10ff=tcp://a:1", "0x2000=tcp://a:1"]
    assert [str(route_of(cmd, routes)) for cmd in (0x400, 0x1000, 0x10FF)] == list(map(str, [*routes[:2], routes[1]]))
    assert [route_of(cmd, routes) for cmd in (0, 0x401, 0xFFF, 0x1100)] == [None] * 4
    assert routes_of("") == routes_of(" , ") == ()
    assert parse_routing("0x2000=tcp://a:1, compare") == Routing(routes[2:], compares=True)
    assert parse_routing("0x2000=tcp://a:1") == Routing(routes[2:])


@each(
    "text, why",
    [
        ("0x400", "HBRT_ROUTE has '0x400'; write COMMAND=ADDRESS or FIRST-LAST=ADDRESS"),
        ("softmax=tcp://a:1", "HBRT_ROUTE has 'softmax=tcp://a:1'; write COMMAND=ADDRESS"),
        ("0x400-0x3ff=tcp://a:1", "commands must be 0 to 0xfffe, the smaller one first"),
        ("0xffff=tcp://a:1", "commands must be 0 to 0xfffe"),
        ("compare", "HBRT_ROUTE has 'compare' and no route; write COMMAND=ADDRESS"),
        ("0x400=tcp://a:1,compares", "HBRT_ROUTE has 'compares'; write COMMAND=ADDRESS"),
        ("0x400=default", "whose board is not an address: write tcp://HOST:PORT"),
        ("0x400=tcp://a", "'tcp://a' is not a relay address"),
        ("0x400=tcp://a:1,0x3ff-0x500=tcp://b:1", "sends command 0x400 to two boards: 0x3ff-0x500=tcp://b:1 and 0x400"),
    ],
)
def test_a_value_that_is_none_is_refused_with_the_value(text: str, why: str) -> None:
    with pytest.raises(BadSettingError) as caught:
        parse_routing(text)
    assert why in str(caught.value)
