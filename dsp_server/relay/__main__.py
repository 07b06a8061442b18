"""``python -m dsp_server.relay``: the same as ``dsp_relay_server``."""

from __future__ import annotations

from hbrt.programs import dsp_relay_server

if __name__ == "__main__":
    dsp_relay_server()
