"""Alerts, as far as the server has a part in them."""
