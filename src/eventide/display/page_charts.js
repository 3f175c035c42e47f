"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const touch = matchMedia("(pointer: coarse)").matches;

// Draw a chart in the colours of the page; `extra` is what its layout has of its own.
function draw(id, traces, extra) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"), fixedrange: touch, automargin: true };
  Plotly.react(find(id), traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("soft"), family: "system-ui, sans-serif", size: 12 },
    margin: { l: 8, r: 16, t: 8, b: 8 }, dragmode: touch ? false : "zoom",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    ...extra,
    xaxis: { ...axis, ...extra.xaxis }, yaxis: { ...axis, ...extra.yaxis },
  }, { responsive: true, displayModeBar: false });
}

// Draw everything as soon as that is possible, and again when the page turns light or dark.
function drawAlways(drawAll) {
  plotlyReady.then(() => {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    drawAll();
  });
}
