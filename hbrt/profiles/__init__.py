"""What differs between boards, as data: a file of constants a board, each with its source or its assumed range."""
