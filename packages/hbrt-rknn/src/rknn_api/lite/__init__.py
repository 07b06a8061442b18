"""RKNN-Toolkit-Lite2's Python API: model files, run on the board."""
