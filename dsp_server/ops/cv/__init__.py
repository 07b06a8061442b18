"""The packaged CV ops, one file each; ``dsp_server.builtin_ops`` names them."""
