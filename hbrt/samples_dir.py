"""Where the sample programs are: beside the packages in a clone, inside ``hbrt`` in a wheel."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


class NoSamplesError(FileNotFoundError):
    """The installation holds no samples; the message says where they were looked for."""


def samples_dir() -> Path:
    """Directory with ``arm/`` and ``dsp/``.

    Raises:
        NoSamplesError: neither a clone nor a wheel's data.
    """
    candidates = (_HERE / "_samples", _HERE.parent / "samples")
    for candidate in candidates:
        if (candidate / "arm").is_dir():
            return candidate
    looked = " and ".join(str(candidate) for candidate in candidates)
    raise NoSamplesError(f"The samples are not installed; they were looked for in {looked}. Install hbrt anew.")
