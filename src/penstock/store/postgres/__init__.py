"""One installation of penstock in a schema of a PostgreSQL database."""
