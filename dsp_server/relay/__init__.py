"""``dsp_relay_server``: a board's client that submits for many ARM processes, over ZeroMQ. See docs/relay.md."""
