"""Reads a trace in Perfetto's own format by its published messages, and holds it to the rules of the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos


class Slice(NamedTuple):
    """A slice, or with no length an instant."""

    track: str  # names from the group down, with " / " between them
    name: str
    start_ns: int
    end_ns: int
    depth: int
    facts: dict[str, Any]
    flows: tuple[int, ...]

    def has(self, other: Slice) -> bool:
        return self.start_ns <= other.start_ns and other.end_ns <= self.end_ns

    def meets(self, other: Slice) -> bool:
        return self.start_ns < other.end_ns and other.start_ns < self.end_ns


class Trace(NamedTuple):
    """What a file shows."""

    slices: list[Slice]
    instants: list[Slice]
    values: dict[str, list[tuple[int, int]]]  # by counter
    unix_offset_ns: int

    def of(self, track: str, name: str = "") -> list[Slice]:
        """The slices of the tracks that end so, by their begin."""
        return [one for one in self.slices if one.track.endswith(track) and name in {"", one.name}]


def read(file: Path) -> Trace:
    """The trace in a file. Raises AssertionError where it breaks a rule of the format."""
    trace = protos.Trace()
    trace.ParseFromString(file.read_bytes())
    names: dict[int, str] = {}
    facts: dict[int, str] = {}
    tracks: dict[int, str] = {}
    events = []
    clocks: dict[int, int] = {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id
        for clock in packet.clock_snapshot.clocks:
            clocks[clock.clock_id] = clock.timestamp
        names.update((one.iid, one.name) for one in packet.interned_data.event_names)
        facts.update((one.iid, one.name) for one in packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            name = one.name or one.process.process_name or one.thread.thread_name
            assert one.uuid not in tracks
            tracks[one.uuid] = f"{tracks[one.parent_uuid]} / {name}" if one.parent_uuid else name
        elif packet.HasField("track_event"):
            event = packet.track_event
            found = {facts[fact.name_iid]: _value(fact) for fact in event.debug_annotations}
            events.append((packet.timestamp, event, names.get(event.name_iid, ""), found))
    slices, instants, values = _played(sorted(events, key=lambda event: event[0]), tracks)
    return Trace(slices, instants, values, clocks[1] - clocks[3])


def _played(
    events: list[Any], tracks: dict[int, str]
) -> tuple[list[Slice], list[Slice], dict[str, list[tuple[int, int]]]]:
    kinds = protos.TrackEvent
    open_: dict[int, list[Any]] = {}
    slices, instants = [], []
    values: dict[str, list[tuple[int, int]]] = {}
    for at_ns, event, name, facts in events:
        stack, track = open_.setdefault(event.track_uuid, []), tracks[event.track_uuid]
        flows = (*event.flow_ids, *event.terminating_flow_ids)
        if event.type == kinds.TYPE_SLICE_BEGIN:
            stack.append((at_ns, name, facts, flows))
        elif event.type == kinds.TYPE_SLICE_END:
            assert stack, f"{track} ends a slice at {at_ns} that it has not begun"
            start_ns, begun, *rest = stack.pop()
            slices.append(Slice(track, begun, start_ns, at_ns, len(stack), *rest))
        elif event.type == kinds.TYPE_INSTANT:
            instants.append(Slice(track, name, at_ns, at_ns, len(stack), facts, flows))
        else:
            values.setdefault(track, []).append((at_ns, event.counter_value))
    assert not any(open_.values()), "a slice has no end"
    return sorted(slices, key=lambda one: (one.start_ns, one.depth)), instants, values


def _value(fact: Any) -> Any:
    return getattr(fact, fact.WhichOneof("value"))
