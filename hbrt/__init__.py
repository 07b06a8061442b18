"""What the ARM side and the DSP side share: status codes, C types, the DDR file, the mailbox, the wire."""

__version__ = "0.2.0"
