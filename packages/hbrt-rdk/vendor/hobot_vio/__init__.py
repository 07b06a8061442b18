"""Cameras, codecs and displays of RDK boards over files: docs/rdk.md."""
