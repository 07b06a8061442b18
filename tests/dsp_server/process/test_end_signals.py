"""Signals that end a server: the second one must not change what the first one began."""

from __future__ import annotations

import signal
import subprocess
import sys

SERVER = """
import sys
from dsp_server.process.end_signals import ended_by_signals
from dsp_server.process.event_loop import Loop
loop, asked = Loop(), []
with ended_by_signals(loop, lambda: asked.append(1)):
    print("serves", flush=True)
    while not asked:
        loop.step()
loop.close()
print("ends", flush=True)
sys.stdin.readline()
"""


def test_a_second_signal_does_not_change_the_exit_code() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        server.send_signal(signal.SIGTERM)
        assert server.stdout.readline() == "ends\n"
        for second in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server.send_signal(second)
        server.communicate("\n")
    assert server.returncode == 0
