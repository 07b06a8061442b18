"""The kernel checks of ``hbrt doctor``: CPUs, the kernel objects that a board is made of, and free memory."""

from __future__ import annotations

import errno
import mmap
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from dsp_server.commands.doctor.checks import Check, Level, judged
from hbrt import settings
from hbrt.board.files import take_lock
from hbrt.board.launch import FEWEST_FDS
from hbrt.board.paths import BoardPaths, home
from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import BoardBusyError
from hbrt.settings import format_size

FEW_DESCRIPTORS = 256
LITTLE_DISK_BYTES = 64 << 20


def kernel() -> Iterator[Check]:
    """Check the CPUs and the kernel objects that a board is made of."""
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    cpus = f"{usable} of {present} may be used"
    advice = "A board also works on one CPU: its processes take turns and sleep without polling first."
    yield judged("CPUs", cpus, is_good=usable > 1, advice=advice)
    for name, probe, missing in (
        (
            "memfd",
            _probe_memfd,
            "The DDR of a board is a memfd, mapped whole: a sandbox or a memory limit (ulimit -v) may forbid it.",
        ),
        ("eventfd", _probe_eventfd, "Doorbells are eventfds; a sandbox may forbid them."),
        ("pidfd", _probe_pidfd, "Cores are watched by pidfd: Linux 5.4 or newer; a sandbox may forbid it."),
        (
            "claim lock",
            _probe_claim_lock,
            "Cores claim tasks under a robust mutex in shared memory; this needs a libc and a kernel with futexes.",
        ),
        (
            "board lock",
            _probe_lock,
            "A board's daemon locks a file in the boards' directory: choose another HBRT_HOME.",
        ),
    ):
        yield _probed(name, probe, missing)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    are_enough = soft == resource.RLIM_INFINITY or soft >= FEW_DESCRIPTORS
    level = Level.FAIL if soft < FEWEST_FDS else Level.WARN
    advice = "Raise it with 'ulimit -n 1024': each client takes some."
    yield judged("descriptors", f"{soft} per process", is_good=are_enough, advice=advice, level=level)


def _probed(name: str, probe: Callable[[], str], missing: str) -> Check:
    try:
        return Check(name, Level.OK, probe())
    except OSError as error:
        return Check(name, Level.FAIL, f"{error.strerror or error}", missing)


def _probe_memfd() -> str:
    size = settings.size_bytes("HBRT_DDR")
    fd = os.memfd_create("hbrt-doctor", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        mmap.mmap(fd, size).close()
    finally:
        os.close(fd)
    return f"can create and map one of {format_size(size)}"


def _probe_eventfd() -> str:
    fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    try:
        os.eventfd_write(fd, 1)
        os.eventfd_read(fd)
    finally:
        os.close(fd)
    return "works"


def _probe_pidfd() -> str:
    os.close(os.pidfd_open(os.getpid()))
    return "works"


def _probe_claim_lock() -> str:
    """Check that a holder of the task table's lock releases it when it dies, no matter how."""
    fd = os.memfd_create("hbrt-doctor", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, PAGE_BYTES)
        lock = ClaimLock(mmap.mmap(fd, PAGE_BYTES))
    finally:
        os.close(fd)
    lock.initialize()
    pid = os.fork()
    if pid == 0:
        os._exit(lock.try_acquire(lock.handle))
    _, status = os.waitpid(pid, 0)
    refusal = lock.try_acquire(lock.handle)
    if status or refusal != errno.EOWNERDEAD:
        raise OSError("stays locked when its holder dies")
    lock.acquire_slowly(refusal)
    lock.release(lock.handle)
    return "released when its holder dies"


def _probe_lock() -> str:
    """Check the lock of a board's daemon, in the boards' directory or the nearest existing parent directory."""
    place = _nearest(home())
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=place) as directory:
        paths = BoardPaths(Path(directory))
        held = take_lock(paths)
        try:
            os.close(take_lock(paths))
        except BoardBusyError:
            return f"works in {place}"
        finally:
            os.close(held)
    raise OSError("two holders got the same lock")


def memory() -> Iterator[Check]:
    """Report free memory and how the kernel backs the DDR; never fails, as the DDR uses only what is touched."""
    available = _meminfo().get("MemAvailable", 0)
    wanted = settings.size_bytes("HBRT_DDR")
    found = f"{format_size(available)} available; a board's DDR of {format_size(wanted)} uses only what is touched"
    yield Check("memory", Level.OK, found)
    place = _nearest(home())
    is_good = shutil.disk_usage(place).free >= LITTLE_DISK_BYTES
    advice = f"Boards keep sockets and logs in {place}: make room, or set HBRT_HOME."
    yield judged("disk", _free(place), is_good=is_good, advice=advice)
    pages = Path("/sys/kernel/mm/transparent_hugepage")
    chosen = {name: _chosen(pages / name) for name in ("enabled", "shmem_enabled")}
    yield Check(
        "huge pages", Level.OK, f"transparent: {chosen['enabled']}, for shared memory: {chosen['shmem_enabled']}"
    )


def _nearest(place: Path) -> Path:
    """Return the directory itself, or the nearest existing one above it."""
    while not place.is_dir():
        place = place.parent
    return place


def _meminfo() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}


def _free(path: Path) -> str:
    usage = shutil.disk_usage(path)
    return f"{format_size(usage.free)} of {format_size(usage.total)} free at {path}"


def _chosen(path: Path) -> str:
    """Return the word in brackets in a file such as ``always [madvise] never``."""
    try:
        match = re.search(r"\[(\w+)\]", path.read_text(encoding="ascii"))
    except OSError:
        return "unknown"
    return match[1] if match else "unknown"
