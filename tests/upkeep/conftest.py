from penstock.testing.plugin import app, clock, drain

__all__ = ["app", "clock", "drain"]
