"""Behind the C names of the run time: contexts, what they tell, take and give, memory of the board."""
