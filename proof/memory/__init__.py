"""Labelled conversations and questions for measuring how well a memory answers."""
