"use strict";
// Plots over time, their zoom, and what follows it: lanes and rows of tables.
const reportZoom = {listeners: [], min: 0, max: 0, isWhole: true};
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const holder = document.getElementById("plots");
  if (!holder || !data.x.length) return;
  const byId = (id) => document.getElementById(id);
  const dimension = byId("dimension"), value = byId("value");
  const xs = data.x.map((each) => each + data.begin_s);
  const first = xs[0], last = Math.max(xs[xs.length - 1] + data.width_s, first + data.width_s);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rate = (each) => each / data.width_s;
  const ms = (each) => each === null ? null : each / 1000;
  const shown = (each) => each === null || each === undefined ? "–" :
    each >= 100 ? Math.round(each).toLocaleString("en") : String(Number(each.toPrecision(3)));
  const si = (each) => {
    const [unit, name] = [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]].find(([size]) => Math.abs(each) >= size) || [1, ""];
    return `${Number((each / unit).toPrecision(3))}${name}`;
  };
  const bin = data.width_s >= 1 ? `${data.width_s} s` : `${Math.round(data.width_s * 1000)} ms`;
  const PLOTS = [
    {title: "Exchanges per second", lines: [["exchanges", "count", rate]], compared: ["count", rate]},
    {title: "Bytes per second", lines: [["requests", "request_bytes", rate], ["responses", "response_bytes", rate]],
      compared: ["bytes", rate]},
    {title: "Latency in ms", log: true, compared: ["p99", ms], comparedTitle: "Latency in ms, 99th percentile",
      lines: [["p50", "p50", ms], ["p95", "p95", ms], ["p99", "p99", ms], ["max", "max", ms]]},
    {title: `Errors and requests without a response, in each ${bin}`, lines: [["errors", "errors", Number],
      ["unanswered", "unanswered", Number]], compared: ["errors", Number], comparedTitle: `Exchanges with errors, in each ${bin}`},
    ...(data.lags.length ? [{title: "Lag of groups, in records", fixed: data.lags.map((each) => [each.name, each.lag])}] : []),
  ];

  function column(series, name, change) {
    const isTime = /^(p\d+|max)$/.test(name);
    const out = new Array(xs.length).fill(isTime ? null : 0);
    series.at.forEach((place, i) => {
      const found = name === "bytes" ? series.request_bytes[i] + series.response_bytes[i] : series[name][i];
      out[place] = change(found);
    });
    return out;
  }

  function linesOf(plot) {
    if (plot.fixed) return plot.fixed;
    const every = data.series[dimension.value];
    if (dimension.value !== "all" && value.value === "") {
      return every.slice(0, data.compared).map((each) => [each.name, column(each, ...plot.compared)]);
    }
    const one = every[Number(value.value || 0)];
    return one ? plot.lines.map(([label, name, change]) => [label, column(one, name, change)]) : [];
  }

  // Ticks as short as their distance allows: 09:46, 09:46:31 or 09:46:31.5.
  function ticks(every, step) {
    if (!data.has_clock) return every.map((s) => `${Number(s.toPrecision(6))} s`);
    const length = step >= 86400 ? 10 : step >= 60 ? 16 : step >= 1 ? 19 : 23;
    return every.map((s) => new Date(Math.round(s * 1000)).toISOString().slice(step >= 86400 ? 0 : 11, length)
      .replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
  }

  const clock = (s) => data.has_clock ? new Date(Math.round(s * 1000)).toISOString().slice(11, 23) : `${s.toFixed(3)} s`;

  const decade = (each) => Math.abs(Math.log10(each) - Math.round(Math.log10(each))) < 1e-6 ? each : null;

  function options(plot, lines, width) {
    const hasValues = lines.some(([, values]) => values.some((each) => each > 0));
    const axis = {stroke: () => color("--ink"), grid: {stroke: () => color("--line"), width: 1},
      ticks: {stroke: () => color("--line"), width: 1}, font: "11px system-ui, sans-serif"};
    return {
      width, height: 200, tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "UTC"),
      cursor: {sync: {key: "report"}, drag: {x: true, y: false}, bind: {dblclick: () => () => zoom(first, last)}},
      scales: {x: {time: data.has_clock}, y: plot.log && hasValues ? {distr: 3} :
        {range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1]}},
      axes: [{...axis, space: 70, values: (u, every, i, space, step) => ticks(every, step)}, {...axis, size: 62, grid: plot.log ? {...axis.grid, filter: (u, every) => every.map(decade)} : axis.grid, values: (u, ticks) => ticks.map((each) => each === null ? "" : si(each))}],
      series: [{label: "time", value: (u, s) => s === null ? "–" : clock(s)}, ...lines.map(([label], i) => ({
        label, width: 1.5, stroke: () => color(`--c${i % 8}`), spanGaps: false,
        points: {show: lines[i][1].length < 40 || plot.log, size: 4}, value: (u, each) => shown(each)}))],
      hooks: {setScale: [(u, key) => key === "x" && follow(u.scales.x.min, u.scales.x.max)]},
    };
  }

  const figures = PLOTS.map((plot) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    figure.append(caption);
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.addEventListener("keydown", pressed);
    holder.append(figure);
    return {plot, figure, caption, chart: null, title: ""};
  });

  function draw() {
    for (const each of figures) {
      const lines = linesOf(each.plot), compares = dimension.value !== "all" && value.value === "";
      if (each.chart) each.chart.destroy();
      each.title = compares && each.plot.comparedTitle || each.plot.title;
      each.peaks = lines;
      each.figure.setAttribute("aria-label", each.title);
      each.chart = new uPlot(options(each.plot, lines, each.figure.clientWidth - 16),
        [xs, ...lines.map(([, values]) => values)], each.figure);
      for (const label of each.figure.querySelectorAll(".u-series:not(:first-child) th")) {
        label.tabIndex = 0;
        label.setAttribute("role", "button");
        label.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); label.click(); }
        });
      }
      each.chart.setScale("x", {min: reportZoom.min, max: reportZoom.max});
    }
    describe();
  }

  // The highest value of each plot in words: for screen readers, and for print.
  function describe() {
    for (const each of figures) {
      let best = null, at = 0, name = "";
      for (const [label, values] of each.peaks) {
        values.forEach((one, i) => {
          const isIn = xs[i] >= reportZoom.min && xs[i] <= reportZoom.max;
          if (isIn && one !== null && (best === null || one >= best)) [best, at, name] = [one, i, label];
        });
      }
      const small = document.createElement("small");
      small.textContent = best ? ` – bins of ${bin}; highest: ${shown(best)} (${name}) at ${clock(xs[at])}` : ` – bins of ${bin}; none`;
      each.caption.replaceChildren(each.title, small);
    }
  }

  let isFollowing = false;
  function follow(min, max) {
    if (isFollowing || min === null || max === null || (min === reportZoom.min && max === reportZoom.max)) return;
    zoom(min, max);
  }

  function zoom(min, max) {
    const least = data.width_s * 2, length = Math.min(Math.max(max - min, least), last - first);
    let from = (min + max - length) / 2;
    from = Math.min(Math.max(from, first), last - length);
    [reportZoom.min, reportZoom.max] = [from, from + length];
    reportZoom.isWhole = length >= last - first;
    isFollowing = true;
    for (const each of figures) if (each.chart) each.chart.setScale("x", {min: from, max: from + length});
    isFollowing = false;
    byId("range").textContent = reportZoom.isWhole ? "" : `${clock(from)} to ${clock(from + length)}`;
    describe();
    moveLanes();
    for (const listener of reportZoom.listeners) listener(from - data.begin_s, from + length - data.begin_s);
  }

  function moveLanes() {
    const begin = reportZoom.min - data.begin_s, length = reportZoom.max - reportZoom.min;
    for (const rect of document.querySelectorAll(".lane rect")) {
      const from = (Number(rect.dataset.begin) - begin) / length * 1000;
      const width = (Number(rect.dataset.end) - Number(rect.dataset.begin)) / length * 1000;
      rect.setAttribute("x", from.toFixed(2));
      rect.setAttribute("width", Math.max(width, 3).toFixed(2));
    }
  }

  function step(share) {
    const by = (reportZoom.max - reportZoom.min) * share;
    zoom(reportZoom.min + by, reportZoom.max + by);
  }
  function scale(factor) {
    const middle = (reportZoom.min + reportZoom.max) / 2, half = (reportZoom.max - reportZoom.min) / 2 * factor;
    zoom(middle - half, middle + half);
  }

  function moveCursor(by) {
    const chart = figures[0].chart, now = chart.cursor.idx;
    let place = now === null || now === undefined ? (by > 0 ? -1 : xs.length) : now;
    do place += by; while (xs[place] < reportZoom.min || (place < xs.length && xs[place] > reportZoom.max && by < 0));
    if (place < 0 || place >= xs.length || xs[place] > reportZoom.max) return;
    for (const each of figures) each.chart.setCursor({left: each.chart.valToPos(xs[place], "x"), top: 20});
  }

  function pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const keys = {"+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), "0": () => zoom(first, last),
      ArrowLeft: () => event.shiftKey ? step(-0.25) : moveCursor(-1),
      ArrowRight: () => event.shiftKey ? step(0.25) : moveCursor(1)};
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }

  function fillValues() {
    value.replaceChildren();
    const every = dimension.value === "all" ? [] : data.series[dimension.value];
    if (every.length) value.append(new Option(`compare the ${Math.min(every.length, data.compared)} busiest`, ""));
    every.forEach((each, i) => value.append(new Option(each.name, String(i))));
    value.hidden = !every.length;
  }

  [reportZoom.min, reportZoom.max] = [first, last];
  Object.assign(reportZoom, {ticks, zoom, moveLanes, pressed, whole: () => zoom(first, last),
    around: (begin, end) => {
      const room = Math.max((end - begin) * 0.2, data.width_s * 2);
      zoom(begin - room + data.begin_s, end + room + data.begin_s);
      byId("latency-plot").scrollIntoView({block: "center"});
    }});
  for (const hidden of document.querySelectorAll(".controls, .keys")) hidden.hidden = false;
  dimension.addEventListener("change", () => { fillValues(); draw(); });
  value.addEventListener("change", () => draw());
  byId("zoom-in").addEventListener("click", () => scale(0.5));
  byId("zoom-out").addEventListener("click", () => scale(2));
  byId("earlier").addEventListener("click", () => step(-0.25));
  byId("later").addEventListener("click", () => step(0.25));
  byId("reset").addEventListener("click", () => zoom(first, last));
  fillValues();
  draw();
  let width = holder.clientWidth;
  addEventListener("resize", () => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    for (const each of figures) each.chart.setSize({width: each.figure.clientWidth - 16, height: 200});
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); draw(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); draw(); });
})();
