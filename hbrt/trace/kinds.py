"""The kinds of events that a process records, and the fields of each.

``end_ns`` is ``start_ns`` for an instant. A task is identified by its sequence (submission time) and its client.
Modeled quantities are cycles of the op engines' counter; everything else is measured.
"""

from __future__ import annotations

from enum import IntEnum


class EventKind(IntEnum):
    """Kind of an event."""

    # Of a program.
    SUBMIT = 1  # a: sequence, 0 for a task that was refused; b: command; c: status of a refusal; unit: client
    WAIT = 2  # a: sequence; b: claim ns; c: end ns of the task; d: command; unit: client
    ALLOC = 3  # a: physical address; b: bytes
    FREE = 4  # a: physical address
    FLUSH = 5  # a: physical address; b: bytes; text: clean or invalidate
    ASK = 7  # a request to the daemon; text: its verb
    # Of the BPU cores of a program.
    MODEL = 10  # text: the model; unit: BPU core; a: priority
    SEGMENT = 11  # text: the step; unit: BPU core
    # Of a core.
    RUN = 20  # an op with its own events, around its start and end; a: sequence; b, c: cycles before and after
    COPY = 21  # an iDMA copy, from its issue to its completion; a, b: modeled cycles of its bytes; c: bytes; unit: lane
    DMA_WAIT = 22  # a, b: modeled cycles
    STALL = 23  # loads straight from DDR; a, b: modeled cycles; c: bytes. An instant
    TCM = 24  # bytes in use: a in bank 0, b in bank 1; c: modeled cycles. An instant
    # Of a relay or a gateway.
    HOP = 30  # text: what is done; a: sequence, 0 for none; b: bytes; unit: client
    # Of the daemon.
    FOUND = 40  # text: a finding; an instant
    SAID = 41  # text: a line of the log; an instant
