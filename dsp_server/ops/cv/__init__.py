"""The packaged CV ops, a file for each family of ``hbrt.cv``; ``dsp_server.builtin_ops`` names them."""
