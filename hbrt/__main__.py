"""``python -m hbrt``: the ``hbrt`` command."""

from __future__ import annotations

from hbrt.cli import main

if __name__ == "__main__":
    main()
