// Bins over time on a canvas: one column a step, one row a bin (or several, where there are more bins than pixels). With
// levels the rows are those of the group that is open.

import { colour, find, number, shortTime } from "./format.js";

const SHADES = 256;
const NAME_HEIGHT = 13; // pixels that the name of a row needs

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
    if (!history?.releases.length) {
      this.clear();
      return;
    }
    if (!this.order) {
      const bySize = document.querySelector("input[name=order]:checked").value === "size";
      this.order = bySize ? history.busiest(history.latest.values, this.group.rows) : this.group.rows;
    }
    const height = Math.max(1, Math.floor(this.canvas.getBoundingClientRect().height));
    const [columns, rows] = [history.releases.length, Math.min(this.order.length, height)];
    const cells = this.cells(columns, rows);
    const limit = this.limit(cells);
    this.paint(cells, columns, rows, limit);
    this.scale();
    this.name(rows, height);
    if (this.cursor && (this.cursor.column >= columns || this.cursor.row >= rows)) this.cursor = null; // the picture shrank
    find("heat-high").textContent = number(limit, history.digits) + " or more";
    find("heat-first").textContent = shortTime(history.releases[0]);
    find("heat-last").textContent = shortTime(history.latest);
    find("heat-note").textContent =
      number(this.order.length) + (history.levels.levels.length ? " rows" : " bins") + ", the last " + number(columns) + " steps" + (rows < this.order.length ? "; a row shows the largest of several" : "");
    this.showCell();
  }

  // The names of the rows, every so many where they are low; of a row that stands for several, none.
  name(rows, height) {
    const every = Math.ceil((NAME_HEIGHT * rows) / height);
    const shown = rows === this.order.length ? [...Array(Math.ceil(rows / every)).keys()].map((place) => place * every) : [];
    this.canvas.parentElement.classList.toggle("named", shown.length > 0);
    find("heat-names").replaceChildren(...shown.map((row) => {
      const name = document.createElement("span");
      name.textContent = name.title = this.history.bins[this.order[row]];
      name.style.top = ((row + 0.5) / rows) * 100 + "%";
      return name;
    }));
  }

  clear() {
    find("heat-names").replaceChildren();
    this.canvas.width = this.canvas.width; // setting it wipes the canvas
    ["heat-first", "heat-last", "heat-high", "heat-note"].forEach((id) => (find(id).textContent = ""));
    this.showCell();
  }

  firstPlace(row, rows) {
    return Math.floor((row * this.order.length) / rows);
  }

  // The largest released value of the bins of each row, row by row.
  cells(columns, rows) {
    const cells = new Float64Array(columns * rows);
    this.history.releases.forEach((release, column) => {
      for (let row = 0; row < rows; row++) {
        let largest = -Infinity;
        for (let place = this.firstPlace(row, rows); place < this.firstPlace(row + 1, rows); place++) {
          largest = Math.max(largest, release.values[this.order[place]]);
        }
        cells[row * columns + column] = largest;
      }
    });
    return cells;
  }

  // The strongest colour belongs to the top percent, so that one giant does not darken everything else.
  limit(cells) {
    const every = Math.max(1, Math.floor(cells.length / 5000));
    const sample = cells.filter((_, index) => index % every === 0).sort();
    return Math.max(this.history.info.unit ?? 0.01, sample[Math.floor(0.99 * (sample.length - 1))]);
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
      pixels[index] = shades[Math.round(part * (SHADES - 1))];
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
    return bins.reduce((best, bin) => (values[bin] > values[best] ? bin : best));
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
