"""``python -m dsp_server.relay``: the same as ``dsp_relay_server``."""

from hbrt.programs import dsp_relay_server

dsp_relay_server()
