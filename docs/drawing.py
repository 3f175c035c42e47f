"""A sheet on which the drawings of the explanation are made: a small SVG that reads on light and on dark pages.

Colours are those of the dashboard. A sheet has a ground of its own, so that it can be read wherever it is shown.
Imports the standard library only.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

STYLE = """
.ground { fill: #f6f7f9 } .ink { fill: #17202b } .dim { fill: #5b6878 } .rule { stroke: #c3ccd6 }
.true { stroke: #8a96a3; fill: none } .private { stroke: #0a6fb8; fill: none } .look { stroke: #0a6fb8 }
.charge { fill: #b3471d } .limit { stroke: #b3471d; fill: none } .band { fill: #0a6fb8; opacity: .16 }
.frame { stroke: #b3471d; fill: #b3471d; fill-opacity: .08 } .safe { stroke: #1f7a4d; fill: #1f7a4d; fill-opacity: .10 }
.person { stroke: #b3471d } .crowd { stroke: #9fabb8 }
@media (prefers-color-scheme: dark) {
.ground { fill: #161d26 } .ink { fill: #e6ebf1 } .dim { fill: #9aa7b5 } .rule { stroke: #3a4755 }
.true { stroke: #8793a1 } .private { stroke: #58b8f7 } .look { stroke: #58b8f7 } .charge { fill: #f09468 }
.limit { stroke: #f09468 } .band { fill: #58b8f7 } .frame { stroke: #f09468; fill: #f09468 }
.safe { stroke: #6fd3a0; fill: #6fd3a0 } .person { stroke: #f09468 } .crowd { stroke: #5b6878 }
}
text { font: 12px system-ui, sans-serif }
""".replace("\n", " ")

Point = tuple[float, float]


class Sheet:
    """Shapes by the class of their colour; positions are in pixels from the upper left corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._shapes: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "ink", anchor: str = "start") -> None:
        """Words on one line, their foot at y."""
        self._shapes.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(words)}</text>'
        )

    def line(self, points: Iterable[Point], kind: str, width: float = 1.5, dash: bool = False) -> None:
        """A line through points."""
        path = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
        dashed = ' stroke-dasharray="4 3"' if dash else ""
        self._shapes.append(f'<polyline class="{kind}" fill="none" stroke-width="{width:g}"{dashed} points="{path}"/>')

    def area(self, points: Iterable[Point], kind: str) -> None:
        """The inside of a closed line."""
        path = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
        self._shapes.append(f'<polygon class="{kind}" points="{path}"/>')

    def dots(self, points: Iterable[Point], kind: str, radius: float = 2.2) -> None:
        """Discs, drawn as the round ends of lines without length: one short path holds hundreds."""
        path = "".join(f"M{x:.4g} {y:.4g}h0" for x, y in points)
        self._shapes.append(f'<path class="{kind}" stroke-linecap="round" stroke-width="{2 * radius:g}" d="{path}"/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, corner: float = 0) -> None:
        """A rectangle."""
        self._shapes.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:.4g}" width="{width:g}" height="{height:.4g}" rx="{corner:g}"/>'
        )

    def bars(self, edges: Sequence[float], foot: float, heights: Iterable[float], kind: str, gap: float = 0.5) -> None:
        """Columns that stand on `foot`, one between each two neighbouring edges; those of no height are left out."""
        path = "".join(
            f"M{left + gap:.4g} {foot:g}V{foot - height:.4g}H{right - gap:.4g}V{foot:g}Z"
            for left, right, height in zip(edges, edges[1:], heights, strict=False)
            if height > 0
        )
        self._shapes.append(f'<path class="{kind}" d="{path}"/>')

    def save(self, path: Path) -> None:
        """Write the sheet as an SVG file."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img">'
        ground = f'<rect class="ground" width="{self.width}" height="{self.height}" rx="8"/>'
        title = f"<title>{html.escape(self.title)}</title>"
        lines = [head, title, f"<style>{STYLE}</style>", ground, *self._shapes, "</svg>", ""]
        path.write_text("\n".join(lines), encoding="utf-8")


def steps(xs: Sequence[float], ys: Iterable[float]) -> list[Point]:
    """The corners of a line that stays level over each step; xs are the edges of the steps, one more than ys."""
    return [point for left, right, y in zip(xs, xs[1:], ys, strict=False) for point in ((left, y), (right, y))]
