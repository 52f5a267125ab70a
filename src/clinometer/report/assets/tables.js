// Tables, once opened: click a header to sort, type to filter, unfold the rest.
(() => {
  const MORE = 500; // rows that one click adds; tens of thousands at once would freeze the page
  const INFINITE = { "∞": Infinity, "−∞": -Infinity };

  function sortable(value) {
    const first = Array.isArray(value) ? value[0] : value;
    return first in INFINITE ? INFINITE[first] : first;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function raw(value) {
    return (Array.isArray(value) ? value : [value]).map((end) => (end === null ? "not computed" : end)).join(", ");
  }

  function start(part) {
    const { size, folded, kinds, cells } = findings.table(part.querySelector("script").id);
    const body = part.querySelector("tbody");
    const filter = part.querySelector(".filter");
    const counted = part.querySelector(".counted");
    const unfold = part.querySelector(".unfold");
    const headers = [...part.querySelectorAll("thead th")];
    const everyRow = Array.from({ length: size }, (_, i) => i);
    const text = (i, column) => rounding[kinds[column]](cells[column][i]);
    const search = everyRow.map((i) => kinds.map((_, column) => text(i, column)).join("\n").toLowerCase());
    let order = everyRow;
    let most = folded;
    let pointed = []; // the rows that a verdict rests on, shown first

    function line(i) {
      const tr = document.createElement("tr");
      kinds.forEach((kind, column) => {
        const heads = column === 0 && kind === "label"; // the first label names the row
        const td = document.createElement(heads ? "th" : "td");
        if (heads) td.scope = "row";
        td.className = kind;
        const holder = kind === "label" ? document.createElement("bdi") : td;
        holder.textContent = text(i, column);
        if (holder !== td) td.append(holder);
        else td.title = raw(cells[column][i]);
        tr.append(td);
      });
      if (pointed.includes(i)) tr.className = "pointed-at";
      return tr;
    }

    function show() {
      const wanted = filter.value.trim().toLowerCase();
      const matching = order.filter((i) => search[i].includes(wanted));
      const kept = [...pointed.filter((i) => matching.includes(i)), ...matching.filter((i) => !pointed.includes(i))];
      const shown = kept.slice(0, Math.max(most, pointed.length)); // every row that is pointed at
      body.replaceChildren(...shown.map(line));
      const found = wanted ? `${rounding.count(kept.length)} of ${rounding.count(size)} rows match; ` : "";
      counted.textContent = `${found}${rounding.count(shown.length)} shown`;
      unfold.hidden = kept.length <= folded;
      if (shown.length === kept.length) unfold.textContent = `Show the first ${folded}`;
      else if (kept.length <= most + MORE) unfold.textContent = `Show all ${rounding.count(kept.length)}`;
      else unfold.textContent = `Show ${MORE} more of ${rounding.count(kept.length)}`;
    }

    function sort(column) {
      const descending = headers[column].ariaSort === "ascending";
      headers.forEach((header) => header.removeAttribute("aria-sort"));
      headers[column].ariaSort = descending ? "descending" : "ascending";
      const key = cells[column].map(sortable);
      const missing = (i) => key[i] === null;
      order = [...everyRow].sort((a, b) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b); // what was not computed comes last
        return descending ? compare(key[b], key[a]) : compare(key[a], key[b]);
      });
      show();
    }

    headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => sort(column)));
    filter.addEventListener("input", show);
    unfold.addEventListener("click", () => {
      most = unfold.textContent.startsWith("Show the first") ? folded : most + MORE;
      show();
    });
    part.querySelector(".controls").hidden = false;
    part.querySelector(".unscripted")?.remove();
    show();

    function place(labels) {
      const names = headers.map((header) => header.textContent);
      const wanted = Object.entries(labels).map(([name, value]) => [names.indexOf(name.replaceAll("_", " ")), value]);
      return everyRow.find((i) => wanted.every(([column, value]) => column >= 0 && cells[column][i] === value)) ?? -1;
    }

    return (rows) => {
      pointed = [...new Set(rows.map(place))].filter((i) => i >= 0);
      filter.value = "";
      show();
    };
  }

  const pointers = new Map(); // block -> the function that points at a row of its table

  for (const block of document.querySelectorAll(".table-block:has(.table-part)")) {
    const begin = () => {
      if (!pointers.has(block)) pointers.set(block, start(block.querySelector(".table-part")));
    };
    if (block.open) begin();
    else block.addEventListener("toggle", begin, { once: true });
    block.begin = begin;
  }

  // From a verdict to the row that it rests on; before the reader has agreed to see the findings, to the question.
  const reveal = document.getElementById("reveal");
  for (const link of document.querySelectorAll("a.evidence")) {
    link.addEventListener("click", (event) => {
      if (!reveal.checked) {
        event.preventDefault();
        document.querySelector(".gate").scrollIntoView({ block: "center" });
        reveal.focus({ preventScroll: true });
        return;
      }
      const block = document.querySelector(link.hash).closest(".table-block");
      block.open = true;
      block.begin?.();
      pointers.get(block)?.([JSON.parse(link.dataset.row)]);
    });
  }

  // On paper nothing can be unfolded: the tables that verdicts rest on are printed, those rows first.
  const printed = [];
  addEventListener("beforeprint", () => {
    if (!reveal.checked) return;
    for (const block of document.querySelectorAll(".table-block[data-rests]:not([open])")) {
      block.open = true;
      block.begin?.();
      pointers.get(block)?.(JSON.parse(block.dataset.rests));
      printed.push(block);
    }
  });
  addEventListener("afterprint", () => {
    for (const block of printed.splice(0)) {
      block.open = false;
      pointers.get(block)?.([]);
    }
  });

  // Light or dark, whatever the system says; on paper always light.
  const theme = document.getElementById("theme");
  const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  theme.hidden = false;
  name();
})();
