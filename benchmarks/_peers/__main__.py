"""One process of a peer: ``python -m benchmarks._peers PEER ROLE DIRECTORY INDEX CHANNEL_FD``.

A role of the peer's own serves. The role ``client`` connects and does what it is told on the channel:
``warm`` makes a few calls, ``sync`` makes calls one after the other and gives back the time of each,
``in_flight`` keeps many of them under way. Start and end are points of the monotonic clock, which all
processes of a machine share, so that many clients begin together.
"""

from __future__ import annotations

import importlib
import sys
import time
from array import array
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks._measure import end_with_parent, raise_on_sigterm
from benchmarks._peers import DEPTH, PAYLOAD, PEERS, Client, MeasuringClient, PipelinedClient, Place

WARM_CALLS = 20


def sync(client: Client, start_ns: int, end_ns: int) -> tuple[int, bytes]:
    """Make one call after the other; return when the last one ended, and the nanoseconds of each as int64."""
    call = client.call
    clock = time.monotonic_ns
    latencies = array("q")
    record = latencies.append
    time.sleep(max(0, start_ns - clock()) / 1e9)
    before = clock()
    while True:  # at least once, also when the others let this process begin too late
        call(PAYLOAD)
        now = clock()
        record(now - before)
        if now >= end_ns:
            return now, latencies.tobytes()
        before = now


def in_flight(client: PipelinedClient, start_ns: int, end_ns: int) -> tuple[int, int]:
    """Keep DEPTH calls under way; return when the counting ended, and how many replies came until then."""
    send, receive = client.send, client.receive
    clock = time.monotonic_ns
    time.sleep(max(0, start_ns - clock()) / 1e9)
    for _ in range(DEPTH):
        send(PAYLOAD)
    replies = 0
    now = clock()
    while now < end_ns:
        receive()
        replies += 1
        send(PAYLOAD)
        now = clock()
    for _ in range(DEPTH):
        receive()
    return now, replies


def check(client: Client) -> None:
    """Make the first calls, and see that each returns what was sent."""
    for _ in range(WARM_CALLS):
        reply = client.call(PAYLOAD)
        if reply != PAYLOAD:
            raise ValueError(f"The reply is {reply.hex()}, which is not the request {PAYLOAD.hex()}.")
    if isinstance(client, PipelinedClient):
        others = [bytes([number]) * len(PAYLOAD) for number in range(DEPTH)]
        for payload in others:
            client.send(payload)
        if [client.receive() for _ in others] != others:
            raise ValueError(f"The replies to {DEPTH} calls in flight are not the requests, in their order.")


def pass_on(client: MeasuringClient, channel: Connection) -> None:
    """Let a client measure what the benchmark asks for."""
    channel.send("ready, pipelined" if client.is_pipelined else "ready")
    while True:
        try:
            channel.send(client.measure(*channel.recv()))
        except EOFError:
            return


def obey(client: Client | MeasuringClient, channel: Connection) -> None:
    """Measure what the benchmark asks for, until it closes the channel."""
    if isinstance(client, MeasuringClient):
        pass_on(client, channel)
        return
    pipelined = client if isinstance(client, PipelinedClient) else None
    check(client)
    channel.send("ready, pipelined" if pipelined else "ready")
    while True:
        try:
            what, start_ns, end_ns = channel.recv()
        except EOFError:
            return
        if what == "warm":
            for _ in range(WARM_CALLS):
                client.call(PAYLOAD)
            channel.send("warm")
        elif what == "sync":
            channel.send(sync(client, start_ns, end_ns))
        elif pipelined:
            channel.send(in_flight(pipelined, start_ns, end_ns))


def main() -> None:
    """Be the process that the arguments say."""
    name, role, directory, index, channel_fd = sys.argv[1:]
    end_with_parent()
    raise_on_sigterm()
    channel = Connection(int(channel_fd))
    place = Place(Path(directory), role, int(index), lambda: channel.send("ready"))
    peer = importlib.import_module(next(peer.module for peer in PEERS if peer.name == name))
    if role != "client":
        peer.serve(place)
        return
    client: Client | MeasuringClient = peer.connect(place)
    try:
        obey(client, channel)
    finally:
        client.close()


if __name__ == "__main__":
    main()
