"""The relay for programs on other machines: a gate on TCP, and a deputy on the board for each. See docs/remote.md."""
