"""Layers that run a model's nodes: the base class, the packaged ones, plugins."""
