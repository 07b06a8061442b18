"""``python -m dsp_server``: the same as ``dsp_server``, a board's daemon in the foreground."""

from __future__ import annotations

from hbrt.programs import dsp_server

if __name__ == "__main__":
    dsp_server()
