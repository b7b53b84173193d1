"""The agent workers: the background work of an AI agent platform, as job types to switch on."""
