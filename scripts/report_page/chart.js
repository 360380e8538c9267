// A chart: one field of all runs, over the axis that all charts share.

const plotHeight = 220, wideHeight = 420;
const dashes = ['', '7 4', '1.5 4', '9 4 1.5 4'];   // of kinds of lines
const colours = 8;
const fewPoints = 60;                               // so few get a dot each

function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function colour(run) { return run ? `run${run.index % colours}` : 'norun'; }

function swatch(run, dash = '') {
  return svg('svg', {class: `swatch ${colour(run)}`, width: 22, height: 10, 'aria-hidden': true},
             svg('path', {d: 'M1,5H21', 'stroke-dasharray': dash}));
}

// A range that is not empty, a little larger than from low to high.
function padded(low, high, part) {
  const room = high > low ? (high - low) * part : Math.max(Math.abs(low) * 0.05, 1e-300) || 1;
  return [low - room, high + room];
}

// Round numbers in a range, some `count` of them.
function ticks([low, high], count) {
  const least = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= least) ?? 10 * power;
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high && values.length < 20; ++i) values.push(Number((i * step).toPrecision(12)));
  return values;
}

// Powers of ten in a range of logarithms, with 2 and 5 in between where there are few, or other round numbers within one power.
function logTicks([low, high], count) {
  const every = Math.ceil((high - low) / count);
  if (high - low < 1) return ticks([10 ** low, 10 ** high], count);
  const values = [];
  for (let power = Math.floor(low); power <= high; ++power)
    for (const m of high - low <= count / 2 ? [1, 2, 5] : [1])
      if (power % every === 0 && Math.log10(m) + power >= low && Math.log10(m) + power <= high) values.push(Number(`${m}e${power}`));
  return values;
}

function tickText(value) {
  const size = Math.abs(value);
  let text = String(value);
  if (size >= 1e9 || (size < 1e-4 && size > 0)) text = value.toExponential().replace('e+', 'e');
  else if (size >= 1e6) text = `${Number((value / 1e6).toPrecision(12))}M`;
  else if (size >= 1e4) text = `${Number((value / 1e3).toPrecision(12))}k`;
  return text.replaceAll('-', '\u2212');
}

class Chart {
  constructor(field, report) {
    Object.assign(this, {field, report, logarithmic: false, onScreen: false, stale: true});
    const button = (text, label, pressed) => {
      const element = html('button', {type: 'button', 'aria-pressed': 'false', title: label, 'aria-label': `${label}: ${field}`}, text);
      element.addEventListener('click', () => element.setAttribute('aria-pressed', pressed()));
      return element;
    };
    this.note = html('span', {class: 'note'});
    this.svg = svg('svg', {tabindex: 0, role: 'img'});
    this.tip = html('div', {class: 'tip', 'aria-live': 'polite'});
    this.tip.hidden = true;
    this.element = html('figure', {class: 'chart'},
      html('figcaption', {}, html('h3', {title: field}, html('bdi', {}, field)), this.note,
           button('log', 'Logarithmic scale', () => this.toggleLogarithmic()), button('wide', 'Full width', () => this.toggleWide())),
      html('div', {class: 'plot'}, this.svg, this.tip));
    this.element.dataset.field = field;
    this.listen();
  }

  toggleLogarithmic() {
    this.logarithmic = !this.logarithmic;
    this.draw();
    return this.logarithmic;
  }

  toggleWide() {
    const wide = this.element.classList.toggle('wide');
    this.draw();
    return wide;
  }

  curves() {
    const length = this.report.length();
    return this.report.shownSeries(this.field).map(curve => {
      const smoothed = curve.series.smoothed(this.report.weight, length);
      const positive = y => this.logarithmic ? y.map(y => y > 0 ? y : NaN) : y;
      return {...curve, raw: positive(curve.series.y), y: positive(smoothed)};
    });
  }

  draw() {
    const width = this.svg.parentNode.clientWidth;
    this.stale = !this.onScreen || width < 60;   // so narrow where there is no window to see it in
    if (this.stale) return;
    const height = this.element.classList.contains('wide') ? wideHeight : plotHeight;
    const curves = this.drawn = this.curves(), x = this.report.range(), columns = Math.max(width - 40, 10);
    const columnOf = value => Math.floor((value - x[0]) / (x[1] - x[0]) * columns);
    for (const curve of curves) {
      const from = Math.max(curve.series.from(x[0]) - 1, 0), to = Math.min(curve.series.from(x[1]) + 2, curve.series.x.length);
      curve.inside = [from, to];
      curve.kept = thin(curve.series, curve.y, from, to, columnOf);
      curve.keptRaw = curve.y === curve.raw ? curve.kept : thin(curve.series, curve.raw, from, to, columnOf);
    }
    this.scale = this.scaleOf(curves, x, width, height);
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.svg.setAttribute('width', width);
    this.svg.setAttribute('height', height);
    this.svg.setAttribute('aria-label', `${this.field}, ${curves.length} curves. Arrow keys read values, plus and minus zoom, Escape resets.`);
    const {left, top, right, bottom} = this.scale, box = {x: left - 3, y: top - 3, width: right - left + 6, height: bottom - top + 6};   // with room for dots
    const inner = svg('svg', {class: 'curves', ...box, viewBox: Object.values(box).join(' ')}, ...curves.flatMap(curve => this.drawCurve(curve)));
    this.mark = svg('g', {class: 'mark'});
    this.svg.replaceChildren(this.drawGrid(), inner, this.mark);
    const hidden = this.logarithmic && curves.some(({series}) => series.y[series.extremes().lowest] <= 0);
    this.note.textContent = hidden ? 'values \u2264 0 are not shown' : '';
    this.drawMark();
  }

  // Where values are: the y range has all points of the curves that are inside of the x range.
  scaleOf(curves, xRange, width, height) {
    let low = Infinity, high = -Infinity;
    for (const {series, y, raw, kept, keptRaw} of curves)
      for (const [values, indices] of [[y, kept], [raw, keptRaw]])
        for (const i of indices)
          if (i >= 0 && series.x[i] >= xRange[0] && series.x[i] <= xRange[1]) low = Math.min(low, values[i]), high = Math.max(high, values[i]);
    if (low > high) [low, high] = this.logarithmic ? [1, 10] : [0, 1];
    const project = this.logarithmic ? Math.log10 : v => Math.min(Math.max(v, -widest), widest);
    const yRange = padded(project(low), project(high), 0.05);
    const yTicks = (this.logarithmic ? logTicks : ticks)(yRange, height / 36).filter(value => Number.isFinite(project(value)));
    const left = Math.min(12 + 6.6 * Math.max(3, ...yTicks.map(value => tickText(value).length)), width / 3), right = width - 14, top = 8, bottom = height - 26;
    return {xRange, yTicks, left, right, top, bottom,
            x: value => left + (value - xRange[0]) / (xRange[1] - xRange[0]) * (right - left),
            y: value => bottom - (project(value) - yRange[0]) / (yRange[1] - yRange[0]) * (bottom - top),
            valueAt: pixel => xRange[0] + (pixel - left) / (right - left) * (xRange[1] - xRange[0])};
  }

  drawGrid() {
    const {xRange, yTicks, left, right, top, bottom, x, y} = this.scale, grid = svg('g', {class: 'grid'});
    for (const value of yTicks)
      grid.append(svg('path', {d: `M${left},${y(value).toFixed(1)}H${right}`}), svg('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'}, tickText(value)));
    for (const value of ticks(xRange, (right - left) / 60))
      grid.append(svg('path', {d: `M${x(value).toFixed(1)},${top}V${bottom}`}), svg('text', {x: x(value), y: bottom + 17, 'text-anchor': 'middle'}, tickText(value)));
    return grid;
  }

  drawCurve({run, dash, series, raw, y, kept, keptRaw, inside}) {
    const paths = [], points = kept.filter(i => i >= 0);
    const path = (kind, d, attributes = {}) => d && paths.push(svg('path', {class: `${kind} ${colour(run)}`, d, 'data-run': run.index, ...attributes}));
    if (raw !== y) path('raw', this.line(series.x, raw, keptRaw));
    path('curve', this.line(series.x, y, kept), {'stroke-dasharray': dash, 'data-points': points.length});
    if (points.length <= fewPoints) path('dots', points.map(i => `M${this.point(series.x[i], y[i])}l0,0`).join(''));
    path('lost', this.crosses(series, ...inside));
    for (const element of paths) element.classList.toggle('faint', this.report.isFaint(run));
    return paths;
  }

  point(x, y) { return `${this.scale.x(x).toFixed(1)},${this.scale.y(y).toFixed(1)}`; }

  // A piece of a single point is a line without length, whose round ends are seen.
  line(x, y, kept) {
    return kept.map((i, at) => {
      if (i < 0) return '';
      const begins = at === 0 || kept[at - 1] < 0, alone = begins && !(kept[at + 1] >= 0);
      return `${begins ? 'M' : 'L'}${this.point(x[i], y[i])}${alone ? 'l0,0' : ''}`;
    }).join('');
  }

  // At the upper edge where a number was not finite, one for some pixels.
  crosses(series, from, to) {
    let d = '', last = -Infinity;
    for (let i = from; i < to; ++i) {
      if (!Number.isNaN(series.y[i])) continue;
      const x = this.scale.x(series.x[i]);
      if (x < last + 7) continue;
      d += `M${(x - 3).toFixed(1)},${this.scale.top + 2}l6,6m-6,0l6,-6`;
      last = x;
    }
    return d;
  }

  // The line through all charts where the pointer or the keyboard is, and, in the chart itself, the values there.
  drawMark() {
    if (!this.scale || !this.onScreen) return;
    const {cursor, active, drag} = this.report, {top, bottom, left, right, x, xRange} = this.scale;
    this.mark.replaceChildren();
    this.tip.hidden = true;
    if (drag && active === this) {
      const [a, b] = [drag.from, drag.to].map(value => Math.min(Math.max(x(value), left), right)).sort((a, b) => a - b);
      this.mark.append(svg('rect', {class: 'brush', x: a, y: top, width: b - a, height: bottom - top}));
    }
    if (cursor === null || cursor < xRange[0] || cursor > xRange[1]) return;
    this.mark.append(svg('path', {class: 'cursor', d: `M${x(cursor).toFixed(1)},${top}V${bottom}`}));
    if (active === this) this.showValues(cursor);
  }

  showValues(cursor) {
    const rows = [];
    for (const {run, kind, dash, series, y, raw} of this.drawn) {
      const i = series.nearest(cursor);
      if (i >= series.x.length || Math.abs(this.scale.x(series.x[i]) - this.scale.x(cursor)) > 12) continue;
      if (!Number.isNaN(y[i]))
        this.mark.append(svg('circle', {class: colour(run), cx: this.scale.x(series.x[i]), cy: this.scale.y(y[i]), r: 3.5}));
      const value = y === raw || Number.isNaN(y[i]) ? numberText(series.y[i]) : `${numberText(y[i])} (${numberText(series.y[i])})`;
      const at = series.x[i] === cursor ? '' : ` at ${numberText(series.x[i])}`;
      rows.push({y: y[i], row: html('li', {}, swatch(run, dash), html('bdi', {}, run.name + (kind && ` \u00b7 ${kind}`)), html('b', {}, value + at))});
    }
    if (rows.length === 0) return;
    rows.sort((a, b) => (b.y || 0) - (a.y || 0));
    const more = rows.length > 12 ? [html('li', {}, `and ${rows.length - 12} more`)] : [];
    this.tip.replaceChildren(html('div', {}, `${this.report.xName()} ${numberText(cursor)}`), html('ul', {}, ...rows.slice(0, 12).map(({row}) => row), ...more));
    this.tip.hidden = false;
    const room = this.svg.parentNode.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(this.scale.x(cursor) - this.tip.offsetWidth / 2, room))}px`;
  }

  listen() {
    const valueAt = event => this.scale.valueAt(event.clientX - this.svg.getBoundingClientRect().left);
    const {report} = this;
    this.svg.addEventListener('pointerdown', event => {
      if (event.button !== 0 || !this.scale) return;
      this.svg.setPointerCapture(event.pointerId);
      report.drag = {from: valueAt(event), to: valueAt(event)};
      report.mark(this, this.nearestX(valueAt(event)));
    });
    this.svg.addEventListener('pointermove', event => {
      if (!this.scale) return;
      if (report.drag && report.active === this) report.drag.to = valueAt(event);
      report.mark(this, this.nearestX(valueAt(event)));
    });
    const end = zooms => {
      const drag = report.active === this ? report.drag : null;
      report.drag = null;
      if (drag && zooms && Math.abs(this.scale.x(drag.to) - this.scale.x(drag.from)) > 5)
        report.zoom([Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)]);
      else report.mark(this, report.cursor);
    };
    this.svg.addEventListener('pointerup', () => end(true));
    this.svg.addEventListener('pointercancel', () => end(false));
    this.svg.addEventListener('pointerleave', () => report.drag || report.mark(null, null));
    this.svg.addEventListener('blur', () => report.mark(null, null));
    this.svg.addEventListener('dblclick', () => report.zoom(null));
    this.svg.addEventListener('keydown', event => this.key(event));
  }

  key(event) {
    const {report} = this, range = report.range(), length = range[1] - range[0], middle = report.cursor ?? (range[0] + range[1]) / 2;
    const far = event.shiftKey ? length / 10 : 0;
    const about = factor => [middle - (middle - range[0]) * factor, middle + (range[1] - middle) * factor];
    const action = {
      ArrowLeft: () => report.mark(this, this.nextX(middle - far, -1)), ArrowRight: () => report.mark(this, this.nextX(middle + far, 1)),
      Home: () => report.mark(this, this.nextX(range[0] - length * 1e-9, 1)), End: () => report.mark(this, this.nextX(range[1] + length * 1e-9, -1)),
      '+': () => report.zoom(about(0.5)), '=': () => report.zoom(about(0.5)), '-': () => report.zoom(about(2)), Escape: () => report.zoom(null), 0: () => report.zoom(null),
      l: () => this.element.querySelector('button').click(),
    }[event.ctrlKey || event.metaKey || event.altKey ? '' : event.key];
    if (!action || !this.scale) return;
    event.preventDefault();
    action();
  }

  // The x of a point of any curve: the nearest one, and the next one to a side.
  nearestX(value) {
    return this.ofPoints(series => series.x[series.nearest(value)], (a, b) => Math.abs(a - value) < Math.abs(b - value)) ?? value;
  }
  nextX(value, way) {
    const next = series => {
      let i = series.from(value);
      if (way > 0) while (series.x[i] === value) ++i; else --i;
      return series.x[i];
    };
    return this.ofPoints(next, way > 0 ? (a, b) => a < b : (a, b) => a > b) ?? this.nearestX(value);
  }
  ofPoints(of, better) {
    let best;
    for (const {series} of this.report.shownSeries(this.field)) {
      const x = of(series);
      if (x !== undefined && (best === undefined || better(x, best))) best = x;
    }
    return best;
  }
}
