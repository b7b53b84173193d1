"""Jobs that were enqueued in a commit of tables, on their way into a store without tables."""
