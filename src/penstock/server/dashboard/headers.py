"""What every page tells the browser to refuse."""

from collections.abc import Mapping
from types import MappingProxyType

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
)
"""Sent with every answer of the dashboard."""

FRESH = "no-store"
"""Pages show other people's work: neither a proxy nor the back button of the next user keeps it."""

LASTING = "public, max-age=31536000, immutable"
"""For files whose address changes with their content."""
