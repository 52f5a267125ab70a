// Charts: drawn when the reader has chosen to see the findings, fitted to the width there is.
(() => {
  const NARROWEST_FACET = 190;
  const NARROWEST_CELL = 40; // of a heat map with its numbers
  const reveal = document.getElementById("reveal");
  const charts = [...document.querySelectorAll(".chart")];
  const tip = document.getElementById("tip");
  const drawnAt = new Map(); // element -> the width it was drawn at

  function entries(datum, labels) {
    return [
      ...labels.map((name, i) => [name.replaceAll("_", " "), rounding.label(datum[`c${i}`])]),
      ["estimate", rounding.estimate(datum.estimate)],
      ["interval", rounding.interval([datum.low, datum.high])],
      ["p", rounding.probability(datum.p)],
      ["q", rounding.probability(datum.q)],
      ["n", rounding.count(datum.n)],
    ];
  }

  function showTip(labels) {
    return (_handler, event, _item, datum) => {
      tip.hidden = !datum;
      if (!datum) return;
      const lines = entries(datum, labels).flatMap(([name, text]) => {
        const term = document.createElement("dt");
        const value = document.createElement("dd");
        term.textContent = name;
        value.textContent = text;
        return [term, value];
      });
      tip.replaceChildren(...lines);
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
      tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8))}px`;
    };
  }

  function dropTightNumbers(panel, width, rows) {
    const field = panel.layer[0].encoding.x.field;
    const cells = new Set(rows.map((row) => row[field])).size;
    if (width / cells < NARROWEST_CELL) panel.layer = panel.layer.filter((layer) => layer.mark.type !== "text");
  }

  function fit({ spec, columns, gutter, legend_entry: entry }, width) {
    const limit = Math.max(80, Math.round(width * 0.3));
    spec.config.axis.labelLimit = Math.min(spec.config.axis.labelLimit, limit);
    spec.config.legend.labelLimit = Math.min(spec.config.legend.labelLimit, width / 2);
    spec.config.legend.columns = Math.max(1, Math.floor((width - Math.min(gutter, limit)) / entry));
    if (!columns) {
      dropTightNumbers(spec, width - Math.min(gutter, limit), spec.datasets.rows);
      return;
    }
    const left = Math.min(gutter, limit) + (spec.facet.row ? 60 : 20); // labels and titles beside the first panel
    let across = columns;
    if (spec.facet.column && !spec.facet.row && (width - left) / columns < NARROWEST_FACET) {
      across = Math.max(1, Math.floor((width - left) / NARROWEST_FACET));
      spec.facet = spec.facet.column;
      spec.columns = across;
    }
    spec.spec.width = Math.max(110, Math.floor((width - left) / across) - 20);
    dropTightNumbers(spec.spec, spec.spec.width, spec.datasets.rows);
  }

  async function draw(element) {
    const chart = JSON.parse(element.nextElementSibling.textContent);
    const fitsItself = !chart.columns; // Vega follows the width of a single panel, not that of several
    drawnAt.set(element, fitsItself ? Infinity : element.clientWidth);
    fit(chart, element.clientWidth);
    element.querySelector("p")?.remove();
    await vegaEmbed(element, chart.spec, {
      actions: false,
      ast: true, // expressions are walked, not evaluated: the page's policy forbids eval
      defaultStyle: false,
      mode: "vega-lite",
      renderer: "svg",
      tooltip: showTip(chart.labels),
    });
  }

  async function drawAll() {
    if (!reveal.checked) return;
    for (const element of charts) {
      const width = drawnAt.get(element);
      if (width === Infinity || width === element.clientWidth) continue;
      try {
        await draw(element);
      } catch (error) {
        console.error(error);
        element.textContent = "This chart could not be drawn. The table below has the same numbers.";
      }
    }
    document.documentElement.dataset.charts = "drawn";
  }

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 200);
  });
  reveal.addEventListener("change", drawAll);
  drawAll();
})();
