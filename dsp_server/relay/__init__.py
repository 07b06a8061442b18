"""``dsp_relay_server``: one client of a board that submits for many ARM processes, over ZeroMQ. See docs/relay.md."""
