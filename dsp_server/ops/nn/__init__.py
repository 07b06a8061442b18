"""The packaged NN ops; ``dsp_server.builtin_ops`` names them."""
