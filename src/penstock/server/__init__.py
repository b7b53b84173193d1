"""What operators and other programs see: REST API, dashboard, metrics, health, alerts."""
