"""A core's heartbeat, as another process reads it."""

import mmap
import os
import struct
import subprocess
import sys

from hbrt.ddr.layout import CORE_HEARTBEAT

CORE = """
import mmap, os, sys
from dsp_server.core import heartbeat

heartbeat.BEAT_SECONDS = 0
shared = memoryview(mmap.mmap(int(sys.argv[1]), 0))
heartbeat.Heartbeat(shared, 0, [], os.eventfd(0), lambda: None).start()
print(flush=True)
sys.stdin.read()
"""


def test_a_reader_sees_each_beat_whole() -> None:
    fd, pipe, beat = os.memfd_create("record"), subprocess.PIPE, struct.Struct("<Q")
    os.ftruncate(fd, mmap.PAGESIZE)
    record = mmap.mmap(fd, 0)
    with subprocess.Popen([sys.executable, "-c", CORE, str(fd)], pass_fds=[fd], stdin=pipe, stdout=pipe) as core:
        os.close(fd)
        assert core.stdout is not None
        core.stdout.readline()
        beats = [beat.unpack_from(record, CORE_HEARTBEAT)[0] for _ in range(1_000_000)]
        core.kill()
    assert len(set(beats)) > 1
    assert all(beats)
    assert beats == sorted(beats)
