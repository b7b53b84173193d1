"""Templates of the garden."""
