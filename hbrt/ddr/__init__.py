"""The DDR file that all processes of a board share: its layout, its tables, its lock."""
