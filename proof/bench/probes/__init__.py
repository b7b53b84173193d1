"""Measurements that run in processes of their own, so that nothing else shares their lock."""
