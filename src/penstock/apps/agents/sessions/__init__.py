"""Sessions of an agent: opened, continued, expired, archived, restored."""
