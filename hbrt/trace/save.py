"""Write a trace to a file for a viewer; the suffix selects the format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hbrt.errors import WrongUseError
from hbrt.lazy import how_to_install
from hbrt.mailbox.history import EndedTask
from hbrt.trace.chrome import ChromeJson
from hbrt.trace.ring import SUFFIX, Recorded, RingError
from hbrt.trace.sink import Sink
from hbrt.trace.switch import FACTS
from hbrt.trace.tasks import ROLE, tasks_of
from hbrt.trace.timeline import Recording, Source, Written, write

PERFETTO_ENDINGS = (".pftrace", ".perfetto-trace")
ENDINGS = (*PERFETTO_ENDINGS, ".json")


def check_name(file: Path) -> None:
    """Check, before there is anything to write, that a file can be written in the format of its suffix.

    Raises:
        WrongUseError: the suffix is not in ENDINGS, its format needs a package that is not installed, or the directory
            does not exist.
    """
    if file.suffix not in ENDINGS:
        raise WrongUseError(
            f"{file} does not name a format: end it in {', '.join(PERFETTO_ENDINGS)} for Perfetto's own, or in .json "
            "for Chrome's."
        )
    if not file.parent.is_dir():
        raise WrongUseError(f"Cannot write {file}:  no such directory: {file.parent}")
    if file.suffix in PERFETTO_ENDINGS:
        from importlib.util import find_spec

        if find_spec("perfetto") is None:
            raise WrongUseError(
                f"{file}: Perfetto's own format needs the package perfetto; {how_to_install('trace')}. Chrome's JSON "
                "needs nothing, and the same viewers open it: end the name in .json."
            )


def save(directory: Path, file: Path) -> Written:
    """Write the rings of a directory to a file.

    Raises:
        WrongUseError: as for ``check_name``; nothing was traced there, or the file cannot be written.
    """
    return save_recording(*recording_of(directory), file)


def save_recording(recording: Recording, unix_offset_ns: int, file: Path) -> Written:
    """Write a recording to a file atomically; raises like ``save``."""
    check_name(file)
    new = file.with_name(f"{file.name}.{os.urandom(3).hex()}.new")  # secrets would load OpenSSL
    try:
        try:
            with new.open("xb") as out:
                written = write(recording, _sink(file, out, unix_offset_ns))
            os.replace(new, file)  # noqa: PTH105 - as elsewhere
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise WrongUseError(f"Cannot write {file}:  {error.strerror}.") from None
    return written


def _sink(file: Path, out: BinaryIO, unix_offset_ns: int) -> Sink:
    if file.suffix not in PERFETTO_ENDINGS:
        return ChromeJson(out)
    from hbrt.trace.perfetto import Perfetto

    return Perfetto(out, unix_offset_ns)


def recording_of(directory: Path) -> tuple[Recording, int]:
    """Return the contents of a directory's rings, and the offset from their clock to the time of day in ns.

    Raises:
        WrongUseError: nothing was traced there.
    """
    facts: dict[str, Any] = {"ops": {}, "programs": {}}
    try:
        rings = [Recorded(path) for path in sorted(directory.glob(f"*{SUFFIX}"))]
        for path in sorted(directory.glob(f"*{FACTS}")):  # one per board
            found = json.loads(path.read_text(encoding="utf-8"))
            facts = found | {name: facts[name] | found[name] for name in ("ops", "programs")}
    except (OSError, RingError, ValueError, KeyError, TypeError) as error:
        raise WrongUseError(f"Cannot read the trace in {directory}: {error}") from None
    if not rings:
        raise WrongUseError(f"No trace in {directory}.")
    tasks: list[Callable[[], Iterator[EndedTask]]] = []
    sources = []
    lost = 0
    threads: dict[int, dict[int, str]] = {}  # names by process: only one of its files has them
    for ring in rings:
        threads.setdefault(ring.pid, {}).update(ring.threads)
        facts["ops"] |= ring.ops
    for ring in rings:
        if ring.role.startswith(ROLE):
            tasks.append(partial(tasks_of, ring))
            lost += ring.count_lost()
        else:
            sources.append(Source(ring.role, ring.program, ring.pid, threads[ring.pid], ring.events, ring.first_ns()))
            lost += ring.lost
    sources.sort(key=lambda one: one.first_ns)
    recording = Recording(
        facts.get("board", directory.name),
        tasks,
        sources,
        {int(cmd): name for cmd, name in facts["ops"].items()},
        {int(pid): name for pid, name in facts["programs"].items()},
        facts.get("clock_hz", 648_000_000),
        lost,
        {int(core): kind for core, kind in facts.get("kinds", {}).items()},
    )
    return recording, facts.get("unix_offset_ns", 0)
