"""Command lines of RKNN's tools."""
