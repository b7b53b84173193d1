"""The transitions of stores that speak SQL; each dialect brings its queries and its transactions.

A dialect answers the named queries of its own `.sql` files, whose rows mean the same everywhere.
What a query must lock is said there: SQLite holds the whole file, PostgreSQL the rows it names.
"""
