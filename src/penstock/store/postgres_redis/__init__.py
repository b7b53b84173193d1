"""PostgreSQL holds everything; Redis beside it holds what can be rebuilt, and may be lost."""
