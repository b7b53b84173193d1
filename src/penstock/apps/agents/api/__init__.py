"""The agent workers over HTTP: memories, sessions, patterns, webhooks, quotas, exports."""
