"use strict";
// The text of an element, which stands in it compressed and written in 85 letters.
async function unpacked(id) {
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const digit = new Uint8Array(128);
  [...letters].forEach((letter, place) => { digit[letter.charCodeAt(0)] = place; });
  const text = document.getElementById(id).textContent;
  const words = new DataView(new ArrayBuffer(Math.ceil(text.length / 5) * 4));
  for (let begin = 0; begin < text.length; begin += 5) {
    let word = 0;
    for (let at = begin; at < begin + 5; at++) word = 85 * word + (at < text.length ? digit[text.charCodeAt(at)] : 84);
    words.setUint32(begin / 5 * 4, word);
  }
  const packed = new Blob([new Uint8Array(words.buffer, 0, Math.floor(text.length * 4 / 5))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

const plotlyReady = unpacked("plotly").then((text) => {
  const script = document.createElement("script");
  script.textContent = text;
  document.head.append(script);
});
plotlyReady.catch(() => {
  for (const chart of document.querySelectorAll(".chart")) chart.textContent = "This chart needs a browser of 2023 or newer.";
});
