"""A Django application with tasks."""
