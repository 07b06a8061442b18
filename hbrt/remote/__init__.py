"""The way to a board on another machine: connection, keys, and memory that both sides hold."""
