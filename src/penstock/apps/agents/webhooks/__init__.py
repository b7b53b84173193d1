"""Webhooks: what is delivered to whom, safely, and what became of it."""
