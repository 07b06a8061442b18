"""The vendor's own packages, which hbrt never replaces."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def refuse_beside(distribution: str) -> None:
    """Refuse to be imported if the vendor's distribution is installed.

    Raises:
        ImportError: it is installed; the message says what to do.
    """
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return
    raise ImportError(
        f"{distribution} {found} is installed here, and hbrt's packages have the same names. Use a "
        f"separate environment for hbrt-rknn, or uninstall {distribution}."
    )
