"""Applications on Penstock: each is an extension, and the engine knows none of them by name."""
