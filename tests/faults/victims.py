"""Processes that are to die: ``python -m tests.faults.victims nursery|relay ...``.

A nursery has everything loaded and forks a client for each word that it reads, so that a client costs no interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

from arm_client.session.session import Session
from hbrt.board.paths import BoardPaths
from hbrt.mailbox.handle import SLOT_MASK
from tests.faults import ops, tracer


def live(board: str, voice: socket.socket) -> None:
    """A client's whole life: attach, allocate, submit, cancel, wait, release, free, more slots, detach."""
    session = Session(BoardPaths(Path(board)))
    tasks, blocks = session.tasks, session.blocks
    block = blocks.alloc(64)
    other = blocks.alloc(64)
    other.view[1] = 1
    hello = {"client": session.link.client_id, "phy_addr": block.phy_addr}
    voice.send(json.dumps(hello).encode())
    voice.recv(16)
    handle = tasks.submit(ops.GATED, 0, 1, 0, block.phy_addr, 64, 0, 0)
    queued = tasks.submit(ops.GATED, 0, 1, 0, other.phy_addr, 64, 0, 0)
    tasks.cancel(queued)
    tasks.release(queued)
    status = tasks.wait(handle, 0)
    tasks.release(handle)
    blocks.free(other.phy_addr)
    blocks.free(block.phy_addr)
    while tasks.slots.free:
        tasks.slots.free.pop()
    tasks.release(tasks.submit(ops.GATED, 0, 1, 0, 0, 0, 0, 0))
    session.close()
    voice.send(json.dumps({"status": status}).encode())


def work(board: str, voice: socket.socket) -> None:
    """A client of a crowd: a hundred calls when it is told to; says how many it got through, and what its bytes say."""
    session = Session(BoardPaths(Path(board)))
    block = session.blocks.alloc(64)
    voice.send(b"{}")
    voice.recv(16)
    good = 0
    for _ in range(100):
        handle = session.tasks.submit(ops.TOUCH, 0, 0, 0, block.phy_addr, 64, 0, 0)
        good += session.tasks.wait(handle, 0) == 0
        session.tasks.release(handle)
    voice.send(json.dumps({"good": good, "counted": block.view[0]}).encode())
    voice.recv(16)  # until the other end closes
    session.close()


def call(board: str, voice: socket.socket) -> None:
    """A client with two calls, one before it says which slot it uses, and the same again when it is told to."""
    session = Session(BoardPaths(Path(board)))
    tasks, block = session.tasks, session.blocks.alloc(64)
    handle = tasks.submit(ops.TOUCH, 0, 1, 0, block.phy_addr, 64, 0, 0)
    tasks.wait(handle, 0)
    tasks.release(handle)  # the next task takes this slot
    block.view[0] = 0
    hello = {"client": session.link.client_id, "phy_addr": block.phy_addr, "slot": handle & SLOT_MASK}
    voice.send(json.dumps(hello).encode())
    voice.recv(16)
    handle = tasks.submit(ops.GATED, 0, 1, 0, block.phy_addr, 64, 0, 0)
    status = tasks.wait(handle, 0)
    tasks.release(handle)
    voice.send(json.dumps({"status": status}).encode())
    voice.recv(16)  # until the other end closes
    session.close()


LIVES = {"live": live, "work": work, "call": call}


def nursery(board: str, address: str) -> None:
    """Fork a client for every line of standard input, which names its life; it speaks at ``address``."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to collect them
    tracer.install("client")
    for line in sys.stdin:
        if os.fork() == 0:
            voice = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            voice.connect(address)
            try:
                LIVES[line.strip()](board, voice)
            finally:
                os._exit(0)


def daemon() -> None:
    """A board's daemon; see ``hbrt.board.launch``."""
    from dsp_server.daemon.daemon import main

    tracer.install("daemon")
    main()


def relay(board: str) -> None:
    """A board's relay in this process; says so when it serves."""
    from dsp_server.relay.serve import serve

    tracer.install("relay")
    serve(BoardPaths(Path(board)), 0, lambda: print("running", flush=True))


if __name__ == "__main__":
    sys.exit({"nursery": nursery, "relay": relay}[sys.argv[1]](*sys.argv[2:]))  # type: ignore[operator]
