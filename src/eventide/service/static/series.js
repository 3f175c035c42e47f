// The chart of chosen bins: released values as lines, with a band around each, and measurements as dots. Few extreme
// values do not own the axis: they are marked at its ends, until somebody asks for all.

import { colour, escaped, find, many, number } from "./format.js";
import { robustRange } from "./range.js";
import { shortTime, wallTime } from "./times.js";

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
    this.all = false; // whether the axis shows extreme values as well
    find("all-values").addEventListener("click", () => { this.all = !this.all; this.draw(this.history); });
    find("live").addEventListener("click", () => this.zoomTo(null));
  }

  choose(bin) {
    if (this.chosen.includes(bin)) return;
    this.chosen = [...this.chosen, bin].slice(-MOST_BINS);
  }

  drop(bin) {
    this.chosen = this.chosen.filter((other) => other !== bin);
  }

  // `idle` says since when nothing is new, if so; `zone` is that of the times.
  draw(history, idle = this.idle, zone = this.zone) {
    [this.history, this.idle, this.zone] = [history, idle, zone];
    const empty = !history.releases.length;
    find("chart").hidden = empty;
    find("nothing-yet").hidden = !empty;
    find("series-saved").hidden = find("table-view").hidden = empty;
    find("series-note").textContent = "Band: " + history.band() + ". Dots: steps at which something was measured. Times: " + zone + ".";
    const first = history.info.next_start && shortTime({ start: history.info.next_start });
    find("nothing-yet").textContent = "Nothing was released yet." + (first ? " The first step begins at " + first + " and is released when it is over." : "");
    const shown = this.figure(history);
    this.tellBeyond(shown.beyond);
    if (!empty) draw("chart", shown.traces, shown.layout);
    if (!empty && !this.watching) {
      this.watching = true;
      find("chart").on("plotly_relayout", (change) => this.zoomed(change));
    }
    this.drawChips(history);
    this.drawTable(history);
  }

  figure(history) {
    const x = history.releases.map(wallTime);
    const lines = this.chosen.map((bin) => history.releases.map((release) => ({ value: release.values[bin], ends: history.interval(release, bin) })));
    const every = lines.flat();
    const robust = this.zoom?.y ? null : robustRange([...every.map(({ value }) => value), ...every.flatMap(({ ends }) => ends)]);
    const isBeyond = (value) => robust && value !== null && (value < robust[0] || value > robust[1]);
    const beyond = { robust, values: every.map(({ value }) => value).filter(isBeyond) };
    const range = robust && !this.all ? robust : null;
    const traces = this.chosen.flatMap((bin, place) => [
      ...this.traces(history, bin, colour(COLOURS[place]), x, lines[place]),
      ...(range ? [marksBeyond(x, lines[place], range, isBeyond, colour(COLOURS[place]), history.digits)] : []),
    ]);
    const room = range && 0.06 * (range[1] - range[0]);
    const y = this.zoom?.y ?? (range && [range[0] < 0 ? range[0] - room : 0, range[1] + room]);
    const until = this.idle?.until > x[x.length - 1] ? this.idle.until : x[x.length - 1];
    const all = x.length > 1 || until > x[0] ? { range: [x[0], until] } : {};
    const layout = {
      xaxis: this.zoom?.x ? { range: this.zoom.x } : all,
      yaxis: { title: { text: escaped(history.title) }, ...(y ? { range: y } : { rangemode: "tozero" }) },
      shapes: this.idle ? [shade(this.idle)] : [],
    };
    return { traces, layout, beyond };
  }

  // How many values are beyond the axis, or would be, and the way to see them or not.
  tellBeyond({ values }) {
    find("beyond").hidden = !values.length;
    if (!values.length) return;
    const farthest = values.reduce((far, value) => (Math.abs(value) > Math.abs(far) ? value : far));
    find("beyond-note").textContent = this.all
      ? "The axis shows all values."
      : many(values.length, "value") + (values.length === 1 ? " is" : " are") + " beyond the axis, marked ▲; the farthest is " + number(farthest, this.history.digits) + ".";
    find("all-values").textContent = this.all ? "Fit the axis to most values" : "Show all values";
  }

  // The releases between the ends of the axis of times.
  get visible() {
    const ends = this.zoom?.x?.map((end) => (typeof end === "string" ? end.replace(" ", "T") : end));
    const inside = ends ? this.history.releases.filter((release) => wallTime(release) >= ends[0] && wallTime(release) <= ends[1]) : [];
    return inside.length ? inside : this.history.releases;
  }

  // The chart as a picture with a title and a legend, since these stand around it on the page.
  async picture() {
    const { traces, layout: own } = this.figure(this.history);
    const title = escaped(this.history.info.name + ": released " + this.history.title + ", times: " + this.zone);
    const data = traces.map((trace, place) => ({ ...trace, showlegend: Boolean(trace.name) && traces.findIndex(({ name }) => name === trace.name) === place }));
    const size = { width: Math.max(720, find("chart").clientWidth), height: Math.max(420, find("chart").clientHeight) };
    const whole = { ...layout(own), ...size, title: { text: title, font: { size: 15, color: colour("ink") }, x: 0.02, xanchor: "left" } };
    Object.assign(whole, { paper_bgcolor: colour("card"), showlegend: true, legend: { orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom" }, margin: { l: 60, r: 20, t: 90, b: 50 } });
    const written = await Plotly.toImage({ data, layout: whole }, { format: "png", scale: 2, imageDataOnly: true, ...size });
    return new Blob([Uint8Array.from(atob(written), (letter) => letter.charCodeAt(0))], { type: "image/png" });
  }

  traces(history, bin, shade, x, told) {
    const intervals = told.map(({ ends }) => ends);
    const line = (y, rest) => ({ x, y, type: "scatter", mode: "lines", line: { color: shade, width: 0, shape: "hv" }, hoverinfo: "skip", ...rest });
    const values = told.map(({ value }) => value);
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
    document.querySelector("#table-view thead").replaceChildren(row("th", ["time", "measured", ...names]));
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

// A mark at the end of the axis for each value beyond it.
function marksBeyond(x, told, [low, high], isBeyond, shade, digits) {
  const values = told.map(({ value }) => (isBeyond(value) ? value : null));
  return {
    x, y: values.map((value) => (value === null ? null : value > high ? high : low)), type: "scatter", mode: "markers", cliponaxis: false,
    marker: { color: shade, size: 11, symbol: values.map((value) => (value < low ? "triangle-down" : "triangle-up")) },
    text: values.map((value) => number(value, digits)), hovertemplate: "beyond the axis: %{text}<extra></extra>",
  };
}

// Where nothing is new, the chart is grey.
function shade({ from, until, label }) {
  return {
    type: "rect", xref: "x", yref: "paper", x0: from, x1: until, y0: 0, y1: 1, layer: "below", line: { width: 0 },
    fillcolor: colour("soft") + "26", label: { text: label, textposition: "top center", font: { color: colour("ink"), size: 12 } },
  };
}
