// The page: what is shown of which runs, and what comes from the server.

const mostCharts = 60;
const higherIsBetter = /(^|[^a-z])(acc|accuracy|auc|bleu|correct|f1|iou|precision|psnr|r2|recall|return|reward|right|score|ssim)([^a-z]|$)/i;

class Report {
  constructor(config) {
    Object.assign(this, {config, weight: 0, view: null, cursor: null, active: null, drag: null, focused: null, online: true});
    this.options = {x: config.x, byLine: false, kind: config.kind};
    this.runs = config.names.map((name, index) => new Run(index, name, this.options));
    this.charts = new Map();
    this.hiddenKinds = new Set();
    this.highest = new Map();   // of fields, whether the highest value is the best one
    const find = id => document.getElementById(id);
    this.parts = Object.fromEntries(['status', 'runs', 'kinds', 'axis', 'smoothing', 'weight', 'filter', 'reset', 'charts', 'more', 'values', 'settings'].map(id => [id, find(id)]));
    this.onScreen = new IntersectionObserver(entries => entries.forEach(entry => this.seen(entry)), {rootMargin: '300px'});
    this.sizes = new ResizeObserver(entries => entries.forEach(({target}) => this.charts.get(target.dataset.field)?.draw()));
    document.title = `${config.names.slice(0, 3).join(', ')}${config.names.length > 3 ? '\u2026' : ''} \u2013 training report`;
    this.listRuns();
    this.listen();
  }

  // What is shown.

  fields() {
    const fields = new Set(this.runs.flatMap(run => run.shown ? [...run.series.keys()] : []));
    const wanted = this.parts.filter.value.trim().toLowerCase();
    return [...fields].filter(field => field.toLowerCase().includes(wanted));
  }

  kinds() { return [...new Set(this.runs.flatMap(run => [...run.series.values()].flatMap(kinds => [...kinds.keys()])))]; }

  shownSeries(field) {
    const kinds = this.kinds();
    return this.runs.filter(run => run.shown).flatMap(run => [...run.series.get(field) ?? []].filter(([kind]) => !this.hiddenKinds.has(kind))
      .map(([kind, series]) => ({run, kind, series, dash: dashes[kinds.indexOf(kind) % dashes.length]})));
  }

  // The x range of all charts: what is zoomed to, or everything.
  range() { return this.view ?? this.whole(); }
  length() {
    const [low, high] = this.whole();
    return high - low;
  }

  whole() {
    let low = Infinity, high = -Infinity;
    for (const run of this.runs)
      for (const kinds of run.shown ? run.series.values() : [])
        for (const {x} of kinds.values()) low = Math.min(low, x[0]), high = Math.max(high, x[x.length - 1]);
    if (low > high) return [0, 1];
    return high > low ? [low, high] : padded(low, high, 0);
  }

  xName() { return [...new Set(this.runs.filter(run => run.shown).map(run => run.xField() ?? 'line'))].join(' or ') || 'line'; }

  isFaint(run) { return this.focused !== null && this.focused !== run; }

  // What the user does.

  zoom(range) {
    this.view = null;
    const whole = this.whole();
    if (range) {
      const view = [Math.max(range[0], whole[0]), Math.min(range[1], whole[1])];
      const narrowest = Math.max(Math.abs(view[0]), Math.abs(view[1])) * 1e-12;
      if (view[1] - view[0] > narrowest && (view[0] > whole[0] || view[1] < whole[1])) this.view = view;
    }
    this.parts.reset.disabled = this.view === null;
    this.refresh();
  }

  mark(chart, x) {
    this.active = chart;
    this.cursor = x;
    for (const other of this.charts.values()) other.drawMark();
  }

  focus(run) {
    this.focused = run;
    for (const path of this.parts.charts.querySelectorAll('[data-run]')) path.classList.toggle('faint', this.isFaint(this.runs[path.dataset.run]));
  }

  listen() {
    const {axis, smoothing, weight, filter, reset} = this.parts;
    axis.addEventListener('change', () => {
      this.options.x = axis.selectedIndex > 1 ? axis.value : this.config.x;
      this.options.byLine = axis.selectedIndex === 1;
      for (const run of this.runs) run.restart(), run.extend();
      this.zoom(null);
    });
    smoothing.addEventListener('input', () => {
      this.weight = Number(smoothing.value);
      weight.textContent = this.weight.toFixed(2);
      this.refresh();
    });
    filter.addEventListener('input', () => this.refresh());
    reset.addEventListener('click', () => this.zoom(null));
  }

  // Drawing, once for all changes between two frames.

  refresh() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    this.describeRuns();
    this.listKinds();
    this.listAxes();
    this.showStatus();
    const fields = this.fields();
    this.placeCharts(fields.slice(0, mostCharts));
    this.parts.more.hidden = fields.length <= mostCharts;
    this.parts.more.textContent = `${counted(fields.length - mostCharts, 'more field')} not shown; type a part of their names under \u201cFields\u201d.`;
    for (const chart of this.charts.values()) chart.draw();
    showValues(this, fields.slice(0, mostCharts));
    showSettings(this);
  }

  placeCharts(fields) {
    for (const [field, chart] of this.charts) {
      if (fields.includes(field)) continue;
      this.onScreen.unobserve(chart.element);
      this.sizes.unobserve(chart.element);
      chart.element.remove();
      this.charts.delete(field);
    }
    fields.forEach((field, i) => {
      const chart = this.charts.get(field) ?? this.addChart(field);
      if (this.parts.charts.children[i] !== chart.element) this.parts.charts.insertBefore(chart.element, this.parts.charts.children[i] ?? null);
    });
    this.parts.charts.dataset.empty = fields.length ? '' : this.runs.some(run => run.lines) ? 'No field with numbers is to be shown.' : 'No line has come yet.';
  }

  addChart(field) {
    const chart = new Chart(field, this);
    this.charts.set(field, chart);
    this.onScreen.observe(chart.element);
    this.sizes.observe(chart.element);
    return chart;
  }

  seen({target, isIntersecting}) {
    const chart = this.charts.get(target.dataset.field);
    if (!chart) return;
    chart.onScreen = isIntersecting;
    if (isIntersecting && chart.stale) chart.draw();
  }

  // The side.

  listRuns() {
    for (const run of this.runs) {
      const box = html('input', {type: 'checkbox', checked: ''});
      run.note = html('span', {class: 'note'});
      const item = html('li', {}, html('label', {title: run.name}, box, swatch(run), html('bdi', {}, run.name)), run.note);
      box.addEventListener('change', () => {
        run.shown = box.checked;
        this.refresh();
      });
      for (const event of ['mouseenter', 'focusin']) item.addEventListener(event, () => this.focus(run.shown ? run : null));
      for (const event of ['mouseleave', 'focusout']) item.addEventListener(event, () => this.focus(null));
      this.parts.runs.append(item);
    }
  }

  describeRuns() {
    const notes = run => [
      run.lines || !run.problem ? counted(run.lines, 'line') : '', run.problem,
      run.unreadable ? `${run.unreadable.toLocaleString('en-US')} unreadable` : '',
      run.overtaken() ? `went back; ${counted(run.overtaken(), 'point')} replaced` : ''];
    for (const run of this.runs) setText(run.note, notes(run).filter(note => note).join(' \u00b7 '));
  }

  listKinds() {
    const kinds = this.kinds(), {kinds: list} = this.parts, known = JSON.stringify(kinds);
    list.parentNode.hidden = kinds.length < 2;
    if (list.dataset.known === known) return;
    list.dataset.known = known;
    list.replaceChildren(...kinds.slice(0, 50).map((kind, i) => {
      const box = html('input', {type: 'checkbox'});
      box.checked = !this.hiddenKinds.has(kind);
      box.addEventListener('change', () => {
        if (box.checked) this.hiddenKinds.delete(kind); else this.hiddenKinds.add(kind);
        this.refresh();
      });
      return html('li', {}, html('label', {}, box, swatch(null, dashes[i % dashes.length]), html('bdi', {}, kind || 'others')));
    }));
  }

  listAxes() {
    const {axis} = this.parts, names = [...new Set(this.runs.flatMap(run => [...run.columns.keys()]))].slice(0, 200), known = JSON.stringify(names);
        if (axis.dataset.known !== known) {
      const chosen = axis.selectedIndex > 1 ? axis.value : null, first = Math.max(axis.selectedIndex, 0);
      axis.dataset.known = known;
      axis.replaceChildren(html('option'), html('option', {}, 'number of the line'), ...names.map(name => html('option', {value: name}, name)));
      axis.selectedIndex = chosen === null ? first : names.indexOf(chosen) + 2;
    }
    setText(axis.options[0], axis.selectedIndex === 0 ? `automatic (${this.xName()})` : 'automatic');
  }

  showStatus() {
    const {status} = this.parts, lines = counted(this.runs.reduce((sum, run) => sum + run.lines, 0), 'line');
    const state = this.config.written ? 'written' : this.online ? 'live' : 'offline';
    const texts = {written: `state of ${this.config.written}`, live: `live \u00b7 ${lines}`, offline: 'the server is gone; this is what it last sent'};
    status.dataset.state = state;
    setText(status, texts[state]);
  }

  // What comes from the server.

  take(answers) {
    const changed = this.runs.map((run, i) => run.take(answers[i]));
    if (changed.some(changed => changed)) this.refresh();
  }

  async poll() {
    const places = this.runs.map(run => `&at=${run.at}.${run.mark}`).join('');
    let wait = 1000;
    try {
      const response = await fetch(`lines?session=${this.config.session}${places}`);
      if (response.status === 410) return location.reload();   // another server has taken the port
      if (!response.ok) throw new Error(response.statusText);
      const answers = await response.json();
      this.take(answers);
      if (answers.some(answer => answer.more)) wait = 0;
      this.setOnline(true);
    } catch {
      this.setOnline(false);
      wait = 3000;
    }
    setTimeout(() => this.poll(), wait);
  }

  setOnline(online) {
    if (online === this.online) return;
    this.online = online;
    this.refresh();
  }
}

function counted(count, what) { return `${count.toLocaleString('en-US')} ${what}${count === 1 ? '' : 's'}`; }

// Where nothing changes, a reader of the screen is told nothing.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The last and the best values, per field and run. The rows are made again only when there are others.
function showValues(report, fields) {
  const groups = fields.map(field => [field, report.shownSeries(field)]).filter(([, curves]) => curves.length);
  const known = JSON.stringify([report.xName(), groups.map(([field, curves]) => [field, isHighest(report, field), curves.map(({run, kind}) => [run.index, kind])])]);
  const {values} = report.parts;
  values.closest('section').hidden = groups.length === 0;
  if (values.dataset.known !== known) {
    values.dataset.known = known;
    const head = html('thead', {}, html('tr', {}, ...['Run', 'Last', `at ${report.xName()}`, 'Best', `at ${report.xName()}`].map(text => html('th', {scope: 'col'}, text))));
    values.replaceChildren(head, ...groups.map(([field, curves]) => valueRows(report, field, curves)));
  }
  groups.forEach(([field, curves], i) => fillValues(values.tBodies[i], curves, isHighest(report, field) ? 'highest' : 'lowest'));
}

function isHighest(report, field) { return report.highest.get(field) ?? higherIsBetter.test(field); }

function valueRows(report, field, curves) {
  const highest = isHighest(report, field), name = highest ? 'highest' : 'lowest';
  const button = html('button', {type: 'button', 'aria-label': `The best ${field} is the ${name}; change that`}, `best: ${name}`);
  button.addEventListener('click', () => {
    report.highest.set(field, !highest);
    const at = [...report.parts.values.querySelectorAll('button')].indexOf(button);
    showValues(report, report.fields().slice(0, mostCharts));
    report.parts.values.querySelectorAll('button')[at]?.focus();
  });
  const head = html('tr', {class: 'field'}, html('th', {colspan: 5, scope: 'rowgroup'}, html('div', {}, html('bdi', {}, field), button)));
  const rows = curves.map(({run, kind, dash}) => html('tr', {}, html('th', {scope: 'row'}, html('div', {}, swatch(run, dash), html('bdi', {}, run.name + (kind && ` \u00b7 ${kind}`)))),
                                                     ...Array.from({length: 4}, () => html('td'))));
  return html('tbody', {}, head, ...rows);
}

function fillValues(body, curves, which) {
  const bestOf = new Map();   // of the runs, by kind
  for (const {kind, series} of curves) {
    const y = series.y[series.extremes()[which]], best = bestOf.get(kind)?.y;
    if (y !== undefined) bestOf.set(kind, {y: best === undefined || (which === 'highest' ? y > best : y < best) ? y : best, rivals: best !== undefined});
  }
  curves.forEach(({kind, series}, i) => {
    const last = series.x.length - 1, at = series.extremes()[which], cells = body.rows[i + 1].cells;
    const texts = [numberText(series.y[last]), numberText(series.x[last]), ...(at < 0 ? ['\u2013', ''] : [numberText(series.y[at]), numberText(series.x[at])])];
    texts.forEach((text, column) => setText(cells[column + 1], text));
    cells[1].classList.toggle('lost', Number.isNaN(series.y[last]));
    cells[3].classList.toggle('best', bestOf.get(kind)?.rivals === true && series.y[at] === bestOf.get(kind).y);
  });
}

// Texts and bools of each run, and numbers that were there before the first step.
function showSettings(report) {
  const runs = report.runs.filter(run => run.shown), of = (run, field) => run.settings.get(field) ?? run.early.get(field) ?? '';
  const fields = [...new Set(runs.flatMap(run => [...run.early.keys(), ...run.settings.keys()]))].slice(0, 200);
  const {settings} = report.parts, rows = fields.map(field => [field, ...runs.map(run => of(run, field))]);
  const known = JSON.stringify([runs.map(run => run.index), rows]);
  settings.closest('section').hidden = fields.length === 0;
  if (settings.dataset.known === known) return;
  settings.dataset.known = known;
  const short = text => text.length > 300 ? `${text.slice(0, 300)}\u2026` : text;
  const cell = text => html('td', {}, html('bdi', {}, short(text)));
  settings.replaceChildren(
    html('thead', {}, html('tr', {}, html('th', {scope: 'col'}, 'Field'), ...runs.map(run => html('th', {scope: 'col'}, html('div', {}, swatch(run), html('bdi', {}, run.name)))))),
    html('tbody', {}, ...rows.map(([field, ...texts]) => html('tr', new Set(texts).size > 1 ? {class: 'differs'} : {}, html('th', {scope: 'row'}, html('bdi', {}, field)), ...texts.map(cell)))));
}

const report = new Report(JSON.parse(document.getElementById('data').textContent));
if (report.config.logs) report.take(report.config.logs); else report.poll();
report.refresh();
