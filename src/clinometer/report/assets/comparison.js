// The table of all models: click a header to sort by the distance from even-handed; what cannot be told comes last.
(() => {
  for (const table of document.querySelectorAll("table.standings")) {
    const headers = [...table.querySelectorAll("thead th")];
    const body = table.querySelector("tbody");
    const rows = [...body.rows];
    const key = (row, column) => {
      const value = row.cells[column].dataset.key;
      return value === "" ? null : column === 0 ? value : Number(value);
    };
    headers.forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => {
        const descending = header.ariaSort === "ascending";
        headers.forEach((each) => each.removeAttribute("aria-sort"));
        header.ariaSort = descending ? "descending" : "ascending";
        const sorted = [...rows].sort((one, other) => {
          const [a, b] = [key(one, column), key(other, column)];
          if (a === null || b === null) return (a === null) - (b === null);
          const order = column === 0 ? a.localeCompare(b, "en", { numeric: true }) : a - b;
          return descending ? -order : order;
        });
        body.replaceChildren(...sorted);
      });
    });
  }
})();
