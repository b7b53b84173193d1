"""The parts of a run, each a list of steps that alternate between what is compared."""
