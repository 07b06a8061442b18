"""What an invocation is made of."""
