"""A timeline as Chrome's JSON.

Source: Trace Event Format, Event Descriptions, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from hbrt.trace.sink import Facts, Flow, Sink

_NS_IN_US = 1000
_FIRST_GROUP = 1 << 22  # above the process ids of Linux
_FIRST_TRACK = 1 << 22


class ChromeJson(Sink):
    """Writes the file event by event."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._groups: list[int] = []  # their process ids in the file
        self._tracks: list[tuple[int, int, str]] = []  # process id, thread id, name
        self._has_events = False
        file.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')

    def group(self, name: str, pid: int = 0) -> int:
        """See ``Sink.group``."""
        self._groups.append(pid or _FIRST_GROUP + len(self._groups))
        at = {"pid": self._groups[-1], "tid": 0}
        self._write({"ph": "M", "name": "process_name", **at, "args": {"name": name}})
        self._write({"ph": "M", "name": "process_sort_index", **at, "args": {"sort_index": len(self._groups)}})
        return len(self._groups) - 1

    def track(self, name: str, group: int, tid: int = 0) -> int:
        """See ``Sink.track``."""
        number = self._new(name, group, tid)
        pid, tid, _ = self._tracks[number]
        self._write({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        self._write({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": number}})
        return number

    def counter(self, name: str, group: int) -> int:
        """See ``Sink.counter``."""
        return self._new(name, group, 0)

    def slice(
        self, track: int, name: str, start_ns: int, end_ns: int, facts: Facts | None = None, flow: Flow | None = None
    ) -> None:
        """See ``Sink.slice``."""
        place = self._place(track, start_ns)
        more = {"args": facts} if facts else {}
        self._write({"ph": "X", "name": name, "dur": max(end_ns - start_ns, 0) / _NS_IN_US, **place, **more})
        self._arrow(place, flow)

    def instant(self, track: int, name: str, at_ns: int, facts: Facts | None = None, flow: Flow | None = None) -> None:
        """Like ``Sink.instant``; a flow needs a slice."""
        if flow is not None:
            self.slice(track, name, at_ns, at_ns, facts, flow)
            return
        more = {"args": facts} if facts else {}
        self._write({"ph": "i", "s": "t", "name": name, **self._place(track, at_ns), **more})

    def value(self, counter: int, at_ns: int, value: int) -> None:
        """See ``Sink.value``."""
        name = self._tracks[counter][2]
        self._write({"ph": "C", "name": name, **self._place(counter, at_ns), "args": {"value": value}})

    def close(self) -> None:
        """See ``Sink.close``."""
        self._file.write(b"\n]}\n")

    def _new(self, name: str, group: int, tid: int) -> int:
        self._tracks.append((self._groups[group], tid or _FIRST_TRACK + len(self._tracks), name))
        return len(self._tracks) - 1

    def _place(self, track: int, at_ns: int) -> dict[str, Any]:
        pid, tid, _ = self._tracks[track]
        return {"pid": pid, "tid": tid, "ts": at_ns / _NS_IN_US}

    def _arrow(self, place: dict[str, Any], flow: Flow | None) -> None:
        if flow is not None:
            ph = {"ph": "s" if flow.is_first else "f" if flow.is_last else "t"}
            bound = {} if flow.is_first else {"bp": "e"}
            self._write({**ph, "cat": "task", "name": "task", "id": flow.number, **bound, **place})

    def _write(self, event: dict[str, Any]) -> None:
        if self._has_events:
            self._file.write(b",\n")
        self._has_events = True
        self._file.write(json.dumps(event).encode())
