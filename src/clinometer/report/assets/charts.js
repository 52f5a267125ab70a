// Charts: drawn when the reader has chosen to see the findings, fitted to the width there is.
(() => {
  const NARROWEST_FACET = 190;
  const NARROWEST_CELL = 40; // of a heat map with its numbers
  const reveal = document.getElementById("reveal");
  const charts = [...document.querySelectorAll(".chart")];
  const tip = document.getElementById("tip");
  const drawnAt = new Map(); // element -> the width it was drawn at
  const views = new Map(); // element -> what Vega drew in it

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

  // Vega warns of an axis that has no number on it.
  function dropMissingIntervals(panel, rows) {
    if (rows.some((row) => row.low !== null && row.high !== null)) return;
    const reaches = ({ encoding: { x, y } }) => x?.field === "low" || y?.field === "low";
    panel.layer = panel.layer.filter((layer) => !reaches(layer));
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
    dropMissingIntervals(columns ? spec.spec : spec, spec.datasets.rows);
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

  function addMenus(element, menus) {
    if (!menus.length || element.querySelector(".menus")) return;
    const box = document.createElement("div");
    box.className = "menus";
    for (const { title, options } of menus) {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.append(...options.map((text, i) => new Option(text, i)));
      select.addEventListener("change", () => draw(element));
      label.append(title, select);
      box.append(label);
    }
    element.prepend(box);
  }

  function chosenRows(element, { menus, spec }) {
    const selects = [...element.querySelectorAll(".menus select")];
    return spec.datasets.rows.filter((row) => menus.every(({ order }, i) => row[order] === selects[i].selectedIndex));
  }

  async function embed(element) {
    const chart = JSON.parse(element.nextElementSibling.textContent);
    const plot = element.querySelector(".plot");
    const fitsItself = !chart.columns; // Vega follows the width of a single panel, not that of several
    drawnAt.set(element, fitsItself ? Infinity : element.clientWidth);
    addMenus(element, chart.menus);
    views.get(element)?.finalize();
    views.delete(element);
    chart.spec.datasets.rows = chosenRows(element, chart);
    plot.textContent = chart.spec.datasets.rows.length ? "" : "nothing to draw for this choice";
    plot.classList.toggle("empty", plot.textContent !== "");
    if (plot.textContent) return;
    fit(chart, element.clientWidth);
    const view = await vegaEmbed(plot, chart.spec, {
      actions: false,
      ast: true, // expressions are walked, not evaluated: the page's policy forbids eval
      defaultStyle: false,
      mode: "vega-lite",
      renderer: "svg",
      tooltip: showTip(chart.labels),
    });
    views.set(element, view);
  }

  let queue = Promise.resolve(); // one chart at a time: a choice may come while another is drawn
  function draw(element) {
    queue = queue
      .then(() => embed(element))
      .catch((error) => {
        console.error(error);
        const plot = element.querySelector(".plot");
        plot.textContent = "This chart could not be drawn. The table below has the same numbers.";
      });
    return queue;
  }

  async function drawAll() {
    if (!reveal.checked) return;
    for (const element of charts) {
      const width = drawnAt.get(element);
      if (width === Infinity || width === element.clientWidth) continue;
      await draw(element);
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
