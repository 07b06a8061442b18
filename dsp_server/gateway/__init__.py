"""The relay for programs on other machines: a TCP gateway, and a remote client for each program. See docs/remote.md."""
