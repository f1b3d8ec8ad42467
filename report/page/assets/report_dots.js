"use strict";
// The latency of each exchange, or the density of many, on the axis of the lanes; labels of lanes.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const holder = document.getElementById("latency-plot"), legend = document.getElementById("latency-legend");
  const {dots, density} = data;
  if (!holder || !(dots || density) || !reportZoom.ticks) return;
  const NS = "http://www.w3.org/2000/svg", HEIGHT = 260, TOP = 16, BOTTOM = 22, STEPS = [1, 2, 5];
  const OTHER = "var(--soft)";
  const cells = density && density.bucket.map((each) => 2 ** (each / density.per_doubling) / 1000);
  const every = (dots ? dots.us : cells).filter((each) => each > 0);
  // No spread: a large capture has more values than a call takes arguments.
  const extreme = (better) => every.reduce((best, each) => better(best, each) ? best : each, every[0] || 1);
  const low = Math.floor(Math.log10(extreme((best, each) => best <= each)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(extreme((best, each) => best >= each))));

  function node(name, attributes, parent, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, each] of Object.entries(attributes)) made.setAttribute(key, each);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  const latency = (us) => us >= 1e6 ? `${us / 1e6} s` : us >= 1000 ? `${us / 1000} ms` : `${us} µs`;
  const exact = (us) => us === null ? "no response" : us >= 1000 ? `${(us / 1000).toLocaleString("en")} ms` : `${us} µs`;
  const y = (us) => TOP + (high - Math.log10(Math.max(us, 10 ** low))) / (high - low) * (HEIGHT - TOP - BOTTOM);
  const gutter = () => parseFloat(getComputedStyle(holder).getPropertyValue("--gutter")) || 110;
  const color = (api) => api >= 0 && api < dots.colors ? `var(--c${[0, 4, 1, 2][api]})` : OTHER;

  // Times of ticks as seconds since the begin of the plots, and their texts.
  function timeTicks(from, to, width) {
    const most = Math.max(2, Math.floor(width / 90)), least = (to - from) / most;
    const power = 10 ** Math.floor(Math.log10(least));
    let step = [...STEPS, 10].map((each) => each * power).find((each) => each >= least);
    if (step > 10) step = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400].find((each) => each >= least) || step;
    const out = [], first = Math.ceil((from + data.begin_s) / step - 1e-9);
    for (let i = 0; i <= most + 1; i += 1) {
      const at = (first + i) * step;
      if (at - data.begin_s <= to + 1e-9) out.push(at);
    }
    const texts = reportZoom.ticks(out, step);
    return out.map((each, i) => [each - data.begin_s, texts[i]]);
  }

  function draw() {
    const from = reportZoom.min - data.begin_s, to = reportZoom.max - data.begin_s;
    const width = Math.max(240, holder.clientWidth), left = gutter(), room = width - left;
    const x = (at) => left + (at - from) / (to - from) * room;
    const svg = node("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, class: "latency"});
    for (let power = low; power <= high; power += 1) {
      const at = y(10 ** power);
      node("line", {x1: left, x2: width, y1: at, y2: at, class: "grid"}, svg);
      node("text", {x: left - 6, y: at + 4, "text-anchor": "end"}, svg, latency(10 ** power));
    }
    const ticks = timeTicks(from, to, room);
    for (const [at, text] of ticks) {
      node("line", {x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid"}, svg);
      if (x(at) < width - 30) node("text", {x: x(at), y: HEIGHT - 6, "text-anchor": "middle"}, svg, text);
    }
    if (dots) drawDots(svg, x, from, to); else drawCells(svg, x, from, to);
    holder.replaceChildren(svg);
    labelLanes(from, to, ticks);
  }

  function drawDots(svg, x, from, to) {
    const crosses = [];
    dots.at.forEach((at, i) => {
      if (at < from || at > to) return;
      const us = dots.us[i], isError = dots.kind[i] === 1, cx = x(at), cy = us === null ? TOP - 6 : y(us);
      let mark;
      if (us === null) mark = node("text", {x: cx, y: cy + 4, class: "lost", "text-anchor": "middle"}, svg, "?");
      else if (isError) crosses.push(mark = node("path", {d: `M${cx - 4},${cy - 4}l8,8m0,-8l-8,8`, class: "error"}));
      else mark = node("circle", {cx, cy, r: 3, class: dots.kind[i] === 2 ? "dot empty" : "dot"}, svg);
      if (us !== null && !isError) mark.style.fill = color(dots.api[i]);
      const api = dots.apis[dots.api[i]] || "response";
      node("title", {}, mark, `${api} ${exact(us)}, packet ${dots.packet[i]}, ${dots.title[i]}`);
    });
    svg.append(...crosses);
  }

  function drawCells(svg, x, from, to) {
    const most = density.count.reduce((a, b) => Math.max(a, b), 1), factor = 2 ** (1 / density.per_doubling);
    density.at.forEach((at, i) => {
      if (at + density.width_s < from || at > to) return;
      const begin = Math.max(at, from), end = Math.min(at + density.width_s, to);
      const top = y(cells[i] * factor), count = density.count[i], errors = density.errors[i];
      const box = {x: x(begin), y: top, width: Math.max(1, x(end) - x(begin)), height: Math.max(1, y(cells[i]) - top)};
      const depth = 0.08 + 0.92 * Math.log(1 + count) / Math.log(1 + most), cell = node("g", {}, svg);
      node("rect", {...box, class: "cell", "fill-opacity": depth.toFixed(2)}, cell);
      if (errors) node("rect", {...box, class: "cell failed", "fill-opacity": (depth * errors / count).toFixed(2)}, cell);
      node("title", {}, cell, `${count.toLocaleString("en")} exchanges, ${errors} with errors, about ${exact(Math.round(cells[i]))}`);
    });
  }

  function labelLanes(from, to, ticks) {
    reportZoom.moveLanes();
    for (const lanes of document.querySelectorAll(".lanes")) {
      for (const old of lanes.querySelectorAll(".mark-label, .lane-axis")) old.remove();
      for (const lane of lanes.querySelectorAll(".lane")) labelLane(lane, from, to);
      const axis = document.createElement("div");
      axis.className = "lane-axis";
      const left = gutter(), room = lanes.clientWidth - left;
      for (const [at, text] of ticks) {
        const label = document.createElement("span"), place = left + (at - from) / (to - from) * room;
        if (place > lanes.clientWidth - 30) continue;
        label.textContent = text;
        label.style.left = `${place}px`;
        axis.append(label);
      }
      lanes.append(axis);
    }
  }

  // A label stands behind its mark, where it reaches no other one.
  function labelLane(lane, from, to) {
    const left = gutter(), room = lane.clientWidth - left, px = (at) => (Number(at) - from) / (to - from) * room;
    const marks = [...lane.querySelectorAll("rect[data-label]")].filter((each) => px(each.dataset.end) >= 0 && px(each.dataset.begin) <= room);
    marks.sort((a, b) => Number(a.dataset.end) - Number(b.dataset.end));
    let reached = 0;
    for (const mark of marks) {
      const begin = Math.max(px(mark.dataset.end), px(mark.dataset.begin) + 3) + 4, size = mark.dataset.label.length * 6.4;
      const isFree = marks.every((each) => each === mark || px(each.dataset.begin) > begin + size || px(each.dataset.end) < begin - 3);
      if (!isFree || begin < reached || begin + size > room) continue;
      const label = document.createElement("span");
      label.className = "mark-label";
      label.textContent = mark.dataset.label;
      label.style.left = `${left + begin}px`;
      lane.append(label);
      reached = begin + size;
    }
  }

  // The part of the capture that events do not cover is no silence.
  for (const lanes of document.querySelectorAll(".lanes")) {
    const until = Number(lanes.dataset.until), end = reportZoom.max - data.begin_s;
    if (!(end - until > data.width_s)) continue;
    for (const svg of lanes.querySelectorAll("svg")) {
      const rest = node("rect", {class: "uncovered", y: 0, height: 16, "data-begin": until, "data-end": end, x: until / end * 1000,
        width: (1 - until / end) * 1000});
      node("title", {}, rest, "not covered: see --events");
      svg.prepend(rest);
    }
  }

  if (legend) {
    const entries = dots.apis.slice(0, dots.colors).map((name, i) => [color(i), name, "●"]);
    if (dots.apis.length > dots.colors) entries.push([OTHER, "other", "●"]);
    if (dots.kind.includes(2)) entries.push(["var(--soft)", "pale: fetch without records", "○"]);
    if (dots.kind.includes(1)) entries.push(["var(--bad)", "error", "✕"]);
    if (dots.us.includes(null)) entries.push(["var(--warn)", "no response", "?"]);
    for (const [tint, name, sign] of entries) {
      const entry = document.createElement("span"), mark = document.createElement("b");
      mark.textContent = `${sign} `;
      mark.style.color = tint;
      entry.append(mark, name);
      legend.append(entry);
    }
  }

  // Dragging over the plot zooms everything, as in the other plots.
  let begun = null;
  const timeAt = (event) => {
    const box = holder.getBoundingClientRect(), left = gutter();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left - left) / (box.width - left)));
    return reportZoom.min + share * (reportZoom.max - reportZoom.min);
  };
  holder.addEventListener("pointerdown", (event) => { begun = [timeAt(event), event.clientX]; });
  holder.addEventListener("pointerup", (event) => {
    if (begun && Math.abs(event.clientX - begun[1]) > 5) {
      const ends = [begun[0], timeAt(event)].sort((a, b) => a - b);
      reportZoom.zoom(...ends);
    }
    begun = null;
  });
  holder.tabIndex = 0;
  holder.addEventListener("keydown", reportZoom.pressed);
  holder.addEventListener("dblclick", () => reportZoom.whole());
  reportZoom.listeners.push(draw);
  for (const each of ["resize", "beforeprint", "afterprint"]) addEventListener(each, draw);
  draw();
})();
