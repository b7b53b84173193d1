"""PostgreSQL holds everything; Redis beside it carries wake-ups, and may be lost."""
