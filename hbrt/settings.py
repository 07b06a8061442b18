"""Settings from the environment: one table of name, type, default and help; the docs list is generated from it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

MOST = 1_000_000_000  # fits every time unit and message field
MAX_BYTES = 1 << 62  # largest signed 64-bit integer
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Setting(NamedTuple):
    """One environment variable that hbrt reads; ``least`` is the smallest integer; 0 lets a size be 0."""

    name: str
    kind: str
    default: str
    help: str
    least: int | None = None


TABLE: tuple[Setting, ...] = (
    Setting(
        "HBRT_HOME",
        "path",
        "",
        "directory that holds boards; else $XDG_RUNTIME_DIR/hbrt, else /tmp/hbrt-UID",
    ),
    Setting(
        "HBRT_BOARD",
        "text",
        "default",
        "name of the board that a client attaches to, tcp://HOST:PORT of "
        "its relay, or farm://HOST:PORT[/POOL] to lease one",
    ),
    Setting(
        "HBRT_ROUTE",
        "text",
        "",
        "commands that another board runs: COMMAND=ADDRESS or FIRST-LAST=ADDRESS separated by commas; the address is "
        "tcp://HOST:PORT or farm://HOST:PORT[/POOL]; the word compare, as one more entry, runs each task on both "
        "boards and reports the first difference",
    ),
    Setting(
        "HBRT_LEASE_WAIT_S", "int", "3600", "seconds that a program waits for a board of a farm; 0 waits forever", 0
    ),
    Setting(
        "HBRT_KEYS",
        "path",
        "",
        "directory of keys for a board over TCP; else hbrt/keys in the user's settings directory",
    ),
    Setting("HBRT_AUTOSTART", "bool", "1", "start a private board if no daemon runs"),
    Setting("HBRT_INLINE", "bool", "0", "be the core of a private board: ops run in this process, for a debugger"),
    Setting("HBRT_IMAGE", "path", "", "image file of a private board"),
    Setting(
        "HBRT_CORES", "int", "0", "DSP cores of a board that is started without --cores; 0 uses its profile's number", 0
    ),
    Setting(
        "HBRT_PROFILE",
        "path",
        "j5",
        "profile of the modeled board: the name of a packaged one, or a file of constants",
    ),
    Setting("HBRT_DDR", "size", "2G", "DDR of a board that is started without --ddr"),
    Setting(
        "HBRT_QUARANTINE",
        "size",
        "512M",
        "amount of freed memory whose addresses a board does not reuse while others are free; 0 for none",
        0,
    ),
    Setting(
        "HBRT_FILL",
        "seeded:zeros|pattern|random:SEED",
        "zeros",
        "initial contents of new blocks in a board's memory or TCM: the pattern is 0xcd, a seed is an integer; under "
        "checks, the pattern",
    ),
    Setting(
        "HBRT_WATCHDOG_MS",
        "int",
        "60000",
        "time limit of an op without a latency budget; 0 for none; loading or running a model may take ten times that",
        0,
    ),
    Setting(
        "HBRT_AGING_MS",
        "int",
        "0",
        "milliseconds of waiting after which a task gains one level of priority; 0 for never",
        0,
    ),
    Setting(
        "HBRT_BPU",
        "choice:board|inline",
        "board",
        "where models run: on the board's BPU or NPU cores, shared by all programs, or inline, in their process",
    ),
    Setting(
        "HBRT_CACHE",
        "seeded:coherent|strict|evicting:SEED",
        "coherent",
        "how cached memory behaves for this client: coherent; strict, where nothing moves without a flush; evicting, "
        "which also writes lines back by itself, at random times from an integer seed",
    ),
    Setting(
        "HBRT_CHECK",
        "words:tell|fail|fail-fast|memory|coherence|dma|layout|race|all|advice",
        "tell",
        "what to watch, as words separated by commas; fail ends a program with exit code 1 if mistakes were "
        "found, fail-fast also ends an op at its first; tell only reports them",
    ),
    Setting(
        "HBRT_DMA_ORDER",
        "seeded:strict|relaxed:SEED",
        "strict",
        "when the bytes of an iDMA copy move: strict, at a wait and in order of issue; relaxed, at any time that a "
        "program must expect, chosen at random from an integer seed",
    ),
    Setting(
        "HBRT_SARIF",
        "path",
        "",
        "file for the findings of a program and of the processes that it starts, as a SARIF log for code review "
        "tools; {pid} in the name is the id of the first process",
    ),
    Setting(
        "HBRT_SCHEDULE",
        "text",
        "",
        "runs the cores inside the program and interleaves them in a repeatable order: "
        "default, random:SEED, or steps:17=core1,...; empty for a board's own cores",
    ),
    Setting("HBRT_RECORD", "path", "", "directory into which a program's calls are recorded, for 'hbrt replay'"),
    Setting(
        "HBRT_TRACE",
        "path",
        "",
        "directory for the trace events of a board's processes: a trace from the start, which "
        "'hbrt trace save --from DIRECTORY' writes into a file",
    ),
    Setting(
        "HBRT_PYTHON",
        "path",
        "",
        "python of the environment that serves a program in C; by default the one in which hbrt is installed",
    ),
    Setting(
        "HBRT_CAMERA",
        "path",
        "",
        "what the cameras of an RDK board see, also through OpenCV: a picture, a folder of them or a video; if empty, "
        "a test pattern, but not through OpenCV",
    ),
    Setting(
        "HBRT_DISPLAY",
        "path",
        "",
        "picture file for the contents of an RDK board's display, or its cv2.imshow",
    ),
    Setting(
        "HBRT_RKNN_PLUGINS",
        "path",
        "/usr/lib/rknpu/op_plugins",
        "directory of RKNN's custom ops in C, librkcst_NAME.so",
    ),
    Setting("HBRT_RKNN_KEY", "path", "", "file whose bytes are the key of encrypted RKNN models"),
    Setting(
        "HB_DSP_RPC_MODE", "choice:direct|relay", "direct", "whether tasks go to the cores directly or through a relay"
    ),
    Setting("HB_UCP_ENABLE_RELAY_MODE", "bool", "0", "1 means HB_DSP_RPC_MODE=relay, if that is not set"),
    Setting(
        "HBRT_SPIN_US",
        "int",
        "-1",
        "microseconds to poll before sleeping; 0 never polls, -1 selects the default of 300",
    ),
)
_BY_NAME = {setting.name: setting for setting in TABLE}


class BadSettingError(ValueError):
    """A setting has an invalid value; the message names both and what is allowed."""


def is_default(name: str) -> bool:
    """Whether a setting has its default value, explicitly or not."""
    return text(name) == _BY_NAME[name].default


def is_given(name: str) -> bool:
    """Whether the environment sets it."""
    return bool(os.environ.get(name))


def text(name: str) -> str:
    """Return a setting as text: from the environment, else the table's default."""
    return os.environ.get(name) or _BY_NAME[name].default


def integer(name: str, most: int | None = None) -> int:
    """Return an integer setting.

    Raises:
        BadSettingError: it is not an integer, or not within the bounds: the table's, and ``most``.
    """
    raw = text(name)
    least = _BY_NAME[name].least
    try:
        value = int(raw)
    except ValueError:
        raise BadSettingError(f"Invalid {name} {raw!r}: must be an integer. It sets: {_BY_NAME[name].help}.") from None
    is_above = value > MOST
    if (least is not None and value < least) or is_above or (most is not None and value > most):
        most = most or (MOST if is_above else None)
        bounds = f"{most} or less" if least is None else f"{least} or more" if most is None else f"{least} to {most}"
        raise BadSettingError(f"Invalid {name} {value}: must be {bounds}. It sets: {_BY_NAME[name].help}.")
    return value


def flag(name: str) -> bool:
    """Return a yes/no setting: 1, true, yes, on or 0, false, no, off.

    Raises:
        BadSettingError: it is not one of these.
    """
    raw = text(name).lower()
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise BadSettingError(f"Invalid {name} {raw!r}: must be 1 or 0. It sets: {_BY_NAME[name].help}.")


def choice(name: str) -> str:
    """Return a setting with a fixed list of values.

    Raises:
        BadSettingError: it is not one of them.
    """
    raw = text(name)
    allowed = _BY_NAME[name].kind.partition(":")[2].split("|")
    if raw not in allowed:
        raise BadSettingError(f"Invalid {name} {raw!r}: must be one of {', '.join(allowed)}.")
    return raw


def words(name: str, given: str | None = None) -> frozenset[str]:
    """Return a setting that takes comma-separated words of a fixed list.

    Args:
        name: Name of the setting.
        given: Its value; None for the environment's.

    Raises:
        BadSettingError: a word is not in the list.
    """
    raw = text(name) if given is None else given
    found = [word for word in raw.replace(" ", "").split(",") if word]
    allowed = _BY_NAME[name].kind.partition(":")[2].split("|")
    for word in found:
        if word not in allowed:
            raise BadSettingError(
                f"Unknown word {word!r} in {name}: expected {', '.join(allowed)}, separated by commas."
            )
    return frozenset(found)


def is_relayed() -> bool:
    """Whether this process's tasks go through a relay: HB_DSP_RPC_MODE, else HB_UCP_ENABLE_RELAY_MODE.

    Raises:
        BadSettingError: as for ``choice`` or ``flag``.
    """
    if os.environ.get("HB_DSP_RPC_MODE"):
        return choice("HB_DSP_RPC_MODE") == "relay"
    return flag("HB_UCP_ENABLE_RELAY_MODE")


def size_bytes(name: str) -> int:
    """Return a size setting in bytes."""
    raw = text(name)
    return 0 if raw.strip() == "0" and _BY_NAME[name].least == 0 else parse_size(raw, name)


@contextmanager
def set_to(name: str, value: str) -> Iterator[None]:
    """Set an environment variable temporarily, and restore it afterwards."""
    before, os.environ[name] = os.environ.get(name), value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def seeded(name: str) -> tuple[str, int]:
    """Return a setting that is a word of a fixed list, some with a seed after a colon: the word and the seed, or 0.

    Raises:
        BadSettingError: it is not one of them, or the seed is not an integer.
    """
    raw = text(name)
    allowed = _BY_NAME[name].kind.partition(":")[2].split("|")
    word, has_seed, seed = raw.partition(":")
    if raw in allowed or (f"{word}:SEED" in allowed and (not has_seed or seed.isdecimal())):
        return word, int(seed or 0)
    example = next(one for one in allowed if one.endswith(":SEED")).replace("SEED", "7")
    raise BadSettingError(
        f"Invalid {name} {raw!r}: must be {', '.join(allowed[:-1])} or {allowed[-1]}, as in {example}."
    )


def check(*names: str) -> None:
    """Check settings that are read later, perhaps in another process that cannot report errors well.

    Args:
        names: The settings; all if empty.

    Raises:
        BadSettingError: one has an invalid value.
    """
    readers: dict[str, Callable[[str], object]] = {
        "int": integer, "bool": flag, "size": size_bytes, "choice": choice, "seeded": seeded, "words": words
    }  # fmt: skip
    for name in names or tuple(_BY_NAME):
        readers.get(_BY_NAME[name].kind.partition(":")[0], text)(name)


def parse_size(raw: str, what: str = "size") -> int:
    """Parse a size such as ``64M`` or ``2G`` (powers of 1024; a final B is allowed) into bytes.

    Raises:
        BadSettingError: not a size, not positive, or more than MAX_BYTES.
    """
    stripped = raw.strip().upper().removesuffix("IB").removesuffix("B")
    number, unit = (stripped[:-1], stripped[-1]) if stripped and stripped[-1] in UNITS else (stripped, "")
    try:
        value = int(float(number) * UNITS[unit])
    except (ValueError, OverflowError):
        value = 0
    if value <= 0:
        raise BadSettingError(f"Invalid {what} {raw!r}: expected a number with K, M, G or T, as in 512M or 2G.")
    if value > MAX_BYTES:
        raise BadSettingError(f"The {what} {raw!r} is too large for any memory or file; use less, as in 512M or 2G.")
    return value


def rounded(value: float, digits: int = 3) -> str:
    """Format a number with this many digits, without an exponent unless tiny: ``4,360``, ``0.0123``, ``7.3e-09``."""
    if abs(value) < 1e-4 or not math.isfinite(value):
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_size(count: int) -> str:
    """Format a number of bytes: ``512 B``, ``64.0 KiB``, ``2.0 GiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")
