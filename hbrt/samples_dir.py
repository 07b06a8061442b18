"""Location of the sample programs: beside the packages in a clone, inside ``hbrt`` in a wheel."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


class NoSamplesError(FileNotFoundError):
    """The installation has no samples; the message says where they were searched."""


def samples_dir() -> Path:
    """Return the directory with ``arm/`` and ``dsp/``.

    Raises:
        NoSamplesError: neither a clone's nor a wheel's samples exist.
    """
    candidates = (_HERE / "_samples", _HERE.parent / "samples")
    for candidate in candidates:
        if (candidate / "arm").is_dir():
            return candidate
    looked = " and ".join(str(candidate) for candidate in candidates)
    raise NoSamplesError(f"The samples are not installed; searched {looked}. Reinstall hbrt.")
