"""Pins of the 40-pin header as variables: an output keeps its level, and an input has the level of its pull resistor.

Source: RDK documentation, 40-pin user guide, https://github.com/D-Robotics/rdk_doc
Emulator: nothing is connected, so there is never an edge; the module prints a note about this once on standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

VERSION, model = "0.0.2", "RDK"
BOARD, BCM, SOC, CVM = 10, 11, 1000, 1001
LOW, HIGH = 0, 1
OUT, IN, HARD_PWM, UNKNOWN = 0, 1, 43, -1
PUD_OFF, PUD_DOWN, PUD_UP = 20, 21, 22
RISING, FALLING, BOTH = 31, 32, 33

_POWER = {1, 2, 4, 6, 9, 14, 17, 20, 25, 30, 34, 39}  # and ground, in BOARD numbering
_CHANNELS = {BOARD: set(range(1, 41)) - _POWER, BCM: set(range(28))}

Channel = int | str
Channels = Channel | Sequence[Channel]


@dataclass
class _Pin:
    direction: int
    level: int


_pins: dict[Channel, _Pin] = {}
_modes: list[int] = []
_warnings = [True]

sys.stderr.write("Hobot.GPIO: pins are only variables here; nothing is connected to them.\n")


def setmode(mode: int) -> None:
    """Set the numbering of channels, once until ``cleanup``.

    Raises:
        ValueError: unknown mode, or a different one is already set.
    """
    if mode not in {BOARD, BCM, SOC, CVM}:
        raise ValueError(f"Invalid mode {mode}: must be BOARD, BCM, CVM or SOC.")
    if _modes and _modes[0] != mode:
        raise ValueError("A different mode has already been set.")
    _modes[:] = [mode]


def getmode() -> int | None:
    """The mode that was set, or None."""
    return _modes[0] if _modes else None


def setwarnings(state: bool) -> None:  # noqa: FBT001 - the vendor's signature
    """Choose whether setting up a channel again gives a warning."""
    _warnings[:] = [bool(state)]


def setup(
    channels: Channels,
    direction: int,
    pull_up_down: int = PUD_OFF,
    initial: int | Sequence[int] | None = None,
) -> None:
    """Make channels inputs (IN) or outputs (OUT), with their first levels.

    Raises:
        RuntimeError: no mode is set. ValueError: unknown channel or direction.
    """
    if direction not in {IN, OUT}:
        raise ValueError(f"Invalid direction {direction}: must be IN or OUT.")
    found = _checked(channels)
    first = HIGH if direction == IN and pull_up_down == PUD_UP else LOW
    levels = [first] * len(found) if initial is None else _levels(initial, len(found))
    for channel, level in zip(found, levels, strict=True):
        if channel in _pins and _warnings[0]:
            sys.stderr.write(f"Hobot.GPIO: Channel {channel} is already in use; setwarnings(False) hides this.\n")
        _pins[channel] = _Pin(direction, level)


def output(channels: Channels, values: int | Sequence[int]) -> None:
    """Set the levels of outputs: one for all, or one for each.

    Raises:
        RuntimeError: a channel is not an output. ValueError: the number of levels differs from the number of channels.
    """
    found = _checked(channels)
    for channel, level in zip(found, _levels(values, len(found)), strict=True):
        _pin(channel, OUT).level = level


def input(channel: Channel) -> int:
    """The level of a channel.

    Raises:
        RuntimeError: the channel is not set up.
    """
    return _pin(_checked(channel)[0]).level


def gpio_function(channel: Channel) -> int:
    """The function of a channel: IN, OUT, HARD_PWM or UNKNOWN."""
    (one,) = _checked(channel)
    return _pins[one].direction if one in _pins else UNKNOWN


def cleanup(channels: Channels | None = None) -> None:
    """Release channels; without arguments, all of them and the mode."""
    if channels is None:
        _pins.clear()
        _modes.clear()
        return
    for channel in _checked(channels):
        _pins.pop(channel, None)


def add_event_detect(
    channel: Channel,
    edge: int,
    callback: Callable[[Channel], object] | None = None,
    bouncetime: int | None = None,
    polltime: float = 0.2,
) -> None:
    """Watch an input for edges; there is never one.

    Raises:
        RuntimeError: the channel is not an input. ValueError: unknown edge.
    """
    del callback, bouncetime, polltime
    _check_edge(channel, edge)


def add_event_callback(channel: Channel, callback: Callable[[Channel], object]) -> None:
    """Like ``add_event_detect``."""
    del callback
    _pin(_checked(channel)[0], IN)


def remove_event_detect(channel: Channel, timeout: float = 0.5) -> None:
    """Stop the detection started by ``add_event_detect``."""
    del timeout
    _checked(channel)


def event_detected(channel: Channel) -> bool:
    """Whether an edge came since the last call: never."""
    _pin(_checked(channel)[0], IN)
    return False


def wait_for_edge(
    channel: Channel, edge: int, bouncetime: int | None = None, timeout: float | None = None
) -> Channel | None:
    """Wait for an edge of an input, for ``timeout`` milliseconds, or forever without one. None: there was no edge.

    Raises:
        RuntimeError: the channel is not an input. ValueError: unknown edge.
    """
    del bouncetime
    _check_edge(channel, edge)
    while timeout is None:
        time.sleep(1)
    time.sleep(timeout / 1000)
    return None


class PWM:
    """A channel with pulse-width modulation.

    Args:
        channel: Its number.
        frequency_hz: Pulses per second.

    Raises:
        RuntimeError: no mode is set. ValueError: unknown channel, or the frequency is not positive.
    """

    def __init__(self, channel: Channel, frequency_hz: float) -> None:
        (one,) = _checked(channel)
        self.ChangeFrequency(frequency_hz)
        _pins[one] = _Pin(HARD_PWM, LOW)

    def start(self, duty_cycle_percent: float) -> None:
        """Start, with the level high for this share of the time."""
        self.ChangeDutyCycle(duty_cycle_percent)

    def ChangeDutyCycle(self, duty_cycle_percent: float) -> None:
        """Change the share of the time, 0 to 100 percent.

        Raises:
            ValueError: it is out of range.
        """
        if not 0 <= duty_cycle_percent <= 100:
            raise ValueError(f"Invalid duty cycle {duty_cycle_percent}: must be 0 to 100 percent.")

    def ChangeFrequency(self, frequency_hz: float) -> None:
        """Change the number of pulses per second.

        Raises:
            ValueError: not positive.
        """
        if frequency_hz <= 0:
            raise ValueError(f"Invalid frequency {frequency_hz}: must be more than 0 Hz.")

    def stop(self) -> None:
        """End."""


def _checked(channels: Channels) -> list[Channel]:
    if not _modes:
        raise RuntimeError("Please set pin numbering mode using GPIO.setmode(GPIO.BOARD), BCM, CVM or SOC.")
    found = [channels] if isinstance(channels, (int, str)) else list(channels)
    known = _CHANNELS.get(_modes[0])
    for channel in found:
        if known is not None and channel not in known:
            raise ValueError(f"Channel {channel} is invalid: must be a signal of the 40-pin header.")
    return found


def _levels(values: int | Sequence[int], count: int) -> list[int]:
    levels = [values] * count if isinstance(values, int) else list(values)
    if len(levels) != count:
        raise ValueError(f"got {len(levels)} values for {count} channels.")
    return [HIGH if level else LOW for level in levels]


def _pin(channel: Channel, direction: int | None = None) -> _Pin:
    pin = _pins.get(channel)
    if pin is None or direction not in {None, pin.direction}:
        what = {None: "a channel", IN: "an input", OUT: "an output"}[direction]
        raise RuntimeError(f"Channel {channel} was not set up as {what}: call GPIO.setup first.")
    return pin


def _check_edge(channel: Channel, edge: int) -> None:
    if edge not in {RISING, FALLING, BOTH}:
        raise ValueError(f"Invalid edge {edge}: must be RISING, FALLING or BOTH.")
    _pin(_checked(channel)[0], IN)
