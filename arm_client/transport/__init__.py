"""How tasks and memory reach a board through a relay, on this machine or another."""
