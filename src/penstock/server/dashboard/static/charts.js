// Turns drawn charts into ones that can be read off; without this script the drawing stays.
(() => {
  if (!window.uPlot) return;
  const resolved = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const drawn = new Map();
  const told = (options) => new Intl.DateTimeFormat("en-GB", options);
  const clock = told({ hour: "2-digit", minute: "2-digit" });
  const day = told({ day: "numeric", month: "short" });
  const moment = told({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const moments = (_, found) => {
    const long = found.length > 1 && found[1] - found[0] >= 86400;
    return found.map((at) => (long ? day : clock).format(new Date(at * 1000)));
  };
  const amount = (n, unit) => (n == null ? "–" : `${Math.round(n * 100) / 100}${unit}`);
  const element = (name, className, textContent) => Object.assign(document.createElement(name), { className, textContent });
  const tip = (shown, unit) => {
    const box = document.createElement("div");
    box.className = "u-tip";
    box.hidden = true;
    const show = (plot) => {
      const { idx, left, top } = plot.cursor;
      box.hidden = idx == null || left < 0;
      if (box.hidden) return;
      const at = new Date(plot.data[0][idx] * 1000);
      box.replaceChildren(element("b", "", moment.format(at)));
      shown.series.forEach(({ label, colour, dashed, values }) => {
        const line = element("span", `badge in-${colour}${dashed ? " dashed" : ""}`, "");
        line.append(element("span", "", label), element("em", "", amount(values[idx], unit)));
        box.append(line);
      });
      const over = plot.over.clientWidth;
      box.style.left = `${Math.max(0, left > over / 2 ? left - box.offsetWidth - 12 : left + 12)}px`;
      box.style.top = `${Math.max(0, top - box.offsetHeight - 8)}px`;
    };
    return { hooks: { init: (plot) => plot.over.append(box), setCursor: show } };
  };
  // A value between gaps or zeros has hardly a line to be seen by.
  const alone = (plot, n) => plot.data[n].flatMap((value, at, all) => (value && !all[at - 1] && !all[at + 1] ? [at] : []));
  // What happened is seen above the edge, however little it was beside the rest.
  const raised = (series) => {
    const lowest = 0.03 * Math.max(...series.flatMap(({ values }) => values));
    return series.map(({ values }) => values.map((value) => (value ? Math.max(value, lowest) : value)));
  };
  const draw = (box) => {
    const text = box.dataset.chart;
    const { times, series, unit } = JSON.parse(text);
    const lines = [times, ...raised(series)];
    const known = drawn.get(box);
    if (known) {
      if (known.text !== text) { known.shown.series = series; known.plot.setData(lines); known.text = text; }
      return;
    }
    const shown = { series };
    if (times.length < 2 || box.querySelector(".empty")) return;
    box.replaceChildren();
    box.dataset.drawn = "";
    const grid = { stroke: resolved("--line"), width: 1 };
    const axis = { stroke: resolved("--quiet"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const plot = new uPlot({
      width: box.clientWidth,
      height: box.clientHeight,
      legend: { show: false },
      padding: [8, 20, 0, 0],
      cursor: { points: { size: 6 }, drag: { x: false, y: false }, sync: { key: "time" } },
      plugins: [tip(shown, unit)],
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: [{ ...axis, grid: { show: false }, size: 30, values: moments }, { ...axis, size: 48, ticks: { show: false }, values: (_, found) => found.map((n) => `${n}${unit}`) }],
      series: [{}, ...series.map(({ label, colour, dashed }, n) => {
        const stroke = resolved(`--${colour}`);
        const fill = n === 0 ? stroke.replace(/^rgb\(/, "rgba(").replace(/\)$/, ", .12)") : undefined;
        return { label, stroke, fill, width: n ? 2 : 1.6, dash: dashed ? [4, 3] : undefined, points: { show: true, filter: alone, size: 7, fill: stroke } };
      })],
    }, lines, box);
    drawn.set(box, { plot, shown, text });
  };
  const forget = (gone) => {
    for (const [box, { plot }] of drawn) if (gone(box)) { plot.destroy(); drawn.delete(box); }
  };
  const all = () => document.querySelectorAll("[data-chart]").forEach(draw);
  const again = () => { forget(() => true); all(); };
  addEventListener("themechange", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", () => {
    for (const [box, { plot }] of drawn) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  });
  document.body.addEventListener("htmx:afterSwap", () => { forget((box) => !box.isConnected); all(); });
  all();
})();
