"""Tables of docs/status-codes.md and docs/settings.md: status codes, their exceptions, exit codes, settings."""

from __future__ import annotations

from collections.abc import Callable

from arm_client.errors import error_for
from hbrt import settings
from hbrt.cli.exits import Exit
from hbrt.status import Status
from tools.markdown import table

_SOURCES = {"public": "public", "emulator": "emulator's choice"}
_EXITS = {
    Exit.GOOD: "good",
    Exit.FAILED: "your op, image or check failed",
    Exit.USAGE: "wrong usage: bad options, start when running, stop when offline, no such board",
    Exit.BROKEN: "the tool or its environment is broken: the daemon has ended, no permission, a full disk",
    Exit.UNCHECKED: "`hbrt run`: a process of the program is still attached, so its mistakes are unknown",
    Exit.TIME_LIMIT: "a time limit was reached, as timeout(1)",
    Exit.INTERRUPTED: "Ctrl-C, where it is not how the verb is ended: that of `log -f`, `start --foreground` and "
    "`relay` gives 0",
    Exit.UNREAD: "the reader of the output has closed it, as `head` does",
}


def status_codes() -> str:
    """Every status code once."""
    rows = [(f"`{code.name}`", int(code), _SOURCES[code.source], code.sentence) for code in Status]
    return table(("name", "value", "number", "meaning"), rows)


def exceptions() -> str:
    """Which exception of the Python habits carries which status."""
    by_kind: dict[str, list[str]] = {}
    for code in Status:
        if code and not code.name.endswith("_TIMEOUT"):
            by_kind.setdefault(type(error_for(code, "")).__name__, []).append(f"`{code.name}`")
    by_kind["OpFailedError"].append("any value of the op's own")
    return table(("exception", "status"), [(f"`{kind}`", ", ".join(codes)) for kind, codes in sorted(by_kind.items())])


def exit_codes() -> str:
    """Exit codes of every verb of ``hbrt``."""
    return table(("exit code", "meaning"), [(int(code), _EXITS[code]) for code in Exit])


def setting_rows() -> str:
    """Every environment variable."""
    rows = []
    for setting in settings.TABLE:
        kind, _, values = setting.kind.partition(":")
        kind = " or ".join(f"`{value}`" for value in values.split("|")) if values else kind
        rows.append((f"`{setting.name}`", kind, f"`{setting.default}`" if setting.default else "-", setting.help))
    return table(("name", "type", "default", "meaning"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "status-codes": status_codes,
    "exceptions": exceptions,
    "exit-codes": exit_codes,
    "settings": setting_rows,
}
