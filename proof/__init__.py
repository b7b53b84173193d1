"""What proves the product and is no part of it: specification, servers, torture, benchmarks."""
