"""Fetch, execute, settle: the side that runs jobs."""
