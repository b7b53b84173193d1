"""Alerts, as an extension: rules that are judged, people who are told, and who knows of it."""
