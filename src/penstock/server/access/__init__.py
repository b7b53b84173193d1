"""Who may do what: tokens, users, browser sessions, scopes and tenants."""
