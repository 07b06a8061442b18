"""Access to a board on another machine: connection, keys, and memory held by both sides."""
