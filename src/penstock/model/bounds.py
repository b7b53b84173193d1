"""How long and how many things may be, the same wherever they come in."""

MAX_NAME = 128
"""Of a type, a queue, a category, a schedule, a token."""

MAX_TEXT = 255
"""Of a key, a tag, a tenant, a workspace."""

MAX_TAGS = 32
MAX_REASON = 1_000
MAX_NOTES = 10_000

MAX_PAGE = 1_000
"""Rows of one answer."""

MAX_IDS = 100
"""Jobs asked for by their ids."""

MAX_BATCH = 10_000
"""Jobs of one request."""
