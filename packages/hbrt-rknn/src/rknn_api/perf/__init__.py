"""The modeled cost of a model on the chip: modeled cycles, bytes and memory of each layer.

No number here is measured.
"""
