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


def money(dollars: float | None) -> str:
    """US dollars: `$12.30`, `$0.042`; a dash where the price is not known."""
    if dollars is None:
        return "–"
    if dollars == 0:
        return "$0"
    if dollars < 0.001:
        return "< $0.001"
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.3f}"


def short(number: int) -> str:
    """A large number in few characters: `1.2 M`, `45 k`, `912`."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            figure = number / size
            return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:.1f} {unit}"
    return f"{number:,}"


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
