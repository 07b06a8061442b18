"""``python -m dsp_server``: the program ``dsp_server``, the daemon of a board in the foreground."""

from __future__ import annotations

from hbrt.programs import dsp_server

if __name__ == "__main__":
    dsp_server()
