// Tables: sort by a click on the header, keep the rows that contain a text, unfold the rest.
(() => {
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
    const { kinds, rows, folded } = JSON.parse(part.querySelector("script").textContent);
    const body = part.querySelector("tbody");
    const filter = part.querySelector(".filter");
    const counted = part.querySelector(".counted");
    const unfold = part.querySelector(".unfold");
    const headers = [...part.querySelectorAll("th")];
    const texts = rows.map((row) => row.map((value, i) => rounding[kinds[i]](value)));
    const search = texts.map((cells) => cells.join("\n").toLowerCase());
    let order = rows.map((_, i) => i);
    let open = false;

    function line(i) {
      const tr = document.createElement("tr");
      kinds.forEach((kind, column) => {
        const td = document.createElement("td");
        td.className = kind;
        const holder = kind === "label" ? document.createElement("bdi") : td;
        holder.textContent = texts[i][column];
        if (holder !== td) td.append(holder);
        else td.title = raw(rows[i][column]);
        tr.append(td);
      });
      return tr;
    }

    function show() {
      const wanted = filter.value.trim().toLowerCase();
      const kept = order.filter((i) => search[i].includes(wanted));
      const shown = open ? kept : kept.slice(0, folded);
      body.replaceChildren(...shown.map(line));
      const found = wanted ? `${rounding.count(kept.length)} of ${rounding.count(rows.length)} rows match; ` : "";
      counted.textContent = `${found}${rounding.count(shown.length)} shown`;
      unfold.hidden = kept.length <= folded;
      unfold.textContent = open ? `Show the first ${folded}` : `Show all ${rounding.count(kept.length)}`;
    }

    function sort(column) {
      const descending = headers[column].ariaSort === "ascending";
      headers.forEach((header) => header.removeAttribute("aria-sort"));
      headers[column].ariaSort = descending ? "descending" : "ascending";
      const key = rows.map((row) => sortable(row[column]));
      const missing = (i) => key[i] === null;
      order = rows.map((_, i) => i).sort((a, b) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b); // what was not computed stays last
        return descending ? compare(key[b], key[a]) : compare(key[a], key[b]);
      });
      show();
    }

    headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => sort(column)));
    filter.addEventListener("input", show);
    unfold.addEventListener("click", () => {
      open = !open;
      show();
    });
    part.querySelector(".controls").hidden = false;
    show();
  }

  document.querySelectorAll(".table-part").forEach(start);
})();
