"""The half of the corpus that was written beside the rules."""
