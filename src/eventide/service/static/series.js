// The chart of chosen bins: released values as lines, with a band around each, and fresh looks as dots.

import { colour, escaped, find, number, shortTime, wallTime } from "./format.js";

const COLOURS = ["one", "two", "three", "four"];
export const MOST_BINS = COLOURS.length;
const touch = matchMedia("(pointer: coarse)").matches;

export function layout(extra = {}) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"), fixedrange: touch, automargin: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { color: colour("soft"), family: "system-ui, sans-serif", size: 12 },
    margin: { l: 4, r: 8, t: 8, b: 4 }, hovermode: "x unified", dragmode: touch ? false : "zoom",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    ...extra,
    xaxis: { ...axis, showgrid: false, spikecolor: colour("soft"), spikethickness: -1, spikedash: "dot", tickangle: 0, nticks: innerWidth < 720 ? 4 : 8, ...extra.xaxis },
    yaxis: { ...axis, ...extra.yaxis },
  };
}

export const draw = (id, traces, extra) =>
  Plotly.react(find(id), traces, layout(extra), { responsive: true, displayModeBar: false, displaylogo: false });

export class Series {
  constructor() {
    this.chosen = []; // bins, by number
    this.zoom = null; // ranges that somebody chose; without them the chart moves on with the stream
    find("live").addEventListener("click", () => this.zoomTo(null));
  }

  choose(bin) {
    if (this.chosen.includes(bin)) return;
    this.chosen = [...this.chosen, bin].slice(-MOST_BINS);
  }

  drop(bin) {
    this.chosen = this.chosen.filter((other) => other !== bin);
  }

  draw(history) {
    this.history = history;
    const x = history.releases.map(wallTime);
    const traces = this.chosen.flatMap((bin, place) => this.traces(history, bin, colour(COLOURS[place]), x));
    const all = x.length > 1 ? { range: [x[0], x[x.length - 1]] } : {};
    find("series-note").textContent = "Band: " + history.band() + ". Dots: steps at which something was measured.";
    draw("chart", traces, { xaxis: this.zoom?.x ? { range: this.zoom.x } : all, yaxis: { title: { text: escaped(history.title) }, ...(this.zoom?.y ? { range: this.zoom.y } : { rangemode: "tozero" }) } });
    if (!this.watching) {
      this.watching = true;
      find("chart").on("plotly_relayout", (change) => this.zoomed(change));
    }
    this.drawChips(history);
    this.drawTable(history);
  }

  traces(history, bin, shade, x) {
    const intervals = history.releases.map((release) => history.interval(release, bin));
    const line = (y, rest) => ({ x, y, type: "scatter", mode: "lines", line: { color: shade, width: 0, shape: "hv" }, hoverinfo: "skip", ...rest });
    const values = history.releases.map((release) => release.values[bin]);
    const fresh = history.releases.map((release, index) => (release.fresh ? values[index] : null));
    const band = [
      line(intervals.map((each) => each[0])),
      line(intervals.map((each) => each[1]), { fill: "tonexty", fillcolor: shade + "2b" }),
    ];
    const released = line(values, {
      name: escaped(history.bins[bin]), line: { color: shade, width: 2, shape: "hv" }, hoverinfo: "all",
      customdata: intervals, hovertemplate: "%{y:,.0f}  (%{customdata[0]:,.0f} to %{customdata[1]:,.0f})".replaceAll(".0f", "." + history.digits + "f"),
    });
    const looks = { x, y: fresh, type: "scatter", mode: "markers", marker: { color: shade, size: 6, line: { color: colour("card"), width: 1.5 } }, cliponaxis: false, hoverinfo: "skip" };
    return [...band, ...this.truth(history, bin, x), released, looks];
  }

  truth(history, bin, x) {
    if (!history.truth.size || !find("truth").checked) return [];
    const y = history.releases.map((release) => history.truth.get(release.step)?.[bin] ?? null);
    return [{
      x, y, type: "scatter", mode: "lines", name: "synthetic truth", hovertemplate: "%{y:,.0f}",
      line: { color: colour("true"), width: 1.5, dash: "dot", shape: "hv" },
    }];
  }

  zoomed(change) {
    const range = (axis) => (axis + ".range[0]" in change ? [change[axis + ".range[0]"], change[axis + ".range[1]"]] : null);
    if (range("xaxis") || range("yaxis")) this.zoomTo({ x: range("xaxis") ?? this.zoom?.x, y: range("yaxis") ?? this.zoom?.y });
    else if (change["xaxis.autorange"]) this.zoomTo(null);
  }

  zoomTo(ranges) {
    this.zoom = ranges;
    find("live").hidden = ranges === null;
    this.draw(this.history);
  }

  drawChips(history) {
    find("chosen").replaceChildren(...this.chosen.map((bin, place) => {
      const chip = document.createElement("li");
      const part = (name, text) => {
        const span = document.createElement("span");
        span.className = name;
        span.textContent = text;
        return span;
      };
      const swatch = part("swatch", "");
      swatch.style.background = colour(COLOURS[place]);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.dataset.bin = bin;
      remove.setAttribute("aria-label", "Take " + history.bins[bin] + " out of the chart");
      chip.append(swatch, part("name", history.bins[bin]), part("value", number(history.latest?.values[bin], history.digits || 1)), remove);
      return chip;
    }));
  }

  drawTable(history) {
    if (!find("table-view").open) return;
    const row = (tag, texts) => {
      const tr = document.createElement("tr");
      tr.append(...texts.map((text) => Object.assign(document.createElement(tag), { textContent: text })));
      return tr;
    };
    const names = this.chosen.map((bin) => history.bins[bin]);
    document.querySelector("#table-view thead").replaceChildren(row("th", ["time", "looked", ...names]));
    const rows = history.releases.slice(-20).reverse().map((release) => {
      const cells = this.chosen.map((bin) => {
        const [low, high] = history.interval(release, bin);
        return number(release.values[bin], history.digits || 1) + (low === null ? "" : " (" + number(low, history.digits) + " to " + number(high, history.digits) + ")");
      });
      return row("td", [shortTime(release), release.fresh ? "yes" : "no", ...cells]);
    });
    find("numbers").replaceChildren(...rows);
  }
}
