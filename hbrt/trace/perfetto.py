"""A timeline as Perfetto's own protobuf: packets of track events, with names written once.

Source: Perfetto, Synthetic TrackEvents, https://perfetto.dev/docs/reference/synthetic-track-event
"""

from __future__ import annotations

from typing import BinaryIO

from hbrt.trace.sink import Facts, Flow, Sink

_SEQUENCE = 1  # packet sequence: names are known within one
_MONOTONIC, _REALTIME = 3, 1  # of BuiltinClock
_NEEDS_STATE = 2  # SEQ_NEEDS_INCREMENTAL_STATE
_USES = 1000  # maximum of one message
_MOST = (1 << 63) - 1


class Perfetto(Sink):
    """Writes the file packet by packet.

    Args:
        file: The output file.
        unix_offset_ns: Offset from CLOCK_MONOTONIC to the time of day.

    Raises:
        ImportError: the extra ``trace`` is not installed.
    """

    def __init__(self, file: BinaryIO, unix_offset_ns: int) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

        super().__init__(file)
        event = protos.TrackEvent
        self._begin, self._end = event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END
        self._instant, self._counter = event.TYPE_INSTANT, event.TYPE_COUNTER
        self._new_packet, self._left = protos.TracePacket, _USES
        self._packet = packet = protos.TracePacket()
        self._names: dict[str, int] = {}
        self._fact_names: dict[str, int] = {}
        self._pids: dict[int, int] = {}  # for groups that are processes
        self._uuid = 0
        for clock, at_ns in ((_MONOTONIC, 1), (_REALTIME, 1 + unix_offset_ns)):
            packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=at_ns)
        packet.clock_snapshot.primary_trace_clock = _MONOTONIC
        self._write()
        packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        packet.trace_packet_defaults.timestamp_clock_id = _MONOTONIC
        self._write()

    def group(self, name: str, pid: int = 0) -> int:
        """See ``Sink.group``."""
        track = self._packet.track_descriptor
        if pid:
            track.process.pid, track.process.process_name = pid, name
        else:
            track.name = name
            track.child_ordering = track.EXPLICIT
        return self._described()

    def track(self, name: str, group: int, tid: int = 0) -> int:
        """See ``Sink.track``."""
        track = self._packet.track_descriptor
        track.parent_uuid = group
        if tid:
            track.thread.pid, track.thread.tid, track.thread.thread_name = self._pids[group], tid, name
        else:
            track.name = name
        return self._described()

    def counter(self, name: str, group: int) -> int:
        """See ``Sink.counter``."""
        track = self._packet.track_descriptor
        track.parent_uuid, track.name = group, name
        track.counter.SetInParent()
        return self._described()

    def slice(
        self, track: int, name: str, start_ns: int, end_ns: int, facts: Facts | None = None, flow: Flow | None = None
    ) -> None:
        """See ``Sink.slice``."""
        self._event(self._begin, track, name, start_ns, facts, flow)
        event = self._packet.track_event
        event.type, event.track_uuid = self._end, track
        self._packet.timestamp = _time(max(start_ns, end_ns))
        self._write()

    def instant(self, track: int, name: str, at_ns: int, facts: Facts | None = None, flow: Flow | None = None) -> None:
        """See ``Sink.instant``."""
        self._event(self._instant, track, name, at_ns, facts, flow)

    def value(self, counter: int, at_ns: int, value: int) -> None:
        """See ``Sink.value``."""
        event = self._packet.track_event
        event.type, event.track_uuid, event.counter_value = self._counter, counter, max(-_MOST, min(value, _MOST))
        self._packet.timestamp = _time(at_ns)
        self._write()

    def close(self) -> None:
        """Like ``Sink.close``; there is none."""

    def _event(self, kind: int, track: int, name: str, at_ns: int, facts: Facts | None, flow: Flow | None) -> None:
        packet, event = self._packet, self._packet.track_event
        packet.timestamp = _time(at_ns)
        event.type, event.track_uuid = kind, track
        event.name_iid = self._names.get(name) or self._intern(self._names, name, packet.interned_data.event_names)
        for key, value in facts.items() if facts else ():
            fact = event.debug_annotations.add()
            known = self._fact_names
            fact.name_iid = known.get(key) or self._intern(known, key, packet.interned_data.debug_annotation_names)
            if isinstance(value, int):
                fact.int_value = max(-_MOST, min(value, _MOST))
            elif isinstance(value, float):
                fact.double_value = value
            else:
                fact.string_value = value
        if flow is not None:
            (event.terminating_flow_ids if flow.is_last else event.flow_ids).append(flow.number)
        self._write()

    def _intern(self, known: dict[str, int], name: str, table: object) -> int:
        known[name] = number = len(known) + 1
        table.add(iid=number, name=name)  # type: ignore[attr-defined]  # a repeated field
        return number

    def _described(self) -> int:
        """Write the descriptor of a new track; returns its uuid."""
        self._uuid += 1
        track = self._packet.track_descriptor
        track.uuid, track.sibling_order_rank = self._uuid, self._uuid
        if track.HasField("process"):
            self._pids[self._uuid] = track.process.pid
        self._write()
        return self._uuid

    def _write(self) -> None:
        """Write the packet, and empty it."""
        packet = self._packet
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = packet.sequence_flags or _NEEDS_STATE
        raw = packet.SerializeToString()
        size = len(raw)
        head = bytearray(b"\x0a")  # field 1 of Trace, with its length
        while size > 0x7F:
            head.append(size & 0x7F | 0x80)
            size >>= 7
        head.append(size)
        self._file.write(head + raw)
        self._left -= 1
        if self._left:
            packet.Clear()
        else:  # a cleared message keeps its memory
            self._packet, self._left = self._new_packet(), _USES


def _time(at_ns: int) -> int:
    """Clamp a time to what a packet can hold: a process may have written garbage into its record."""
    return max(0, min(at_ns, _MOST))
