"""The campaign's option, its boards, and the table that it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults import tracer
from tests.faults.points import everywhere, of
from tests.faults.world import Nursery, World
from tests.shared import Once
from tests.waiting import until

_COLUMNS = ("POINT", "WHAT WAS ABOUT TO HAPPEN", "HOW", "OUTCOME")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--faults``."""
    parser.addoption(
        "--faults",
        choices=["cover", "all"],
        default="cover",
        help="cover: each actor dies at each numbered point. all: at every line of the same functions in Python, too.",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``point`` to the tests of each actor (``actor = "core"`` in their module)."""
    if "point" in metafunc.fixturenames:
        actor: str = metafunc.module.actor
        is_all = metafunc.config.getoption("--faults", "cover") == "all"
        points = [*of(actor), *(everywhere(actor) if is_all and actor in {"core", "client"} else ())]
        chosen = getattr(metafunc.function, "points", lambda _: True)
        metafunc.parametrize("point", [p for p in points if chosen(p)], ids=lambda p: p.number)


@pytest.fixture(scope="module")
def environment(request: pytest.FixtureRequest, once: Once) -> Iterator[pytest.MonkeyPatch]:
    """No spinning: who waits sleeps, so that every point is come by each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HBRT_SPIN_US", "0")
        patch.setenv(tracer.MODULE, str(once("_mailbox.abi3.so", tracer.build)))
        patch.setenv(tracer.DIRECTORY, "")
        if request.config.getoption("--faults", "cover") == "all":
            patch.setenv(tracer.EVERYWHERE, "1")
        yield patch


@pytest.fixture(scope="module")
def world(environment: pytest.MonkeyPatch) -> Iterator[World]:
    """A board for a module's tests; none of them may leave it less than whole."""
    made = World()
    try:
        assert made.serves() == []  # opens this process's control connection, too
        made.settle()
        before = made.open_files()
        yield made
        made.tokens.clear()
        until(lambda: made.open_files() <= before, "as few descriptors of the daemon as before")
    finally:
        made.close()


@pytest.fixture(scope="module")
def clients(world: World) -> Iterator[Nursery]:
    """Clients of that board."""
    made = Nursery(world)
    yield made
    made.close()


@pytest.fixture
def note(record_property: Callable[[str, Any], None]) -> Callable[..., None]:
    """``note(point, how, outcome)``: a row of the table."""

    def add(number: str, what: str, how: str, outcome: str) -> None:
        record_property("fault", [number, what, how, outcome])

    return add


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table when output is not captured (-s)."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    rows = [value for report in reports for name, value in getattr(report, "user_properties", []) if name == "fault"]
    if not rows or config.getoption("capture") != "no":
        return
    rows.sort()
    widths = [max(len(row[at]) for row in [_COLUMNS, *rows]) for at in range(4)]
    terminalreporter.section("who died where, and what became of it")
    for row in [_COLUMNS, *rows]:
        terminalreporter.write_line(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )
