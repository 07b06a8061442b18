"""What both sides know of the CV ops: command numbers, image descriptor, parameter structures, and their rules.

`hbrt.cv_types` has every public name; nothing is imported here, because a core needs the numbers alone to start.
"""
