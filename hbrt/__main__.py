"""``python -m hbrt``: the ``hbrt`` command."""

from __future__ import annotations

from hbrt.programs import hbrt

if __name__ == "__main__":
    hbrt()
