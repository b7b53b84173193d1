"""Publishing: a learning as canonical JSON, on IPFS, and its address in a registry on a chain."""
