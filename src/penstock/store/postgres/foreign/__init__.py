"""Connections of the caller's, whose transactions an enqueue joins."""
