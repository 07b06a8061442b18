"""The packaged NN ops, one file each; ``dsp_server.builtin_ops`` names them."""
