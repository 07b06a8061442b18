"""``hbrt estimate``: what calls take on the board, by the cost model."""
