"""``hbrt explore``: a program in many orders, until it fails, and the shortest order in which it does."""
