"""Packaged ops, one file each; the registry names them and a core imports what it runs."""

from __future__ import annotations

from dsp_server.ops.refusal import ParameterError

__all__ = ["ParameterError"]
