// What all pages use: building elements, numbers with units, tables, graphs. Names come from files that were not
// checked: they are put in as text, never as HTML.
'use strict';
var profd = window.profd || (window.profd = {});

// element('p', {class: 'x', onclick: f}, child, ...)
profd.element = function (tag, attributes) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  for (const child of Array.prototype.slice.call(arguments, 2).flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
};

profd.number = function (value, decimals) {
  if (value === null || value === undefined || Number.isNaN(value)) return '-';
  if (typeof value !== 'number') return String(value);
  if (Number.isInteger(value) && decimals === undefined) return value.toLocaleString('en');
  const digits = decimals === undefined ? 3 : decimals;
  return value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
};
profd.percent = (part) => part === null || part === undefined ? '-' : profd.number(part * 100, 1) + ' %';

// 1234567 B/s becomes "1.23 MB/s".
profd.quantity = function (value, unit) {
  if (value === null || value === undefined) return '-';
  if (unit === 'ms' || unit === '%' || !unit) return profd.number(value, 3) + (unit ? ' ' + unit : '');
  if (unit === 'ratio') return profd.percent(value);
  if (unit === 'ns') return profd.duration(value);
  const steps = ['', 'k', 'M', 'G', 'T'];
  let step = 0;
  while (Math.abs(value) >= 1000 && step < steps.length - 1 && /^(B|Hz|1)/.test(unit)) {
    value /= 1000;
    ++step;
  }
  return profd.number(value, 2) + ' ' + steps[step] + unit;
};

profd.duration = function (ns) {
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];
  for (const [size, unit] of units) if (Math.abs(ns) >= size) return profd.number(ns / size, 3) + ' ' + unit;
  return profd.number(Math.round(ns)) + ' ns';
};
// "50 ms" for "50.000 ms".
profd.shortDuration = (ns) => profd.duration(ns).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ');

// "2026-01-31 09:05:00", where the browser is.
profd.timeText = function (seconds) {
  if (!seconds) return '-';
  const two = (value) => String(value).padStart(2, '0');
  const at = new Date(seconds * 1000);
  return at.getFullYear() + '-' + two(at.getMonth() + 1) + '-' + two(at.getDate()) + ' ' + two(at.getHours()) + ':' + two(at.getMinutes()) +
    ':' + two(at.getSeconds());
};

profd.deviceName = (device) => device < 0 ? 'host' : 'device ' + device;
// Names of counters, with the device where several have the same.
profd.counterNames = function (counters) {
  const many = new Map();
  for (const each of counters) many.set(each.name, (many.get(each.name) || 0) + 1);
  return counters.map((each) => many.get(each.name) > 1 ? each.name + ', ' + profd.deviceName(each.device) : each.name);
};

profd.colors = ['#3b82c4', '#e08a2e', '#4c9f58', '#c65353', '#8b6fc0', '#9a7056', '#d277b2', '#7f8791', '#b3ad2f', '#2fa7b5',
  '#1f5f99', '#f0b26b', '#7fc389', '#e79191', '#b9a4de', '#c4a48f', '#e9b3d5', '#b4bac2', '#d8d36f', '#84d0d9'];
profd.colorOf = function (name) {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return profd.colors[Math.abs(hash) % profd.colors.length];
};

profd.panel = function (title) {
  const children = Array.prototype.slice.call(arguments, 1);
  return profd.element('section', {class: 'panel'}, profd.element('h3', {}, title), ...children);
};
// Of a rank that the page does not show in full only times and steps are known.
profd.none = (what, how) => profd.element('p', {class: 'none'}, profd.brief && what !== 'Steps' ?
  what + ': not on this page, which shows few of so many ranks in full. Read this rank by itself.'
  : what + ': not recorded.' + (how ? ' ' + how : ''));

profd.figures = function (pairs) {
  return profd.element('dl', {class: 'figures'}, pairs.map(([name, value]) =>
    profd.element('div', {}, profd.element('dt', {}, name), profd.element('dd', {}, value))));
};

// Black or white, whichever can be read on the colour (#rrggbb): by its luminance as WCAG defines it.
profd.inkOn = function (color) {
  const light = [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const part = parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
    return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  }, 0);
  return light > 0.179 ? '#000000' : '#ffffff';
};

// A file for the user's disk.
profd.save = function (name, type, text) {
  const link = profd.element('a', {href: URL.createObjectURL(new Blob([text], {type: type})), download: name});
  document.body.append(link);
  link.click();
  link.remove();
};

profd.csv = function (columns, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    // A spreadsheet takes what begins with these for a formula.
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  };
  const lines = [columns.map((column) => cell(column.name + (column.unit ? ' (' + column.unit + ')' : '')))];
  for (const row of rows) lines.push(columns.map((column) => cell(column.value(row))));
  return lines.map((line) => line.join(',')).join('\n') + '\n';
};

// "node2" before "node10", and rank 2 before rank 10 also as texts.
profd.collator = new Intl.Collator('en', {numeric: true});
profd.compare = (a, b) => typeof a === 'string' && typeof b === 'string' ? profd.collator.compare(a, b) : a === b ? 0 : a < b ? -1 : 1;

profd.filterText = function (filter, row) {
  const value = filter.value(row);
  return value === null || value === undefined ? '-' : String(value);
};

// One number of decimals for a column: the points stand below each other. Of times below 0.1 ms the ns are shown, too.
profd.decimalsOf = function (values) {
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.every(Number.isInteger)) return undefined;
  return numbers.every((value) => Math.abs(value) < 0.1) ? 6 : 3;
};

// columns: {name, unit, value(row), text(row), number}. options: {search(row), filters: [{name, value(row)}], link(row),
// file, rows a page, query: {search, filter...} to begin with}.
profd.table = function (columns, rows, options) {
  options = options || {};
  const size = options.size || 15;
  const state = {sort: options.sort === undefined ? -1 : options.sort, down: true, page: 0, search: options.find || '', filters: {}};
  const box = profd.element('div', {class: 'table'});
  const body = profd.element('tbody');
  const paging = profd.element('div', {class: 'paging'});
  const head = profd.element('tr');
  const decimals = columns.map((column) => column.number && !column.text ? profd.decimalsOf(rows.map(column.value)) : undefined);

  const chosen = function () {
    const words = state.search.toLowerCase();
    let found = rows.filter((row) => (!words || options.search(row).toLowerCase().includes(words)) &&
      (options.filters || []).every((filter) => !state.filters[filter.name] || profd.filterText(filter, row) === state.filters[filter.name]));
    if (state.sort >= 0) {
      const value = columns[state.sort].value;
      const known = (each) => each !== null && each !== undefined;
      // What is not known comes last in both directions.
      const order = (a, b) => !known(a) || !known(b) ? known(b) - known(a) : state.down ? profd.compare(b, a) : profd.compare(a, b);
      found = found.slice().sort((a, b) => order(value(a), value(b)));
    }
    return found;
  };
  const draw = function () {
    const found = chosen();
    const pages = Math.max(1, Math.ceil(found.length / size));
    state.page = Math.min(state.page, pages - 1);
    body.replaceChildren(...found.slice(state.page * size, (state.page + 1) * size).map((row) => {
      const target = options.link && options.link(row);
      const cells = columns.map((column, i) => {
        const text = column.text ? column.text(row) : column.number ? profd.number(column.value(row), decimals[i]) : column.value(row);
        const shown = text === null || text === undefined ? '-' : text;
        // A name of ordinary length is not broken; where all do not fit, the table scrolls.
        return profd.element('td', {class: column.number ? 'number' : 'name', style: column.number ? {} : {minWidth: Math.min(String(shown).length + 4, 34) + 'ch'}},
          i === 0 && target ? profd.element('a', {href: target}, shown) : shown);
      });
      return profd.element('tr', {class: target ? 'link' : null, onclick: target ? () => { location.hash = target; } : null}, cells);
    }));
    const turn = (by) => profd.element('button', {type: 'button', disabled: state.page + by < 0 || state.page + by >= pages,
      onclick: () => {
        state.page += by;
        draw();
        // The button is another one now; on the last page only the way back is left.
        const [back, next] = paging.querySelectorAll('button');
        (next.disabled || (by < 0 && !back.disabled) ? back : next).focus();
      }}, by < 0 ? 'Back' : 'Next');
    paging.replaceChildren(...(pages > 1 ? [turn(-1), turn(1), 'page ' + (state.page + 1) + ' of ' + pages + ','] : []), profd.element('span', {},
      profd.number(found.length) + (found.length === 1 ? ' row' : ' rows')));
    head.replaceChildren(...columns.map((column, i) => profd.element('th', {class: column.number ? 'number' : null, scope: 'col',
      'aria-sort': state.sort === i ? (state.down ? 'descending' : 'ascending') : null},
      profd.element('button', {type: 'button', onclick: () => {
        state.down = state.sort === i ? !state.down : true;
        state.sort = i;
        draw();
        head.children[i].firstChild.focus();
      }}, column.name + (column.unit ? ' (' + column.unit + ')' : '') + (state.sort === i ? (state.down ? ' ▾' : ' ▴') : '')))));
  };
  const controls = profd.element('div', {class: 'controls'});
  if (options.search) {
    controls.append(profd.element('input', {type: 'search', placeholder: 'Search', 'aria-label': 'Search', value: state.search,
      oninput: (event) => { state.search = event.target.value; state.page = 0; draw(); }}));
  }
  for (const filter of options.filters || []) {
    const values = Array.from(new Set(rows.map((row) => profd.filterText(filter, row)))).sort(profd.compare);
    if (values.length < 2) continue;
    if (filter.chosen) state.filters[filter.name] = filter.chosen;
    controls.append(profd.element('select', {'aria-label': filter.name,
      onchange: (event) => { state.filters[filter.name] = event.target.value; state.page = 0; draw(); }},
      profd.element('option', {value: ''}, filter.name + ': all'),
      values.map((value) => profd.element('option', {value: value, selected: value === filter.chosen}, value))));
  }
  controls.append(profd.element('button', {type: 'button', onclick: () => profd.save((options.file || 'table') + '.csv', 'text/csv',
    profd.csv(columns, chosen()))}, 'Save as CSV'));
  draw();
  box.append(controls, profd.element('div', {class: 'scroll'}, profd.element('table', {}, profd.element('thead', {}, head), body)), paging);
  return box;
};

profd.charts = [];
profd.style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

profd.setChartColors = function () {
  Chart.defaults.color = profd.style('--text');
  Chart.defaults.borderColor = profd.style('--line');
};

// A graph of Chart.js in a box of its own; it is drawn once it is in the page.
profd.chart = function (label, config, height) {
  const canvas = profd.element('canvas', {role: 'img', 'aria-label': label});
  const box = profd.element('div', {class: 'chart', style: height ? {height: height + 'px'} : {}}, canvas);
  profd.setChartColors();
  config.options = Object.assign({responsive: true, maintainAspectRatio: false, animation: false}, config.options);
  requestAnimationFrame(() => { if (canvas.isConnected) profd.charts.push(new Chart(canvas, config)); });
  return box;
};

// lines: {name, x: [], y: []}; the unit stands on the axis.
profd.lines = function (label, lines, xTitle, yTitle) {
  lines = lines.filter((line) => line.y.some((value) => value !== null && value !== undefined));
  if (!lines.length) return profd.none(label);
  // There is no step 49.5.
  const whole = lines.every((line) => line.x.every(Number.isInteger));
  return profd.chart(label, {
    type: 'line',
    data: {datasets: lines.map((line, i) => ({label: line.name, data: line.x.map((x, j) => ({x: x, y: line.y[j]})),
      borderColor: profd.colors[i % profd.colors.length], backgroundColor: profd.colors[i % profd.colors.length],
      borderWidth: 1.5, pointRadius: line.x.length > 60 ? 0 : 2, spanGaps: true}))},
    options: {parsing: false, normalized: true, interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {x: {type: 'linear', title: {display: true, text: xTitle}, ticks: whole ? {precision: 0} : {}}, y: {title: {display: true, text: yTitle}, beginAtZero: true}}}
  });
};

profd.details = (title, content) => profd.element('details', {}, profd.element('summary', {}, title), content);
