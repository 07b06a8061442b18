"""CV op definitions shared by both sides: command numbers, image descriptor, parameter structures, rules.

`hbrt.cv_types` has every public name; nothing is imported here, because a core needs only the numbers to start.
"""
