"""The dashboard: pages rendered on the server, live by server-sent events."""
