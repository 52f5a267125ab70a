// Charts: drawn once the reader has chosen to see the findings, to fit the width of the page.
(() => {
  const NARROWEST_FACET = 190;
  const NARROWEST_CELL = 40; // of a heat map with its numbers
  const LETTER = 6.3; // pixels per letter of a label …
  const BOLD_LETTER = 6.8; // … of a title …
  const WIDE_LETTER = 8.4; // … and in a wide font
  const PAGE = 50; // how many names down a chart are drawn at once …
  const LONGEST_PAGE = 60; // … unless there are only a few more
  const MOST_POINTS = 12; // that are read out one by one
  const reveal = document.getElementById("reveal");
  const charts = [...document.querySelectorAll(".chart")];
  const tip = document.getElementById("tip");
  const drawnAt = new Map(); // element -> the width it was drawn at
  const views = new Map(); // element -> what Vega drew in it
  const rowsOf = new Map(); // element -> the rows of its table that its filters keep

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

  // Vega warns about an axis without numbers.
  function dropMissingIntervals(panel, rows) {
    if (rows.some((row) => row.low !== null && row.high !== null)) return;
    const reaches = ({ encoding: { x, y } }) => x?.field === "low" || y?.field === "low";
    panel.layer = panel.layer.filter((layer) => !reaches(layer));
  }

  // Names along x are horizontal only if they fit; cells have numbers only if they are wide enough and few enough.
  function fitCells(panel, { across, numbered }, width, rows) {
    if (across < 0) return;
    const names = [...new Set(rows.map((row) => row[`c${across}`]))];
    const room = width / names.length;
    const fits = names.every((name) => name.length * LETTER < room);
    for (const { encoding } of panel.layer) if (encoding.x?.axis) encoding.x.axis.labelAngle = fits ? 0 : -40;
    if (room >= NARROWEST_CELL && rows.length <= numbered) return;
    panel.layer = panel.layer.filter((layer) => layer.mark.type !== "text");
  }

  function wrapped(text, letters) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (longer.length <= letters || !lines.at(-1)) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  // Vega drops tick labels that touch but keeps their ticks; it cuts off a title wider than its axis.
  function fitRuler(panel, width) {
    for (const { encoding: { x } } of panel.layer) {
      if (x?.title) x.title = wrapped(x.title, width / BOLD_LETTER);
      if (x?.axis?.tickCount) x.axis.tickCount = Math.min(7, Math.max(3, Math.floor(width / 70)));
    }
  }

  // When some of the rows are drawn, the axis is still that of all rows.
  function keepAxis(panel, all) {
    for (const [side, place] of panel.layer.flatMap(({ encoding }) => Object.entries(encoding))) {
      if ((side !== "x" && side !== "y") || place.type !== "quantitative") continue;
      const fields = ["estimate", "low"].includes(place.field) ? ["estimate", "low", "high"] : [place.field];
      const values = all.flatMap((row) => fields.map((field) => row[field])).filter((value) => value !== null);
      const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      if (low < high && !place.scale?.zero) place.scale = { ...place.scale, domain: [low, high], nice: true };
    }
  }

  // Long names down a chart often begin alike, and Vega would cut off their ends: their words are cut instead.
  function abbreviated(names, letters) {
    const cut = (keep) => (word) => (word.length > keep ? `${word.slice(0, keep)}.` : word);
    const most = Math.min(letters, Math.max(...names.flatMap((name) => name.split(" ").map((word) => word.length))));
    for (let keep = most; keep > 0; keep -= 1) {
      const shorts = names.map((name) => (name.length <= letters ? name : name.split(" ").map(cut(keep)).join(" ")));
      if (shorts.every((short) => short.length <= letters)) return new Set(shorts).size === names.length ? shorts : null;
    }
    return null;
  }

  function fitWords(spec, panel, { down }, rows) {
    const names = down < 0 ? [] : [...new Set(rows.map((row) => row[`c${down}`]))];
    const letters = Math.floor(spec.config.axis.labelLimit / LETTER);
    const axes = panel.layer.map(({ encoding }) => encoding.y?.axis).filter((axis) => axis && !axis.labelExpr);
    if (!axes.length || names.every((name) => name.length <= letters)) return;
    const shorts = abbreviated(names, letters);
    if (!shorts) return;
    // names are values, never part of an expression
    spec.params.push({ name: "long_names", value: names }, { name: "short_names", value: shorts });
    for (const axis of axes) axis.labelExpr = "short_names[indexof(long_names, datum.label)]";
  }

  // The middle is cut out of long model names before Vega cuts off their end.
  function fitNames(spec) {
    const { axis, legend, header } = spec.config;
    const room = {
      axis_letters: axis.labelLimit,
      legend_letters: legend.labelLimit,
      header_letters: Math.min((spec.spec ?? spec).width, header.labelLimit),
    };
    for (const param of spec.params) param.value = Math.max(6, Math.floor(room[param.name] / WIDE_LETTER)) || param.value;
  }

  function fit(chart, rows, width) {
    const { spec, columns, gutter, legend_entry: entry } = chart;
    const limit = Math.max(80, Math.round(width * (width < 500 ? 0.4 : 0.3))); // a phone has little room for both
    spec.config.axis.labelLimit = Math.min(spec.config.axis.labelLimit, limit);
    spec.config.legend.labelLimit = Math.min(spec.config.legend.labelLimit, width / 2);
    spec.config.legend.titleLimit = Math.min(spec.config.legend.titleLimit, width - Math.min(gutter, limit) - 20);
    spec.config.legend.columns = Math.max(1, Math.floor((width - Math.min(gutter, limit)) / entry));
    dropMissingIntervals(columns ? spec.spec : spec, rows);
    if (!columns) {
      fitCells(spec, chart, width - Math.min(gutter, limit), rows);
      fitRuler(spec, width - Math.min(gutter, limit));
      fitNames(spec);
      fitWords(spec, spec, chart, rows);
      return;
    }
    const left = Math.min(gutter, limit) + (spec.facet.row ? 40 : 20); // labels and titles beside the first panel
    let across = columns;
    if (spec.facet.column && !spec.facet.row && (width - left) / columns < NARROWEST_FACET) {
      across = Math.max(1, Math.floor((width - left) / NARROWEST_FACET));
      spec.facet = spec.facet.column;
      spec.columns = across;
    }
    spec.spec.width = Math.max(110, Math.floor((width - left) / across) - 20);
    fitCells(spec.spec, chart, spec.spec.width, rows);
    fitRuler(spec.spec, spec.spec.width);
    fitNames(spec);
    fitWords(spec, spec.spec, chart, rows);
  }

  function menu(element, title, options, opens = 0) {
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.append(...options.map((text, i) => new Option(text, i)));
    select.selectedIndex = opens;
    select.addEventListener("change", () => draw(element));
    label.append(title, select);
    return label;
  }

  function addMenus(element, menus) {
    if (element.querySelector(".menus")) return;
    const box = document.createElement("div");
    box.className = "menus";
    box.append(...menus.map(({ title, options, opens }) => menu(element, title, options, opens)));
    element.prepend(box);
  }

  // The places of a label's values, in order of first appearance.
  function placesIn(rows, values) {
    const places = new Map();
    for (const i of rows) if (!places.has(values[i])) places.set(values[i], places.size);
    return places;
  }

  // The rows that the filters keep, and the places of each menu's options.
  function readRows({ table, filters, menus }) {
    const { size, labels } = findings.table(table);
    const kept = [];
    for (let i = 0; i < size; i += 1) if (filters.every(([label, value]) => labels[label][i] === value)) kept.push(i);
    return { kept, options: menus.map(({ label }) => placesIn(kept, labels[label])) };
  }

  // As plot_data.py writes rows for Vega: c0, c1, … are the labels, o0, o1, … their places in this choice.
  function chosenRows(element, chart) {
    if (!rowsOf.has(element)) rowsOf.set(element, readRows(chart));
    const { kept, options } = rowsOf.get(element);
    const { labels, numbers } = findings.table(chart.table);
    const choice = [...element.querySelectorAll(".menus > label:not(.page) select")].map((select) => select.selectedIndex);
    const chosen = kept.filter((i) => chart.menus.every(({ label }, m) => options[m].get(labels[label][i]) === choice[m]));
    const places = labels.map((values) => placesIn(chosen, values));
    const number = (value) => (typeof value === "number" ? value : null);
    const isRuler = labels.map((_, label) => chart.rulers.includes(label));
    const rows = [];
    for (const i of chosen) {
      if (number(numbers.estimate[i]) === null) continue;
      if (chart.sure && (number(numbers.low?.[i]) === null || number(numbers.high?.[i]) === null)) continue;
      if (!chart.rulers.every((label) => number(labels[label][i]) !== null)) continue;
      const row = {};
      labels.forEach((values, label) => {
        row[`c${label}`] = isRuler[label] ? values[i] : rounding.label(values[i]);
        row[`o${label}`] = places[label].get(values[i]);
      });
      for (const name of ["estimate", "low", "high", "p", "q"]) row[name] = number(numbers[name]?.[i]);
      row.n = numbers.n[i];
      rows.push(row);
    }
    return rows;
  }

  // Hundreds of names down a chart are drawn a page at a time; the reader turns pages with a menu.
  function pageOf(element, { down }, rows) {
    const order = `o${down}`;
    const names = down < 0 ? [] : [...new Set(rows.map((row) => row[order]))].sort((a, b) => a - b);
    const pages = [];
    if (names.length > LONGEST_PAGE)
      for (let i = 0; i < names.length; i += PAGE) pages.push(`${i + 1}–${Math.min(i + PAGE, names.length)} of ${names.length}`);
    const options = pages.length ? [...pages, `all ${names.length}`] : [];
    const before = element.querySelector(".menus .page");
    if (before?.dataset.options !== options.join()) {
      before?.remove();
      if (!options.length) return rows;
      const turn = menu(element, "rows", options);
      turn.className = "page";
      turn.dataset.options = options.join();
      element.querySelector(".menus").append(turn);
    }
    const page = element.querySelector(".menus .page select")?.selectedIndex ?? pages.length;
    if (page === pages.length) return rows;
    const shown = new Set(names.slice(page * PAGE, (page + 1) * PAGE));
    return rows.filter((row) => shown.has(row[order]));
  }

  async function embed(element) {
    const chart = JSON.parse(element.nextElementSibling.textContent);
    chart.spec.config = JSON.parse(document.getElementById("findings").dataset.look);
    const plot = element.querySelector(".plot");
    const fitsItself = !chart.columns; // Vega follows the width of a single panel, not that of several
    drawnAt.set(element, fitsItself ? Infinity : element.clientWidth);
    addMenus(element, chart.menus);
    views.get(element)?.finalize();
    views.delete(element);
    const all = chosenRows(element, chart);
    const rows = pageOf(element, chart, all);
    chart.spec.datasets = { ...chart.spec.datasets, rows };
    plot.textContent = rows.length ? "" : "nothing to draw for this choice";
    plot.classList.toggle("empty", plot.textContent !== "");
    if (plot.textContent) return;
    if (rows.length < all.length) keepAxis(chart.columns ? chart.spec.spec : chart.spec, all);
    fit(chart, rows, element.clientWidth);
    const view = await vegaEmbed(plot, chart.spec, {
      actions: false,
      ast: true, // expressions are interpreted, not evaluated: the page's policy forbids eval
      defaultStyle: false,
      mode: "vega-lite",
      renderer: "svg",
      tooltip: showTip(chart.labels),
    });
    views.set(element, view);
    tell(element, chart, all);
  }

  // What the chart shows, for readers who do not see it; alt_text.py writes the same before the script runs.
  function described(chart, rows) {
    const point = (row) => {
      const reach = rounding.interval([row.low, row.high]);
      const of = chart.told.map((label) => rounding.label(row[`c${label}`])).join(", ");
      return `${of}: ${rounding.estimate(row.estimate)}${reach === "–" ? "" : ` ${reach}`}`;
    };
    if (rows.length <= MOST_POINTS) return `${rows.map(point).join("; ")}.`;
    const ordered = [...rows].sort((a, b) => a.estimate - b.estimate);
    const middle = rounding.estimate(ordered[Math.floor(rows.length / 2)].estimate);
    return `${rows.length} points, from ${point(ordered[0])} to ${point(ordered.at(-1))}; half of them are below ${middle}.`;
  }

  function tell(element, chart, rows) {
    const chosen = [...element.querySelectorAll(".menus > label:not(.page)")].map(
      (label) => `${label.firstChild.textContent} ${label.querySelector("select").selectedOptions[0].text}`,
    );
    const title = chart.spec.description + (chosen.length ? ` (${chosen.join(", ")})` : "");
    const plot = element.querySelector(".plot");
    plot.setAttribute("role", "img"); // Vega writes its own role and the bare title there
    plot.setAttribute("aria-label", `${title}. ${described(chart, rows)}`);
  }

  // A chart that is higher than its box must say so; nothing else shows that there is more.
  function tellHeight(element) {
    const box = element.closest(".chart-box");
    box.classList.toggle("goes-on", element.offsetHeight > box.clientHeight + 1);
  }

  let queue = Promise.resolve(); // one chart at a time: the reader may choose while another is drawn
  function draw(element) {
    queue = queue
      .then(() => embed(element))
      .catch((error) => {
        console.error(error);
        const plot = element.querySelector(".plot");
        plot.textContent = "This chart could not be drawn. The table below has the same numbers.";
      })
      .then(() => tellHeight(element));
    return queue;
  }

  async function drawAll() {
    if (!reveal.checked) return;
    for (const element of charts) {
      if (element.closest("details:not([open])")) continue; // behind a fold: drawn when it is opened
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
  for (const fold of document.querySelectorAll(".more-figures")) fold.addEventListener("toggle", drawAll);
  drawAll();
})();
