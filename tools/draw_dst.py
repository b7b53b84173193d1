"""Draws docs/pictures/dst-night.svg with the cron evaluator; `--check` fails if it is stale."""

import sys
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from penstock.model.cron import aware, find_zone, parse_cron

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "dst-night.svg"
ZONE = "Europe/Berlin"
EXPRESSIONS = ("30 2 * * *", "*/30 * * * *", "0 3 * * *")

HOUR_MS = 3_600_000
HOURS = 4
WIDTH, LEFT, HOUR_WIDTH = 760, 140, 145
PANEL_HEIGHT, ROW_HEIGHT, FIRST_ROW = 210, 34, 96

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; }
  .cron { font-family: ui-monospace, monospace; }
  .small { font-size: 12px; fill: #57606a; }
  .axis { stroke: #8c959f; stroke-width: 1; }
  .row { stroke: #d0d7de; stroke-width: 1; }
  .change { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 4 3; }
  .note { fill: #bc4c00; font-size: 12px; }
  .again { fill: #bc4c00; fill-opacity: 0.12; }
  .tick { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .small { fill: #9198a1; }
    .axis { stroke: #656c76; }
    .row { stroke: #3d444d; }
    .change { stroke: #f0883e; }
    .note { fill: #f0883e; }
    .again { fill: #f0883e; }
    .tick { fill: #4493f8; }
  }
"""


class Night(NamedTuple):
    """Four hours around the change, told by the moment they begin and the moment of the change."""

    title: str
    begin: str
    change: str
    note: str
    repeats: bool


NIGHTS = (
    Night(
        "Spring: 02:00 to 03:00 does not exist",
        "2026-03-29T00:00+01:00",
        "2026-03-29T03:00+02:00",
        "02:00 becomes 03:00",
        False,
    ),
    Night(
        "Autumn: 02:00 to 03:00 comes twice",
        "2026-10-25T01:00+02:00",
        "2026-10-25T02:00+01:00",
        "03:00 becomes 02:00",
        True,
    ),
)


def ms(text: str) -> int:
    """Milliseconds of an ISO time."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def ticks(expression: str, begin: int) -> list[int]:
    """All ticks of the night, its first moment included."""
    found: list[int] = []
    cron, zone = parse_cron(expression), find_zone(ZONE)
    tick = cron.next_after(begin - 1, zone)
    while tick is not None and tick <= begin + HOURS * HOUR_MS:
        found.append(tick)
        tick = cron.next_after(tick, zone)
    return found


def panel(night: Night, top: int) -> list[str]:
    """One night: what the clocks show, and a row of ticks for every expression."""
    begin, change = ms(night.begin), ms(night.change)

    def x(moment: int) -> float:
        return LEFT + (moment - begin) / HOUR_MS * HOUR_WIDTH

    bottom = top + FIRST_ROW + (len(EXPRESSIONS) - 1) * ROW_HEIGHT + 16
    drawn = [f'<text class="title" x="16" y="{top + 24}">{night.title}</text>']
    if night.repeats:
        drawn.append(
            f'<rect class="again" x="{x(change - HOUR_MS):g}" y="{top + 62}" '
            f'width="{2 * HOUR_WIDTH}" height="{bottom - top - 62}"/>'
        )
    drawn.append(
        f'<line class="change" x1="{x(change):g}" y1="{top + 62}" '
        f'x2="{x(change):g}" y2="{bottom}"/>'
    )
    drawn.append(
        f'<text class="note" x="{x(change):g}" y="{top + 24}" text-anchor="middle">'
        f"{night.note}</text>"
    )
    drawn += [_hour(begin + hour * HOUR_MS, x(begin + hour * HOUR_MS), top) for hour in range(5)]
    for row, expression in enumerate(EXPRESSIONS):
        drawn += _row(expression, [x(tick) for tick in ticks(expression, begin)], top, row)
    return drawn


def _hour(moment: int, x: float, top: int) -> str:
    shown = aware(moment, find_zone(ZONE)).strftime("%H:%M")
    return (
        f'<text class="small" x="{x:g}" y="{top + 56}" text-anchor="middle">{shown}</text>'
        f'<line class="axis" x1="{x:g}" y1="{top + 62}" x2="{x:g}" y2="{top + 70}"/>'
    )


def _row(expression: str, places: list[float], top: int, row: int) -> list[str]:
    y = top + FIRST_ROW + row * ROW_HEIGHT
    end = LEFT + HOURS * HOUR_WIDTH
    drawn = [
        f'<text class="cron" x="16" y="{y + 4}">{expression}</text>',
        f'<line class="row" x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}"/>',
    ]
    return drawn + [f'<circle class="tick" cx="{x:g}" cy="{y}" r="6"/>' for x in places]


def picture() -> str:
    """The whole drawing."""
    height = PANEL_HEIGHT * len(NIGHTS) + 10
    label = f"When three cron expressions run in {ZONE} on the nights clocks change"
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    lines = [opening, f"<style>{STYLE}</style>"]
    for number, night in enumerate(NIGHTS):
        lines += panel(night, number * PANEL_HEIGHT)
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    """Write the picture, or say that it is stale."""
    drawn = picture()
    if "--check" in sys.argv[1:]:
        stale = not PICTURE.exists() or PICTURE.read_text("utf-8") != drawn
        if stale:
            print("docs/pictures/dst-night.svg differs from the code; run `make docs`.")
        return int(stale)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn, "utf-8")
    print("wrote docs/pictures/dst-night.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
