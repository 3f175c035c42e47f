// Bins over time on a canvas: one column a step, one row a bin (or several, where there are more bins than pixels). With
// levels the rows are those of the group that is open.

import { colour, find, many, number } from "./format.js";
import { marks, shortTime, wallTime } from "./times.js";

const SHADES = 256;
const NAME_HEIGHT = 14; // pixels that the name of a row needs
const TIME_WIDTH = 80; // and the mark of a time
const NAME_PART = 0.35; // the most of the width that names get
const FONT = "11px system-ui, sans-serif";

export class Heat {
  constructor(onChoose, group) {
    this.onChoose = onChoose;
    this.group = group;
    this.canvas = find("heat");
    this.picture = document.createElement("canvas");
    this.order = null;
    this.cursor = null; // { column, row } of the picture
    document.querySelectorAll("input[name=order]").forEach((input) => input.addEventListener("change", () => { this.order = null; this.draw(this.history); }));
    this.canvas.addEventListener("pointermove", (event) => this.point(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => { this.point(this.at(event)); this.choose(); });
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.history && this.draw(this.history)).observe(this.canvas);
  }

  draw(history) {
    if (this.history !== history) this.order = this.cursor = null;
    this.history = history;
    find("heat-section").classList.toggle("empty", !history?.releases.length);
    if (!history?.releases.length) {
      this.clear();
      return;
    }
    if (!this.order) {
      const bySize = document.querySelector("input[name=order]:checked").value === "size";
      this.order = bySize ? history.busiest(history.latest.values, this.group.rows) : this.group.rows;
    }
    const frame = this.canvas.parentElement;
    frame.style.setProperty("--rows", this.order.length);
    const height = Math.max(1, Math.floor(this.canvas.getBoundingClientRect().height));
    const [columns, rows] = [history.releases.length, Math.min(this.order.length, height)];
    const cells = this.cells(columns, rows);
    const limit = this.limit(cells);
    this.paint(cells, columns, rows, limit);
    this.name(rows, height);
    this.scale();
    this.markTimes();
    if (this.cursor && (this.cursor.column >= columns || this.cursor.row >= rows)) this.cursor = null; // the picture shrank
    find("heat-high").textContent = number(limit, history.digits) + " or more";
    find("heat-note").textContent =
      many(this.order.length, history.levels.levels.length ? "row" : "bin") + ", the last " + many(columns, "step") + ": from " + shortTime(history.releases[0]) +
      " to " + shortTime(history.latest) + (rows < this.order.length ? ". Each row shows the largest of several bins" : "") + ". Colour: " + history.title + (cells.some(Number.isNaN) ? "; blank where there are no data" : "") + ".";
    this.showCell();
  }

  // The names of the rows, every so many where they are low; a row that stands for several has the name of its first.
  name(rows, height) {
    const every = Math.ceil((NAME_HEIGHT * rows) / height);
    const names = this.history.bins;
    this.names = [...Array(Math.ceil(rows / every)).keys()].map((place) => {
      const [row, first] = [place * every, this.firstPlace(place * every, rows)];
      const several = this.firstPlace(row + 1, rows) - first > 1;
      return { middle: (row + 0.5) / rows, text: names[this.order[first]] + (several ? " …" : "") };
    });
    const frame = this.canvas.parentElement;
    const context = this.canvas.getContext("2d");
    context.font = FONT;
    const [widest, room] = [Math.max(...this.names.map(({ text }) => context.measureText(text).width)) + 12, NAME_PART * frame.clientWidth];
    const shared = widest > room ? sharedLength(this.names.map(({ text }) => text)) : 0;
    frame.style.setProperty("--names", Math.ceil(Math.min(widest, room)) + "px");
    find("heat-names").replaceChildren(...this.names.map(({ middle, text }) => {
      const name = document.createElement("span");
      name.title = text;
      name.textContent = (shared ? "… " : "") + text.slice(shared);
      name.style.top = middle * 100 + "%";
      return name;
    }));
  }

  // Times below the columns, at round ones.
  markTimes() {
    const [walls, width] = [this.history.releases.map(wallTime), this.canvas.clientWidth];
    const room = ({ at }) => (1 - at) * width; // to the right of a mark
    this.times = marks(walls, Math.max(2, Math.floor(width / TIME_WIDTH)))
      .map((mark) => ({ ...mark, at: mark.place / walls.length }))
      .filter((mark) => room(mark) >= TIME_WIDTH / 2)
      .map((mark) => (room(mark) >= TIME_WIDTH ? mark : { ...mark, below: "" }));
    find("heat-times").replaceChildren(...this.times.map(({ at, text, below }) => {
      const mark = document.createElement("span");
      mark.style.left = at * 100 + "%";
      mark.append(text, document.createElement("br"), below);
      return mark;
    }));
  }

  // The map as a picture with its names, times and colours, since these stand around it on the page.
  async saved(title) {
    const ratio = 2;
    const [left, top, right, bottom] = [parseFloat(this.canvas.parentElement.style.getPropertyValue("--names")) + 12, 56, 16, 64];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [ratio * (left + width + right), ratio * (top + height + bottom)];
    const context = sheet.getContext("2d");
    context.scale(ratio, ratio);
    context.fillStyle = colour("card");
    context.fillRect(0, 0, sheet.width, sheet.height);
    const write = (text, x, y, shade, align, most) => { context.fillStyle = colour(shade); context.textAlign = align; context.fillText(text, x, y, most); };
    context.font = "600 15px system-ui, sans-serif";
    write(title, 12, 24, "ink", "left", left + width);
    context.font = FONT;
    write(find("heat-note").textContent, 12, 42, "soft", "left", left + width);
    context.textBaseline = "middle";
    this.names.forEach(({ middle, text }) => write(text, left - 6, top + middle * height, "soft", "right", left - 12));
    this.times.forEach(({ at, text, below }) => {
      write(text, left + at * width, top + height + 10, "soft", "left");
      write(below, left + at * width, top + height + 24, "soft", "left");
    });
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, left, top, width, height);
    const ramp = context.createLinearGradient(left + 20, 0, left + 140, 0);
    ["heat-0", "heat-1", "heat-2", "heat-3"].forEach((name, place) => ramp.addColorStop(place / 3, colour(name)));
    write("0", left, top + height + 48, "soft", "left");
    write(find("heat-high").textContent, left + 148, top + height + 48, "soft", "left");
    context.fillStyle = ramp;
    context.fillRect(left + 20, top + height + 43, 120, 10);
    return new Promise((done) => sheet.toBlob(done, "image/png"));
  }

  clear() {
    find("heat-names").replaceChildren();
    find("heat-times").replaceChildren();
    this.canvas.width = this.canvas.width; // setting it wipes the canvas
    ["heat-high", "heat-note"].forEach((id) => (find(id).textContent = ""));
    this.showCell();
  }

  firstPlace(row, rows) {
    return Math.floor((row * this.order.length) / rows);
  }

  // The largest released value of the bins of each row, row by row; NaN where there are no data.
  cells(columns, rows) {
    const cells = new Float64Array(columns * rows);
    this.history.releases.forEach((release, column) => {
      for (let row = 0; row < rows; row++) {
        let largest = NaN;
        for (let place = this.firstPlace(row, rows); place < this.firstPlace(row + 1, rows); place++) {
          const value = release.values[this.order[place]];
          if (value !== null && !(value <= largest)) largest = value;
        }
        cells[row * columns + column] = largest;
      }
    });
    return cells;
  }

  // The strongest colour belongs to the top percent, so that one giant does not darken everything else.
  limit(cells) {
    const every = Math.max(1, Math.floor(cells.length / 5000));
    const sample = cells.filter((cell, index) => index % every === 0 && !Number.isNaN(cell)).sort();
    return Math.max(this.history.info.unit ?? 0.01, sample[Math.floor(0.99 * (sample.length - 1))] ?? 0);
  }

  paint(cells, columns, rows, limit) {
    const shades = ramp();
    this.picture.width = columns;
    this.picture.height = rows;
    const context = this.picture.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let index = 0; index < cells.length; index++) {
      const part = Math.sqrt(Math.max(0, Math.min(1, cells[index] / limit)));
      pixels[index] = Number.isNaN(cells[index]) ? 0 : shades[Math.round(part * (SHADES - 1))]; // no data: the page shows through
    }
    context.putImageData(image, 0, 0);
  }

  scale() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, 0, 0, this.canvas.width, this.canvas.height);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const inside = (position, size, cells) => Math.max(0, Math.min(cells - 1, Math.floor((position / size) * cells)));
    return {
      column: inside(event.clientX - box.left, box.width, this.picture.width),
      row: inside(event.clientY - box.top, box.height, this.picture.height),
    };
  }

  point(cell) {
    this.cursor = this.history?.releases.length ? cell : null;
    this.showCell();
  }

  showCell() {
    const frame = find("heat-cursor");
    frame.hidden = !this.cursor;
    if (!this.cursor) {
      find("heat-cell").textContent = "";
      return;
    }
    const [columns, rows] = [this.picture.width, this.picture.height];
    const box = this.canvas.getBoundingClientRect();
    const [width, height] = [box.width / columns, box.height / rows];
    const { column, row } = this.cursor;
    Object.assign(frame.style, {
      left: this.canvas.offsetLeft + column * width - 3 + "px", top: row * height - 3 + "px",
      width: Math.max(8, width + 6) + "px", height: Math.max(8, height + 6) + "px",
    });
    const release = this.history.releases[column];
    const bin = this.bin();
    find("heat-cell").textContent = this.history.bins[bin] + ", " + shortTime(release) + ": " + number(release.values[bin], this.history.digits || 1);
  }

  // The bin under the cursor; where a row stands for several, the largest of them at that step.
  bin() {
    const { column, row } = this.cursor;
    const rows = this.picture.height;
    const values = this.history.releases[column].values;
    const bins = this.order.slice(this.firstPlace(row, rows), this.firstPlace(row + 1, rows));
    return bins.reduce((best, bin) => (values[bin] !== null && !(values[bin] <= values[best] && values[best] !== null) ? bin : best));
  }

  pressed(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10] };
    if (event.key === "Enter") this.choose();
    else if (event.key in moves && this.history?.releases.length) {
      const [columns, rows] = [this.picture.width, this.picture.height];
      const from = this.cursor ?? { column: columns - 1, row: 0 };
      const within = (value, size) => Math.max(0, Math.min(size - 1, value));
      const [right, down] = this.cursor ? moves[event.key] : [0, 0];
      this.point({ column: within(from.column + right, columns), row: within(from.row + down, rows) });
    } else return;
    event.preventDefault();
  }

  choose() {
    if (this.cursor) this.onChoose(this.bin());
  }
}

// How many letters names have in common at their beginning, up to the last blank or mark: they need not be read again.
function sharedLength(names) {
  const [first, ...others] = names;
  const same = [...first].findIndex((letter, place) => others.some((name) => name[place] !== letter));
  return others.length ? first.slice(0, Math.max(0, same)).search(/[^\p{L}\p{N}][\p{L}\p{N}]*$/u) + 1 : 0;
}

// Colours from none to most, as pixels.
function ramp() {
  const stops = ["heat-0", "heat-1", "heat-2", "heat-3"].map((name) => colour(name).match(/\w\w/g).map((hex) => parseInt(hex, 16)));
  return Uint32Array.from({ length: SHADES }, (_, shade) => {
    const place = (shade / (SHADES - 1)) * (stops.length - 1);
    const [below, part] = [Math.min(stops.length - 2, Math.floor(place)), place - Math.min(stops.length - 2, Math.floor(place))];
    const [red, green, blue] = stops[below].map((from, channel) => Math.round(from + part * (stops[below + 1][channel] - from)));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}
