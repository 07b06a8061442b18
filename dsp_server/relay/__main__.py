"""``python -m dsp_server.relay``: the same as ``dsp_relay_server``."""

from dsp_server.commands.relay import main

main()
