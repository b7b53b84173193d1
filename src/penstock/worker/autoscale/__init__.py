"""As many worker processes as there is work for."""
