"""``--what-if``: constants of the profile for one estimate, by short names or their keys. Pure."""

from __future__ import annotations

from typing import Final

from hbrt.profiles.keys import KEYS
from hbrt.profiles.profile import BadProfileError, Profile
from hbrt.settings import BadSettingError, parse_size

WHAT_IF: Final = "--what-if"
"""The source of the constants that it changes."""
SHORT: Final = {
    "clock": "cores.dsp.clock_mhz",
    "cores": "cores.dsp.count",
    "tile": "tcm.usable_bytes",
    "rpc_us": "rpc.call_us",
    "relay_us": "rpc.relay_us",
}


def changes(texts: tuple[str, ...]) -> dict[str, float]:
    """The constants that ``clock=800,tile=32K`` changes.

    Raises:
        BadProfileError: a text is not a change, names no constant, or its value is not a number.
    """
    found: dict[str, float] = {}
    for text in (part for given in texts for part in given.split(",") if part.strip()):
        name, equals, raw = text.strip().partition("=")
        key = SHORT.get(name, name)
        if not equals or key not in KEYS:
            names = ", ".join(SHORT)
            raise BadProfileError(
                f"Invalid change {text!r}: expected NAME=VALUE, with {names}, or a key of the profile."
            )
        try:
            found[key] = parse_size(raw) if KEYS[key].unit == "bytes" else float(raw)
        except (ValueError, BadSettingError):
            raise BadProfileError(f"Invalid {key} {raw!r}: expected a number of {KEYS[key].unit}.") from None
    return found


def as_toml(profile: Profile) -> str:
    """A profile as a file that ``hbrt start --profile`` takes."""

    def text(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [f"{key} = {text(getattr(profile, key))}" for key in ("name", "title", "chip")]
    for key, one in profile.constants.items():
        whence = f"source = {text(one.source)}"
        if one.is_assumed:
            whence = f"assumed = [{one.low!r}, {one.high!r}], why = {text(one.why)}"
        lines.append(f"{key} = {{ value = {one.value!r}, {whence} }}")
    return "\n".join(lines) + "\n"
