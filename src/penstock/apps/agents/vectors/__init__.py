"""Texts as vectors: embedders, vector stores, and the jobs that keep both in order."""
