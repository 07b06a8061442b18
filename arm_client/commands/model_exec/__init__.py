"""``hrt_model_exec``: a model's description, its results and its speed."""
