"use strict";
// Totals and errors of the zoomed range: sums of the bins that begin in it. Of the latencies only the
// largest is known there; rows that have no bins of their own show that.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tables = {apis: ["api", 1], clients: ["client", 2], topics: ["topic", 1], brokers: ["broker", 1], errors: ["error", 2]};
  const SUMS = {count: "count", errors: "errors", unanswered: "unanswered", request_bytes: "request_bytes",
    response_bytes: "response_bytes", exchanges: "count"};
  const followed = [];
  for (const [id, [dimension, names]] of Object.entries(tables)) {
    const table = document.querySelector(`#${id} table`);
    if (!table || !data.series || !data.series[dimension]) continue;
    const series = new Map(data.series[dimension].map((each) => [each.name, each]));
    const headings = [...table.tHead.rows[0].cells].map((each) => each.textContent.replaceAll(" ", "_"));
    const note = document.createElement("p");
    note.hidden = true;
    table.before(note);
    followed.push({note, headings, rows: [...table.tBodies[0].rows].map((row) => ({
      cells: [...row.cells].map((cell) => ({cell, text: cell.textContent, number: cell.dataset.number})),
      series: series.get([...row.cells].slice(0, names).map((cell) => cell.textContent || "(none)").join(" at ")),
    }))});
  }

  function measured(series, heading, min, max) {
    if (!(heading in SUMS) && heading !== "max_ms") return null;
    if (!series) return null;
    let found = heading === "max_ms" ? null : 0;
    series.at.forEach((place, i) => {
      if (data.x[place] + data.width_s <= min || data.x[place] >= max) return;
      if (heading === "max_ms") {
        const one = series.max[i];
        if (one !== null && (found === null || one / 1000 > found)) found = one / 1000;
      } else found += series[SUMS[heading]][i];
    });
    return found;
  }

  function follow(min, max) {
    for (const {note, headings, rows} of followed) {
      note.hidden = reportZoom.isWhole;
      note.textContent = "Of the zoomed time; percentiles are known of the whole capture only.";
      for (const {cells, series} of rows) {
        headings.forEach((heading, place) => {
          const {cell, text, number} = cells[place];
          const isFigure = heading in SUMS || heading.endsWith("_ms");
          if (!isFigure) return;
          const found = reportZoom.isWhole ? null : measured(series, heading, min, max);
          cell.textContent = reportZoom.isWhole ? text : found === null ? "–" :
            heading.endsWith("_ms") ? found.toFixed(3) : found.toLocaleString("en");
          if (number !== undefined) cell.dataset.number = reportZoom.isWhole ? number : found === null ? "" : String(found);
        });
      }
    }
  }

  if (typeof reportZoom !== "undefined") reportZoom.listeners.push(follow);
})();
