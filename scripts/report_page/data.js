'use strict';
// The runs: what their logs say, as columns of numbers, and as series over the horizontal axis.

const stepFields = ['step', 'global_step', 'iteration', 'iter', 'epoch'];
const kindFields = ['kind', 'phase', 'split', 'event'];
const widest = 8e307;   // of an x, so that the length of a range is finite

// Points in the order of x. Where x goes back, as in a run that goes on from a checkpoint, the new points take the place of those
// that they overtake. A y that is not finite is NaN.
class Series {
  x = [];
  y = [];
  version = 0;
  overtaken = 0;

  add(x, y) {
    while (this.x.length && this.x[this.x.length - 1] > x) {
      this.x.pop();
      this.y.pop();
      ++this.overtaken;
    }
    this.x.push(x);
    this.y.push(y);
    ++this.version;
  }

  // The index of the first point at x or behind it.
  from(x) { return lowerBound(this.x, x); }

  nearest(x) {
    const i = this.from(x);
    return i > 0 && (i === this.x.length || x - this.x[i - 1] < this.x[i] - x) ? i - 1 : i;
  }

  // Exponential means of the y so far: a point counts `weight` times less for each thousandth of `length` that it is back, so
  // that curves of many and of few points are equally smooth. Without a weight, y.
  smoothed(weight, length) {
    if (!weight || !length) return this.y;
    const {means} = this;
    if (means?.weight === weight && means.length === length && means.version === this.version) return means.y;
    let sum = 0, weights = 0, before = this.x[0];
    const y = this.y.map((y, i) => {
      if (Number.isNaN(y)) return y;
      const kept = weight ** ((this.x[i] - before) / length * 1000);
      before = this.x[i];
      sum = kept * sum + y;
      weights = kept * weights + 1;
      return sum / weights;
    });
    this.means = {weight, length, version: this.version, y};
    return y;
  }

  // Indices of the lowest and the highest y; -1 where there is none.
  extremes() {
    if (this.found?.version === this.version) return this.found;
    let lowest = -1, highest = -1;
    this.y.forEach((y, i) => {
      if (Number.isNaN(y)) return;
      if (lowest < 0 || y < this.y[lowest]) lowest = i;
      if (highest < 0 || y > this.y[highest]) highest = i;
    });
    return this.found = {version: this.version, lowest, highest};
  }
}

// Indices of the points of [from, to) that can be seen, and -1 where a line is interrupted: of the points in one column of
// pixels the first, the lowest, the highest and the last.
function thin(series, y, from, to, columnOf) {
  const kept = [];
  for (let i = from; i < to;) {
    const column = columnOf(series.x[i]);
    let first = -1, lowest = -1, highest = -1, last = -1;
    if (Number.isNaN(y[i])) kept.push(-1);
    for (; i < to && columnOf(series.x[i]) === column; ++i) {
      if (Number.isNaN(y[i])) continue;
      if (first < 0) first = lowest = highest = i;
      if (y[i] < y[lowest]) lowest = i;
      if (y[i] > y[highest]) highest = i;
      last = i;
    }
    if (first < 0) continue;
    kept.push(first);
    for (const next of [Math.min(lowest, highest), Math.max(lowest, highest), last])
      if (next > kept[kept.length - 1]) kept.push(next);
    if (last < i - 1) kept.push(-1);
  }
  return kept;
}

// An object, or nothing. Python writes NaN and Infinity, which JSON does not have.
function parseLine(line) {
  for (const text of [line, line.replace(/([:[,]\s*)-?(NaN|Infinity)(?=\s*[\],}])/g, '$1null')]) {
    try {
      const value = JSON.parse(text);
      return value && typeof value === 'object' && !Array.isArray(value) ? value : undefined;
    } catch { /* it is no JSON */ }
  }
}

class Run {
  constructor(index, name, options) {
    Object.assign(this, {index, name, options, shown: true, at: 0, mark: '', problem: ''});
    this.clear();
  }

  clear() {
    this.lines = this.unreadable = 0;
    this.columns = new Map();    // of the numbers of a field: their lines and values
    this.settings = new Map();   // the last text of each field that has other values than numbers
    this.kinds = [];             // of each line
    this.restart();
  }

  // Adds an answer of the server, and says whether there was something new.
  take({at, mark, anew, text, problem}) {
    const changed = anew || text !== '' || problem !== this.problem;
    if (anew) this.clear();
    Object.assign(this, {at, mark, problem});
    for (const line of text.split('\n')) {
      if (line.trim() === '') continue;
      const fields = parseLine(line);
      if (fields) this.add(fields); else ++this.unreadable;
    }
    this.extend();
    return changed;
  }

  add(fields) {
    const kindField = (this.options.kind === null ? kindFields : [this.options.kind]).find(name => typeof fields[name] === 'string');
    this.kinds.push(kindField === undefined ? '' : fields[kindField]);
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === 'number' || value === null) {
        const column = this.columns.get(name) ?? {line: [], value: [], done: 0};
        this.columns.set(name, column);
        column.line.push(this.lines);
        column.value.push(Number.isFinite(value) ? value : NaN);
      } else if (name !== kindField) {
        this.settings.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
      }
    }
    ++this.lines;
  }

  // The field of the horizontal axis: the one that is asked for, else the first that counts steps; null: the number of the line.
  xField() {
    const {x, byLine} = this.options;
    return byLine ? null : [x, ...stepFields].find(name => this.columns.has(name)) ?? null;
  }

  // Begins the series again, over another axis.
  restart() {
    this.x = [];                 // of each line
    this.x.field = this.xField();
    this.early = new Map();      // numbers before the first x, which are settings
    this.series = new Map();     // by field, then by kind
    for (const column of this.columns.values()) column.done = 0;
  }

  // Takes what is new into the series. A line without the field of the axis is where the previous one is.
  extend() {
    if (this.x.field !== this.xField()) this.restart();
    const steps = this.columns.get(this.x.field);
    let next = steps ? lowerBound(steps.line, this.x.length) : 0;
    for (let line = this.x.length; line < this.lines; ++line) {
      let x = steps ? this.x[line - 1] ?? NaN : line + 1;
      if (steps && steps.line[next] === line && Math.abs(steps.value[next++]) <= widest) x = steps.value[next - 1];
      this.x.push(x);
    }
    for (const [name, column] of this.columns)
      if (name !== this.x.field && !stepFields.includes(name)) this.extendField(name, column);
  }

  extendField(name, column) {
    for (; column.done < column.line.length; ++column.done) {
      const line = column.line[column.done], value = column.value[column.done];
      if (Number.isNaN(this.x[line])) this.early.set(name, numberText(value));
      else this.seriesOf(name, this.kinds[line]).add(this.x[line], value);
    }
  }

  seriesOf(field, kind) {
    if (!this.series.has(field)) this.series.set(field, new Map());
    const kinds = this.series.get(field);
    if (!kinds.has(kind)) kinds.set(kind, new Series());
    return kinds.get(kind);
  }

  overtaken() {
    return Math.max(0, ...[...this.series.values()].flatMap(kinds => [...kinds.values()].map(series => series.overtaken)));
  }
}

function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function numberText(value) {
  if (Number.isNaN(value)) return 'not finite';
  const size = Math.abs(value);
  let text = String(Number(value.toPrecision(5)));
  if (Number.isInteger(value) && size < 1e15) text = value.toLocaleString('en-US');
  else if (size < 1e-3 || size >= 1e6) text = value.toExponential(3).replace('e+', 'e');
  return text.replaceAll('-', '\u2212');
}
