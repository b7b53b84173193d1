"""What a person does to work: look at it, hold it back, set it right, move it."""
