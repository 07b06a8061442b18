"""``hbrt replay``: the calls of a recording, without the program that made them."""
