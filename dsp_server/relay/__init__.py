"""``dsp_relay_server``: one client of a board that submits for many ARM processes, over ZeroMQ. See docs/relay.md."""

PROGRAM = "dsp_relay_server"  # as boards show it, however it was started
