"""The packaged CV ops, one file per family of ``hbrt.cv``; ``dsp_server.builtin_ops`` names them."""
