'use strict';
(function () {
  const $ = (id) => document.getElementById(id);
  const specs = JSON.parse($('charts').textContent) || [];
  const COLOURS = 8, SHAPES = 7, DPR = () => window.devicePixelRatio || 1;
  const FONT = '12px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

  // ---- numbers, written as in the tables ----
  const group = (n) => n.toLocaleString('en-US', { maximumFractionDigits: 0 });
  function digits(f) {
    const a = Math.abs(f);
    if (f === 0) return '0';
    if (a >= 1e15 || a < 1e-3) return f.toExponential(1);
    if (a >= 99.95) return group(f);
    return f.toFixed(a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
  }
  function duration(us) {
    const a = Math.abs(us);
    if (a > 0 && a < 0.9995) return digits(us * 1e3) + ' ns';
    if (a < 999.5) return digits(us) + ' µs';
    return a < 999.5e3 ? digits(us / 1e3) + ' ms' : digits(us / 1e6) + ' s';
  }
  // trim is for axes, whose numbers are round: 1 ms, not 1.00 ms.
  const trim = (s) => s.replace(/(\.\d*?)0+(?=$| )/, '$1').replace(/\.(?=$| )/, '');
  function brief(f) {
    const a = Math.abs(f), steps = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
    for (const [size, letter] of steps) if (a >= size) return trim(digits(f / size)) + letter;
    return trim(digits(f));
  }
  function write(unit, f, axis) {
    switch (unit) {
      case 'us': return axis ? trim(duration(f)) : duration(f);
      case 'rate': return axis ? brief(f) : digits(f) + '/s';
      case 'ratio': return axis ? trim(digits(f)) : digits(f) + '×';
      case 'sec/op': return (axis ? trim(duration(f * 1e6)) : duration(f * 1e6)) + (axis ? '' : '/op');
    }
    return axis ? brief(f) : (digits(f) + ' ' + unit).trim();
  }

  // ---- looks ----
  let theme = {};
  function readTheme() {
    const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
    theme = { text: get('--text'), soft: get('--soft'), grid: get('--grid'), page: get('--page'), keys: [] };
    for (let i = 0; i < COLOURS; i++) theme.keys.push(get('--c' + i));
  }
  const colour = (key) => theme.keys[key % COLOURS];

  // mark draws the shape of a key; a hollow one is for what is not decided.
  function mark(ctx, key, x, y, r, hollow) {
    if (hollow) {
      ctx.save();
      ctx.beginPath();
      ctx.arc(x, y, r * 1.25, 0, 7);
      ctx.fillStyle = theme.page;
      ctx.strokeStyle = colour(key);
      ctx.lineWidth = r * 0.45;
      ctx.fill();
      ctx.stroke();
      ctx.restore();
      return;
    }
    ctx.save();
    ctx.beginPath();
    ctx.lineWidth = r * 0.55;
    ctx.fillStyle = ctx.strokeStyle = colour(key);
    const line = (...points) => points.forEach(([dx, dy], i) => ctx[i ? 'lineTo' : 'moveTo'](x + dx * r, y + dy * r));
    switch (key % SHAPES) {
      case 0: ctx.arc(x, y, r, 0, 7); ctx.fill(); break;
      case 1: ctx.fillRect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8); break;
      case 2: line([0, -1.1], [1.1, 0.9], [-1.1, 0.9]); ctx.fill(); break;
      case 3: line([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]); ctx.fill(); break;
      case 4: line([-1.1, -0.9], [1.1, -0.9], [0, 1.1]); ctx.fill(); break;
      case 5: line([-0.95, -0.95], [0.95, 0.95]); line([0.95, -0.95], [-0.95, 0.95]); ctx.stroke(); break;
      default: line([0, -1.2], [0, 1.2]); line([-1.2, 0], [1.2, 0]); ctx.stroke();
    }
    ctx.restore();
  }

  // marks puts shapes on lines, some way apart and not all at the same places.
  function marks(u, spec) {
    const d = DPR(), r = (spec.small ? 3 : 3.8) * d, apart = spec.x.length > 24 || spec.xlog ? 90 * d : 0;
    spec.series.forEach((s, i) => {
      if (!u.series[i + 1].show) return;
      u.ctx.globalAlpha = u.series[i + 1].alpha;
      let next = -Infinity, last = null;
      const open = new Set(s.open || []), gaps = new Set(s.gaps || []), end = u.data[0].length - 1;
      u.data[0].forEach((x, j) => {
        const y = u.data[i + 1][j];
        if (y == null || x < u.scales.x.min || x > u.scales.x.max) return;
        const px = u.valToPos(x, 'x', true), py = u.valToPos(y, 'y', true);
        last = [px, py, open.has(j)];
        // what stands alone between gaps is no line: its mark is all there is
        const alone = gaps.size > 0 && (j === 0 || gaps.has(j - 1)) && (j === end || gaps.has(j + 1));
        if (px < next && !open.has(j) && !alone) return;
        mark(u.ctx, s.key, px, py, r, open.has(j));
        if (px < next) return;
        next = next === -Infinity ? px + apart * (0.35 + 0.65 * ((i * 0.38) % 1)) : px + apart;
        last = null;
      });
      if (last) mark(u.ctx, s.key, last[0], last[1], r, last[2]);
    });
    u.ctx.globalAlpha = 1;
  }

  // bars puts the shape, the value if there is room, and the range on bars.
  function barMarks(u, spec) {
    const d = DPR(), ctx = u.ctx;
    const slot = Math.abs(u.valToPos(1, 'x', true) - u.valToPos(0, 'x', true));
    ctx.save();
    ctx.textAlign = 'center';
    ctx.font = FONT.replace('12px', 11 * d + 'px');
    spec.series.forEach((s, i) => {
      if (!u.series[i + 1].show) return;
      u.data[0].forEach((x, j) => {
        const y = u.data[i + 1][j];
        if (y == null || spec.ylog && y <= 0) return;
        const px = u.valToPos(x, 'x', true);
        let top = u.valToPos(y, 'y', true);
        const lo = s.lo && s.lo[j], hi = s.hi && s.hi[j];
        if (hi != null && lo != null && (!spec.ylog || lo > 0)) {
          const a = u.valToPos(lo, 'y', true), b = u.valToPos(hi, 'y', true), w = Math.min(slot * 0.15, 5 * d);
          ctx.strokeStyle = theme.text;
          ctx.lineWidth = 1.2 * d;
          ctx.beginPath();
          ctx.moveTo(px, a); ctx.lineTo(px, b);
          ctx.moveTo(px - w, a); ctx.lineTo(px + w, a);
          ctx.moveTo(px - w, b); ctx.lineTo(px + w, b);
          ctx.stroke();
          top = Math.min(top, b);
        }
        mark(ctx, s.key, px, top - 8 * d, 3.4 * d);
        const text = write(spec.unit, y, true);
        if (ctx.measureText(text).width < slot * 0.85) {
          ctx.fillStyle = theme.text;
          ctx.fillText(text, px, top - 15 * d);
        }
      });
    });
    ctx.restore();
  }

  // ---- options for the library ----
  const room = document.createElement('canvas').getContext('2d');
  function widest(texts) {
    room.font = FONT;
    return Math.max(10, ...(texts || []).filter((t) => t != null).map((t) => room.measureText(t).width));
  }

  function yRange(spec) {
    return (u, low, high) => {
      if (spec.range && spec.kind === 'lines') [low, high] = spec.range;
      if (low == null || high == null || !isFinite(low) || !isFinite(high)) return spec.ylog ? [1, 10] : [0, 1];
      if (spec.kind === 'bars') {
        spec.series.forEach((s, i) => u.series[i + 1].show && (s.hi || []).forEach((h) => { if (h != null) high = Math.max(high, h); }));
        if (!spec.ylog) return [0, high > 0 ? high * 1.2 : 1];
        return [Math.pow(10, Math.floor(Math.log10(low / 1.5))), high * Math.pow(high / low, 0.18) * 1.3];
      }
      if (spec.ylog) return [low / Math.pow(high / low, 0.06) / 1.1, high * Math.pow(high / low, 0.06) * 1.1];
      if (spec.line) {
        const most = Math.max(Math.abs(high - spec.line), Math.abs(low - spec.line), spec.line * 0.05) * 1.15;
        return [Math.max(0, spec.line - most), spec.line + most];
      }
      if (spec.heads && low > high / 3) { // what moves little would be a flat line above 0
        const pad = Math.max((high - low) * 0.15, high * 0.03);
        return [low - pad, high + pad];
      }
      return [0, high > 0 ? high * 1.08 : 1];
    };
  }

  function xRange(spec) {
    const first = spec.x[0], last = spec.x[spec.x.length - 1];
    return (u, low, high) => {
      if (spec.kind === 'bars') return [first - 0.75, last + 0.75];
      if (low == null) return [1, 10];
      if (low > first || high < last) return [low, high]; // zoomed
      if (spec.xlog) return [low, Math.max(high * 1.05, 10)];
      const pad = low === high ? 0.5 : (high - low) * 0.02;
      return spec.heads ? [low - pad, high + pad] : [Math.min(0, low), high + pad];
    };
  }

  // ticks keeps as many of the given places as there is room for, evenly.
  function ticks(spec, u) {
    const inside = (t) => t.x >= u.scales.x.min && t.x <= u.scales.x.max;
    const width = (list) => widest(list.flatMap((t) => t.t.split('\n')));
    const apart = (list) => list.every((t, i) => i === 0 ||
      u.valToPos(t.x, 'x') - u.valToPos(list[i - 1].x, 'x') >= (width([t]) + width([list[i - 1]])) / 2 + 8);
    const all = spec.ticks.filter(inside);
    u.short = false;
    if (apart(all)) return all;
    u.short = !!spec.xshort;
    const short = all.map((t) => ({ x: t.x, t: t.s || t.t }));
    if (spec.xshort && apart(short)) return short;
    const whole = spec.xshort ? short : spec.xlog ? all.filter((t) => t.x !== 2) : all; // 50 goes first
    for (let every = 1; every < whole.length; every++) {
      const some = whole.filter((t, i) => i % every === 0);
      if (apart(some)) return some;
    }
    return whole.slice(0, 1);
  }

  // decades are the places on a logarithmic axis: round numbers, as many as fit.
  function decades(low, high, most) {
    const places = (steps, every) => {
      const list = [];
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
        if (e % every === 0) for (const m of steps) list.push(Number((m * Math.pow(10, e)).toPrecision(3)));
      }
      return list.filter((v) => v >= low && v <= high);
    };
    for (const steps of [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3], [1]]) {
      const list = places(steps, 1);
      if (list.length <= most) return list.length > 1 ? list : even(low, high, most);
    }
    for (let every = 2; ; every++) {
      const list = places([1], every);
      if (list.length <= most || every > 50) return list;
    }
  }
  // even are round numbers at one distance, for an axis that spans little.
  function even(low, high, most) {
    const rough = (high - low) / Math.max(2, Math.min(most, 5)), size = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = size * [1, 2, 5, 10].find((m) => m * size >= rough), list = [];
    for (let i = Math.ceil(low / step); i * step <= high && list.length < 20; i++) list.push(Number((i * step).toPrecision(6)));
    return list;
  }

  function axes(spec) {
    const common = { stroke: () => theme.soft, font: FONT, labelFont: FONT, labelSize: 18, labelGap: 0,
      ticks: { stroke: () => theme.grid, size: 5, width: 1 } };
    const grid = { stroke: () => theme.grid, width: 1 }, all = (u, splits) => splits;
    const x = { ...common, label: (u) => (u.short ? spec.xshort : spec.xlabel || ''), grid: { ...grid, show: spec.kind === 'lines' }, size: 30 };
    if (spec.ticks) {
      x.size = (u, values) => 14 + 16 * Math.max(1, ...(values || []).map((t) => String(t).split('\n').length));
      x.splits = (u) => { u.kept = ticks(spec, u); return u.kept.map((t) => t.x); };
      x.values = (u, splits) => splits.map((v) => (u.kept.find((t) => t.x === v) || { t: '' }).t);
      x.filter = all;
    } else {
      x.space = 55;
      x.values = (u, splits) => splits.map((v) => (v == null ? null : trim(digits(v))));
    }
    const y = { ...common, label: spec.ylabel, grid, gap: 4, size: (u, values) => Math.ceil(widest(values)) + 14,
      values: (u, splits) => splits.map((v) => (v == null ? null : write(spec.unit, v, true))) };
    if (spec.ylog) {
      y.splits = (u, i, low, high) => decades(low, high, Math.max(2, Math.floor(u.height / 34)));
      y.filter = all;
    }
    return [x, y];
  }

  const hidden = (host, key) => {
    const button = host.closest('.block').querySelector('.legend button[data-key="' + key + '"]');
    return !!button && button.getAttribute('aria-pressed') === 'false';
  };

  function options(spec, host, width, height) {
    const bars = spec.kind === 'bars';
    const paths = bars ? uPlot.paths.bars({ radius: 0.06, disp: {
      x0: { unit: 1, values: () => spec.x.map((x) => x - 0.42) },
      size: { unit: 1, values: () => [0.84] } } }) : undefined;
    return {
      width, height, padding: [bars ? 8 : 10, spec.ticks && !bars ? 26 : 12, 0, 2], legend: { show: false }, axes: axes(spec),
      scales: { x: { time: false, distr: spec.xlog ? 3 : 1, range: xRange(spec) }, y: { distr: spec.ylog ? 3 : 1, range: yRange(spec) } },
      focus: { alpha: 0.35 },
      cursor: { y: false, focus: { prox: bars || spec.series.length < 4 ? -1 : 24 }, drag: { x: !bars, y: false, setScale: !bars }, points: { show: !bars, size: 9, width: 2,
        stroke: (u, i) => colour(spec.series[i - 1].key), fill: () => theme.page } },
      series: [{}].concat(spec.series.map((s) => ({
        show: !hidden(host, s.key), spanGaps: false, paths, points: { show: false },
        stroke: () => colour(s.key), fill: bars ? () => colour(s.key) : undefined, width: bars ? 0 : s.dash ? 1.5 : 2,
        dash: s.dash ? [7, 4] : undefined, fillTo: bars ? (u) => (spec.ylog ? u.scales.y.min : 0) : undefined,
      }))),
      hooks: {
        draw: [(u) => (bars ? barMarks : marks)(u, spec)],
        drawAxes: [(u) => { if (spec.line) rule(u, spec.line); }],
        setCursor: [(u) => tip(u, spec, host)],
        setSeries: [(u, i) => { u.nearest = i; }],
      },
    };
  }

  // rule draws a line across.
  function rule(u, value) {
    const y = u.valToPos(value, 'y', true), ctx = u.ctx;
    if (value < u.scales.y.min || value > u.scales.y.max) return;
    ctx.save();
    ctx.strokeStyle = theme.soft;
    ctx.lineWidth = 1.5 * DPR();
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  // ---- what is told while a chart is hovered ----
  function near(values, at, gaps) {
    if (values[at] != null) return at;
    if (gaps && gaps.includes(at)) return -1;
    for (let off = 1; off < 4; off++) {
      if (values[at - off] != null) return at - off;
      if (values[at + off] != null) return at + off;
    }
    return -1;
  }

  function rows(u, spec, at, host) {
    const list = [];
    spec.series.forEach((s, i) => {
      if (!u.series[i + 1].show) return;
      const places = [];
      if (spec.cats) u.data[0].forEach((x, j) => { if (spec.cats[j] === spec.cats[at] && s.y[j] != null) places.push(j); });
      else if (spec.heads) places.push(s.y[at] == null ? -1 : at);
      else places.push(near(s.y, at, s.gaps));
      for (const j of places) {
        if (j < 0) continue;
        const value = write(spec.unit, s.y[j]);
        const range = s.lo && s.lo[j] != null && s.hi[j] != null ? write(spec.unit, s.lo[j]) + ' – ' + write(spec.unit, s.hi[j]) : '';
        const button = host.closest('.block').querySelector('.legend button[data-key="' + s.key + '"]');
        list.push({ button, dash: s.dash, value, range: s.open && s.open.includes(j) ? ('undecided ' + range).trim() : range, near: u.nearest === i + 1 && u.cursor.focus.prox > 0 });
      }
    });
    return list;
  }

  function tip(u, spec, host) {
    let box = u.over.querySelector('.tip');
    if (!box) {
      box = document.createElement('div');
      box.className = 'tip';
      box.setAttribute('role', 'status');
      u.over.appendChild(box);
    }
    const at = u.cursor.idx;
    const list = at == null || u.cursor.left < 0 ? [] : rows(u, spec, at, host);
    box.hidden = list.length === 0;
    if (box.hidden) return;
    box.textContent = '';
    const head = document.createElement('b');
    head.textContent = spec.heads ? spec.heads[at] : trim(digits(u.data[0][at])) + ' s';
    if (head.textContent) box.appendChild(head);
    for (const row of list) {
      const line = document.createElement('div');
      if (row.near) line.className = 'near';
      const swatch = row.button && row.button.querySelector('svg').cloneNode(true);
      if (swatch && row.dash) swatch.querySelector('line').setAttribute('stroke-dasharray', '5 3');
      const name = document.createElement('span'), value = document.createElement('i');
      name.textContent = row.button ? row.button.querySelector('span').textContent + (row.dash ? ' (service)' : '') : '';
      value.textContent = row.value;
      if (row.range) {
        const range = document.createElement('small');
        range.textContent = row.range;
        value.appendChild(range);
      }
      line.append(swatch || document.createElement('span'), name, value);
      box.appendChild(line);
    }
    const width = u.over.clientWidth, height = u.over.clientHeight;
    const left = Math.min(Math.max(u.valToPos(u.data[0][at], 'x'), 0), width);
    box.style.left = 0;
    const w = box.offsetWidth, h = box.offsetHeight;
    let x = left + 14;
    if (x + w > width) x = left - w - 14;
    if (x < 0) x = Math.max(0, Math.min(left - w / 2, width - w));
    box.style.left = x + 'px';
    box.style.top = Math.max(0, Math.min(u.cursor.top - h / 2, height - h)) + 'px';
  }

  // keys moves the cursor without a mouse.
  function onKey(event) {
    const u = live.get(event.currentTarget);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!u || !step && event.key !== 'Escape') return;
    event.preventDefault();
    if (!step) return u.setCursor({ left: -10, top: -10 });
    const last = u.data[0].length - 1, now = u.cursor.idx == null ? (step > 0 ? -1 : last + 1) : u.cursor.idx;
    const to = Math.min(Math.max(now + step, 0), last);
    u.setCursor({ left: u.valToPos(u.data[0][to], 'x'), top: u.over.clientHeight / 2 });
  }

  // ---- life ----
  const live = new Map();
  // places tells the library where a line goes on although it has no value, as
  // others do (undefined), and where there is a gap (null).
  function places(s, spec) {
    const gaps = new Set(s.gaps || []);
    return s.y.map((v, i) => (v == null || spec.ylog && !(v > 0) ? (gaps.has(i) ? null : undefined) : v));
  }
  function build(host) {
    const spec = specs.find((s) => s.id === host.id);
    const old = live.get(host);
    if (old) old.destroy();
    const data = [spec.x].concat(spec.series.map((s) => (spec.kind === 'bars' ? s.y : places(s, spec))));
    try {
      live.set(host, new uPlot(options(spec, host, host.clientWidth, host.clientHeight), data, host));
    } catch (error) { // the others can still be drawn
      live.delete(host);
      host.textContent = 'This chart cannot be drawn.';
      console.error(error);
    }
  }
  function fit(host) {
    const width = host.clientWidth, height = host.clientHeight;
    if (width < 40) return; // folded away
    const u = live.get(host);
    if (!u && !host.textContent) build(host);
    else if (!u) return;
    else if (u.width !== width || u.height !== height) u.setSize({ width, height });
  }
  function restyle() {
    readTheme();
    for (const host of live.keys()) build(host);
  }

  readTheme();
  const hosts = specs.map((s) => $(s.id));
  const watch = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach((e) => fit(e.target))));
  for (const host of hosts) {
    fit(host);
    watch.observe(host);
    host.addEventListener('keydown', onKey);
    host.addEventListener('blur', () => { const u = live.get(host); if (u) u.setCursor({ left: -10, top: -10 }); });
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.print = '';
    document.querySelectorAll('.block').forEach((d) => { if (d.tagName === 'DETAILS') d.open = true; });
    restyle(); // also to the width of paper
    hosts.forEach(fit);
  });
  addEventListener('afterprint', () => { delete document.documentElement.dataset.print; restyle(); hosts.forEach(fit); });

  for (const button of document.querySelectorAll('.legend button')) {
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') === 'false';
      button.setAttribute('aria-pressed', String(on));
      for (const host of button.closest('.block').querySelectorAll('.chart')) {
        const u = live.get(host), spec = specs.find((s) => s.id === host.id);
        if (u) spec.series.forEach((s, i) => { if (String(s.key) === button.dataset.key) u.setSeries(i + 1, { show: on }); });
      }
    });
  }

  // ---- copying ----
  function copy(text, what) {
    const say = (s) => { $('copied').textContent = s; };
    const done = () => say(what + ' copied'), failed = () => say('the browser does not let this page copy');
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, failed);
    else failed();
  }
  if ($('copy-runs')) {
    $('copy-runs').addEventListener('click', () => copy($('runs').textContent, 'JSON'));
    $('copy-table').addEventListener('click', () => {
      const lines = [...document.querySelectorAll('#raw tr')].map((tr) => [...tr.cells].flatMap((c) => Array(c.colSpan).fill(c.textContent.trim())).join('\t'));
      copy(lines.join('\n'), 'Table');
    });
  }
})();
