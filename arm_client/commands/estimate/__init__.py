"""``hbrt estimate``: the time of calls on the board, by the cost model."""
