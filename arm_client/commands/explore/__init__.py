"""``hbrt explore``: run a program in many orders until it fails, and find the shortest order in which it does."""
