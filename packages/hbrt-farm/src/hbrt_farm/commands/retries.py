"""A pytest plugin that reruns a test once if its board or its process died, and notes this in the summary.

``hbrt farm test`` loads it, in pytest and in each of pytest-xdist's processes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.junitxml import xml_key
from _pytest.runner import runtestprotocol

PROPERTY = "board_died"
_RETRIED = "retried"
_WHY = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Report to the main process what died."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Detect a failed test whose board has died."""
    report = yield
    if report.failed and call.excinfo is not None and _has_lost(item, call.excinfo.value):
        item.stash.setdefault(_WHY, str(call.excinfo.value).strip().split("\n")[0] or call.excinfo.typename)
    return report


def _has_lost(item: pytest.Item, error: BaseException) -> bool:
    """Whether a test failed because its board, or a board from one of its fixtures, was lost."""
    if "arm_client.client" not in sys.modules:  # a test without boards
        return False
    from arm_client.client import Board
    from arm_client.errors import BoardLostError

    boards = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Board)]
    return isinstance(error, BoardLostError) or any(board.session.link.is_lost() for board in boards)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test as pytest does, and once more if its board has died."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if (why := item.stash.get(_WHY, None)) is not None:
        item._initrequest()  # type: ignore[attr-defined]  # noqa: SLF001 - as pytest-rerunfailures does
        item.user_properties.append((PROPERTY, why))
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class Told:
    """What the main process knows about boards and processes that died."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._why: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a report about a test's board."""
        if why := dict(report.user_properties).get(PROPERTY):
            self._why[report.nodeid] = f"its board died: {why}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """Rerun in another process the test during which a process died."""
        if crashitem in self._why:
            return
        with contextlib.suppress(NotImplementedError):  # --dist loadscope, loadfile and each cannot
            sched.mark_test_pending(crashitem)
            self._why[crashitem] = "its process died"
            report.outcome = _RETRIED  # type: ignore[assignment]

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A process that died is neither a failure nor a test."""
        return (_RETRIED, "R", "RETRIED") if report.outcome == _RETRIED else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Drop entries without a result from the JUnit XML: the first run of a test that was rerun."""
        if (xml := self._config.stash.get(xml_key, None)) is not None:
            xml.node_reporters_ordered[:] = [
                one for one in xml.node_reporters_ordered if "name" in getattr(one, "attrs", {"name"})
            ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the tests that were rerun."""
        if self._why:
            terminalreporter.section("tests that were rerun")
        for nodeid, why in self._why.items():
            terminalreporter.line(f"{nodeid}: {why}")
