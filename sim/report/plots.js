/* SPDX-License-Identifier: Apache-2.0 */
/* Draws every figure with a plot description over its picture; without script, and on paper, the picture stays. */
(function () {
  "use strict";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const prefixed = (value, steps, unit) => {
    if (value === 0) return "0";
    for (const [size, prefix] of steps) if (Math.abs(value) >= size) return +(value / size).toPrecision(3) + " " + prefix + unit;
    const last = steps[steps.length - 1];
    return +(value / last[0]).toPrecision(3) + " " + last[1] + unit;
  };
  const decimal = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const units = {
    bytes: (v) => v < 1 ? "0 B" : prefixed(v, [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]], "B"),
    us: (v) => prefixed(v * 1e-6, [[1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"]], "s"),
    s: (v) => prefixed(v, [[1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"]], "s"),
    "GB/s": (v) => +v.toPrecision(4) + " GB/s",
    "B/s": (v) => prefixed(v, decimal, "B/s"),
    W: (v) => prefixed(v, decimal, "W"),
    number: (v) => (Math.abs(v) >= 1e4 ? prefixed(v, decimal, "").trim() : String(+v.toPrecision(4))),
  };
  const format = (unit) => units[unit] || ((v) => (prefixed(v, decimal, "") + " " + unit).replace(/ +/g, " "));

  /* One row per point, sorted by x: curves need no common places. */
  function table(spec) {
    const points = [];
    spec.series.forEach((series, s) => series.x.forEach((x, i) => points.push({ x, s, i })));
    points.sort((a, b) => a.x - b.x || a.s - b.s || a.i - b.i);
    const columns = [points.map((p) => p.x)];
    spec.series.forEach((series, s) => {
      const pick = (values) => points.map((p) => (p.s === s ? values[p.i] : null));
      columns.push(pick(series.y));
      if (series.low) columns.push(pick(series.low), pick(series.high));
    });
    return { columns, points };
  }

  function options(spec, data, width, tip) {
    const ink = style("--soft"), grid = style("--grid");
    const axis = (of, size) => ({ stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, label: of.label, labelSize: 22, size: size || 50,
      space: size ? 40 : 70, values: (u, ticks) => ticks.map((v) => (v === null ? "" : format(of.unit)(v))) });
    /* The points at both ends stay whole; labels of logarithmic axes leave room for each other. */
    const wide = (u, low, high) => [low / 1.5, high * 1.5];
    const roomy = (u, low, high) => { const room = 0.05 * (high - low || Math.abs(high) || 1); return [low - room, high + room]; };
    const thin = (of) => of.log === 2 ? { splits: (u) => {
      const from = Math.ceil(Math.log2(u.scales.x.min)), to = Math.floor(Math.log2(u.scales.x.max));
      const step = Math.max(1, Math.ceil((to - from + 1) / Math.max(2, width / 80)));
      const out = [];
      for (let k = from; k <= to; k += step) out.push(2 ** k);
      return out;
    }, filter: (u, splits) => splits } : {};
    const scale = (of) => (of.log ? { distr: 3, log: of.log, ...(of.log === 2 ? { range: wide } : {}) } : of.zero ? { range: (u, low, high) => [0, high * 1.08 || 1] } : { range: roomy });
    const series = [{ label: spec.x.label, value: (u, v) => (v === null ? "" : format(spec.x.unit)(v)) }];
    const bands = [];
    spec.series.forEach((one) => {
      const colour = style(one.colour);
      const at = series.length;
      series.push({ label: one.label, stroke: colour, width: one.line ? 2 : 0, spanGaps: true, paths: one.line ? undefined : () => null,
        points: { show: !one.line || one.x.length < 60, size: one.size || 6, fill: one.faint ? style("--paper") : colour, stroke: colour },
        value: (u, v) => (v === null ? "" : format(spec.y.unit)(v)) });
      if (one.low) {
        const edge = { isEdge: true, stroke: "transparent", spanGaps: true, points: { show: false } };
        series.push({ ...edge, label: one.label + " low" }, { ...edge, label: one.label + " high" });
        bands.push({ series: [at + 2, at + 1], fill: colour + "33" });
      }
    });
    return { width, height: Math.max(260, Math.min(420, width * 0.5)), scales: { x: { time: false, ...scale(spec.x) }, y: scale(spec.y) }, series, bands,
      axes: [{ ...axis(spec.x), ...thin(spec.x) }, axis(spec.y, 84)], legend: { show: spec.series.length > 1 }, cursor: { drag: { x: true, y: true }, focus: { prox: 20 } },
      hooks: { setCursor: [(u) => tip(u)] } };
  }

  /* The note of the point nearest to the cursor. */
  function teller(spec, points, box) {
    return (u) => {
      let best = null, distance = 24;
      points.forEach((p, k) => {
        const y = spec.series[p.s].y[p.i];
        const dx = u.valToPos(p.x, "x") - u.cursor.left, dy = u.valToPos(y, "y") - u.cursor.top;
        const d = Math.hypot(dx, dy);
        if (d < distance) { distance = d; best = p; }
      });
      const notes = best && spec.series[best.s].notes;
      box.textContent = notes ? notes[best.i] : " ";
    };
  }

  const drawn = (window.fabricastPlots = []);
  function draw(figure) {
    const spec = JSON.parse(figure.querySelector("script.plot").textContent);
    const { columns, points } = table(spec);
    let place = figure.querySelector(".live");
    if (!place) {
      place = document.createElement("div");
      place.className = "live";
      figure.appendChild(place);
    }
    place.textContent = "";
    const box = document.createElement("p");
    box.className = "note";
    box.textContent = " ";
    const plot = new uPlot(options(spec, columns, place.clientWidth || 700, teller(spec, points, box)), columns, place);
    place.appendChild(box);
    /* Ends of bands are no entries of their own. */
    plot.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => { if (plot.series[i] && plot.series[i].isEdge) row.style.display = "none"; });
    figure.classList.add("drawn");
    figure.dataset.points = String(points.length);
    drawn.push(plot);
    return plot;
  }
  const figures = [...document.querySelectorAll("figure.plotted")];
  let plots = figures.map(draw);
  const again = () => { plots.forEach((p) => p.destroy()); drawn.length = 0; plots = figures.map(draw); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
})();
