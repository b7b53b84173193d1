"""What tenants may use, and what is theirs: quotas, audits, exports, deletions."""
