"""A live demonstration: jobs flowing, retrying, dying once, and rescued from a killed worker."""
