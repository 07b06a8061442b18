"""The modelled cost of a model on the chip: modelled cycles, bytes and memory of each layer.

No number here is measured.
"""
