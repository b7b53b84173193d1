"""How pages and commands of the recorder say things."""

from types import MappingProxyType

PLATFORMS = MappingProxyType(
    {
        "claude_code": "Claude Code",
        "cursor": "Cursor",
        "gemini_cli": "Gemini CLI",
        "antigravity": "Antigravity",
        "codex": "Codex",
        "copilot": "Copilot CLI",
    }
)


def platform(name: str) -> str:
    """An assistant as people call it."""
    return PLATFORMS.get(name, name or "unknown")


def snippet(text: str) -> list[tuple[str, bool]]:
    """What a search found, in parts, and whether each was looked for: it stands in ‹ and ›."""
    parts: list[tuple[str, bool]] = []
    for n, piece in enumerate(text.split("‹")):
        hit, closed, rest = piece.partition("›")
        if n and closed:
            parts.append((hit, True))
            piece = rest
        if piece:
            parts.append((piece, False))
    return parts
