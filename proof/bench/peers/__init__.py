"""Other job systems beside penstock: what they are, where they live, how they are run."""
