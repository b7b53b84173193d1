"""The agent workers in the dashboard: memories, patterns, webhooks, quotas, exports."""
