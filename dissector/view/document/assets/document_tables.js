"use strict";
// Tables: filter by words, by the zoomed range, and sort.
(() => {
  const filter = document.getElementById("filter"), output = document.getElementById("filtered");
  const tables = [...document.querySelectorAll("details.table table")].map((table) => ({
    body: table.tBodies[0], count: table.closest("details").querySelector(".count"),
    rows: [...table.tBodies[0].rows], total: table.closest("details").querySelector(".count").textContent,
  }));
  let range = null;

  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let all = 0, kept = 0;
    for (const table of tables) {
      let shown = 0;
      for (const row of table.rows) {
        const begin = row.dataset.begin;
        const isIn = !range || begin === undefined ||
          (Number(begin) <= range[1] && Number(row.dataset.end) >= range[0]);
        const text = words.length ? row.textContent.toLowerCase() : "";
        row.hidden = !(isIn && words.every((word) => text.includes(word)));
        shown += !row.hidden;
      }
      table.count.textContent = shown === table.rows.length ? table.total : `${shown} of ${table.total}`;
      all += table.rows.length;
      kept += shown;
    }
    output.textContent = kept === all ? "" : `${kept.toLocaleString("en")} of ${all.toLocaleString("en")} rows`;
  }

  function sort(table, place, heading) {
    const isDown = heading.getAttribute("aria-sort") === "descending" ||
      (!heading.hasAttribute("aria-sort") && !heading.classList.contains("n"));
    for (const each of heading.parentNode.cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", isDown ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[place];
      return cell.dataset.number === undefined ? cell.textContent : Number(cell.dataset.number);
    };
    const isNumeric = heading.classList.contains("n");
    const compare = (a, b) => {
      const [one, other] = [key(a), key(b)];
      if (isNumeric) return (one === "" ? -Infinity : one) - (other === "" ? -Infinity : other);
      return String(one).localeCompare(String(other), "en", {numeric: true});
    };
    table.rows.sort((a, b) => isDown ? compare(a, b) : compare(b, a));
    table.body.append(...table.rows);
  }

  const buttons = [];
  for (const table of tables) {
    const headings = table.body.parentNode.tHead.rows[0].cells;
    [...headings].forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, place, heading));
      heading.replaceChildren(button);
      buttons.push([heading, button]);
    });
  }
  filter.closest("p").hidden = tables.length === 0;
  filter.addEventListener("input", apply);
  if (typeof reportZoom !== "undefined") reportZoom.listeners.push((from, to) => { range = reportZoom.isWhole ? null : [from, to]; apply(); });
  // Findings: zoom to them, or take their filter along.
  function copy(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");  // works for files, too, where navigator.clipboard may not
    area.remove();
  }
  const canZoom = typeof reportZoom !== "undefined" && reportZoom.around;
  for (const button of document.querySelectorAll("details.finding button")) {
    const isShow = button.classList.contains("show");
    button.hidden = isShow && !canZoom;
    button.addEventListener("click", (event) => {
      event.preventDefault();
      if (isShow) reportZoom.around(Number(button.dataset.begin), Number(button.dataset.end));
      else { copy(button.dataset.filter); button.textContent = "copied"; }
    });
  }
  // Folded tables are printed too, as they are what the page is for; browsers repeat headings on each
  // page only if they are plain text.
  let folded = [];
  addEventListener("beforeprint", () => {
    for (const [heading, button] of buttons) heading.replaceChildren(button.textContent);
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const [heading, button] of buttons) heading.replaceChildren(button);
    for (const each of folded) each.open = false;
  });
})();
