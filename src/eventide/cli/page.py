"""A plain self-contained page: sentences, a table, one chart; it loads nothing from anywhere. Imports plotly."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from eventide.errors import InputError

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
  :root {{ --page: #f6f7f9; --ink: #17202b; --line: #dfe4ea; }}
  @media (prefers-color-scheme: dark) {{ :root {{ --page: #0e1319; --ink: #e6ebf1; --line: #2a3542; }} }}
  body {{ margin: 0 auto; max-width: 68rem; padding: clamp(1rem, 3vw, 2.5rem); background: var(--page);
         color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }}
  table {{ width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }}
  th, td {{ padding: 0.4rem 0.6rem; border-top: 1px solid var(--line); text-align: left; }}
  #chart {{ width: 100%; height: {height}px; }}
</style>
<script>{plotly}</script>
</head>
<body>
<h1>{title}</h1>
{sentences}
<div id="chart" role="img" aria-label="{title}"></div>
<div style="overflow-x: auto"><table>{table}</table></div>
<script>
  const chart = {chart};
  const ink = getComputedStyle(document.body).color;
  const line = getComputedStyle(document.documentElement).getPropertyValue("--line");
  const layout = {{...chart.layout, font: {{color: ink}}, paper_bgcolor: "transparent", plot_bgcolor: "transparent"}};
  for (const axis of ["xaxis", "yaxis"]) layout[axis] = {{...layout[axis], gridcolor: line, zerolinecolor: line}};
  Plotly.newPlot("chart", chart.data, layout, {{responsive: true, displayModeBar: false}});
</script>
</body>
</html>
"""


def write_page(
    path: Path,
    title: str,
    sentences: Sequence[str],
    chart: dict[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    height: int,
) -> None:
    """Write the page; everything given is text and is escaped."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    page = _TEMPLATE.format(
        title=html.escape(title),
        sentences="".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences),
        table=f"<tr>{head}</tr>{body}",
        chart=json.dumps(chart).replace("</", "<\\/"),
        plotly=get_plotlyjs(),
        height=height,
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error
