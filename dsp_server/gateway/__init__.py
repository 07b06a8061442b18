"""The relay for programs on other machines: a TCP gateway, and one remote client per program. See docs/remote.md."""
