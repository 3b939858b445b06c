// The page around the timeline: keys, mouse, what is selected, and search.
'use strict';
var profd = window.profd || (window.profd = {});

// Of each counter what it was in the time, as of steps and operators: of the samples in it, else of the one before. One whose
// samples hold until the next: by the time that each value held.
profd.countersIn = function (model, from, to) {
  return model.counters.map((counter) => {
    const times = counter.times;
    const begin = profd.firstAbove(times, Math.ceil(from) - 1);
    const samples = Math.max(profd.firstAbove(times, Math.ceil(to) - 1) - begin, 0);
    const before = profd.firstAbove(times, from) - 1;
    const first = (counter.holds || !samples) && before >= 0 ? before : begin;
    const values = counter.values.subarray(first, samples ? begin + samples : before + 1);
    if (!values.length) return null;
    let sum = 0;
    let weights = 0;
    values.forEach((value, i) => {
      const end = first + i + 1 < times.length ? Math.min(times[first + i + 1], to) : to;
      const weight = counter.holds && values.length > 1 ? end - Math.max(times[first + i], from) : 1;
      sum += value * weight;
      weights += weight;
    });
    return {name: counter.name, unit: counter.unit, samples: samples, min: Math.min(...values), mean: sum / weights, max: Math.max(...values)};
  }).filter((row) => row);
};

profd.counterTable = function (model, from, to) {
  const value = (field) => (row) => profd.quantity(row[field], row.unit);
  const rows = profd.countersIn(model, from, to);
  if (!rows.length) return profd.none('Hardware');
  return profd.table([{name: 'Counter', value: (row) => row.name}, {name: 'Min', value: (row) => row.min, text: value('min'), number: true},
    {name: 'Mean', value: (row) => row.mean, text: value('mean'), number: true}, {name: 'Max', value: (row) => row.max, text: value('max'), number: true},
    {name: 'Samples', value: (row) => row.samples, text: (row) => row.samples || 'the one before', number: true}], rows,
  {search: (row) => row.name, size: 10, file: 'counters'});
};

// The launch of an operator: what called it, and the Python or framework slices around that.
profd.launchOf = function (timeline, found) {
  const callers = timeline.partners().filter((flow) => !flow.out).map((flow) => flow.found);
  const stack = [];
  for (const caller of callers.slice(0, 1)) {
    const lane = timeline.model.lanes[caller.lane];
    for (const each of timeline.model.lanes) {
      if ((each.group === 'Python' || each.group === 'Framework') && (each.name === lane.name || each === lane)) {
        stack.push(...timeline.around(each.number, caller.start));
      }
    }
    if (lane.group !== 'Python') stack.push(...timeline.around(caller.lane, caller.start));
  }
  return stack;
};

profd.slicePanel = function (timeline, rank, found, data) {
  const box = document.getElementById('slice');
  if (!box) return;
  if (!found) {
    const range = timeline.range;
    box.replaceChildren(range ? profd.element('div', {}, profd.element('h3', {}, 'Selected time: ' + profd.duration(Math.abs(range[1] - range[0]))),
      profd.counterTable(timeline.model, Math.min(...range), Math.max(...range)))
      : profd.element('p', {class: 'none'}, 'Click a slice to see what launched it, and what the hardware did in its time.'));
    return;
  }
  const name = timeline.model.names[found.name] || '(unknown)';
  const lane = timeline.model.lanes[found.lane];
  const operator = lane.group === 'Ascend Hardware' ? (rank.operators || []).find((op) => op.name === name) : null;
  const go = (target) => profd.element('button', {type: 'button', onclick: () => timeline.select(target, true)},
    timeline.model.names[target.name] || '(unknown)');
  const stack = profd.launchOf(timeline, found);
  const partners = timeline.partners();
  const begin = (BigInt(data.begin_ns) + BigInt(Math.round(found.start))).toString();
  box.replaceChildren(profd.element('div', {}, profd.element('h3', {}, name), profd.figures([['Lane', lane.group + ', ' + lane.name], ['Start', profd.duration(found.start)],
    ['Duration', profd.duration(found.end - found.start)], ['Start, ns', begin]].concat(operator ? [['Type', operator.type || '-'], ['Core', operator.core || '-'],
    ['Input shapes', operator.input_shapes || '-'], ['Bound', operator.bound || '-']] : [])),
  stack.length ? profd.element('div', {}, profd.element('h3', {}, 'Launched by'), profd.element('ol', {}, stack.map((each) => profd.element('li', {}, go(each))))) : null,
  partners.length ? profd.element('p', {}, partners.some((flow) => flow.out) ? 'Launches: ' : 'Arrows: ', partners.slice(0, 20).flatMap((flow) => [go(flow.found), ' '])) : null,
  profd.element('h3', {}, 'Hardware in this time'), profd.counterTable(timeline.model, found.start, found.end)));
};

profd.timelineKeys = function (timeline, event) {
  if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {w: () => timeline.zoom(0.8), s: () => timeline.zoom(1.25), a: () => timeline.pan(-0.15), d: () => timeline.pan(0.15),
    arrowleft: () => timeline.pan(-0.15), arrowright: () => timeline.pan(0.15), arrowup: () => timeline.scroll(-60), arrowdown: () => timeline.scroll(60),
    f: () => timeline.selected ? timeline.select(timeline.selected, true) : timeline.show(0, timeline.model.span), '0': () => timeline.show(0, timeline.model.span),
    escape: () => { timeline.range = null; timeline.select(null); }};
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
};

profd.timelineMouse = function (timeline, canvas) {
  let drag = null;
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) timeline.zoom(Math.exp(event.deltaY / 300), event.offsetX);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan((event.deltaX || event.deltaY) / timeline.width);
    else timeline.scroll(event.deltaY);
  }, {passive: false});
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = {x: event.offsetX, y: event.offsetY, moved: false, range: event.shiftKey ? timeline.time(event.offsetX) : null};
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return;
    const dx = event.offsetX - drag.x;
    const dy = event.offsetY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.moved = true;
    if (drag.range !== null) {
      timeline.range = [drag.range, timeline.time(event.offsetX)];
      timeline.select(null);
      return;
    }
    timeline.pan(-dx / timeline.width);
    timeline.scroll(-dy);
    drag.x = event.offsetX;
    drag.y = event.offsetY;
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && !drag.moved) {
      const found = timeline.hit(event.offsetX, event.offsetY);
      if (found && found.group) timeline.fold(found.group);
      else timeline.select(found);
    }
    drag = null;
  });
};

profd.timelinePage = function (rank, query) {
  const data = rank && rank.timeline_data;
  if (!data || !data.lanes.length && !(data.counters || []).length) return profd.none('A timeline');
  const canvas = profd.element('canvas', {tabindex: '0', role: 'application', 'aria-label': 'Timeline; W and S zoom, A and D move'});
  const timeline = new profd.Timeline(data, canvas, (found) => profd.slicePanel(timeline, rank, found, data));
  profd.timeline = timeline;
  const search = profd.element('input', {type: 'search', placeholder: 'Find a slice', 'aria-label': 'Find a slice', value: query.get('search') || ''});
  const find = (back) => {
    const found = timeline.search(search.value, back);
    if (found) timeline.select(found, true);
  };
  search.addEventListener('keydown', (event) => { if (event.key === 'Enter') find(event.shiftKey); });
  const button = (name, action) => profd.element('button', {type: 'button', onclick: action}, name);
  canvas.addEventListener('keydown', (event) => profd.timelineKeys(timeline, event));
  profd.timelineMouse(timeline, canvas);
  const resized = new ResizeObserver(() => timeline.request());
  profd.entered = () => {
    resized.observe(canvas);
    timeline.draw();
    profd.slicePanel(timeline, rank, null, data);
    canvas.focus({preventScroll: true});
    if (query.get('search')) find(false);
    if (/^\d+$/.test(query.get('at') || '')) {
      // Some milliseconds around a time since the epoch.
      const at = Number(BigInt(query.get('at')) - BigInt(data.begin_ns));
      timeline.show(Math.max(at - 2e6, 0), at + 8e6);
    }
  };
  profd.leave = () => resized.disconnect();
  return profd.element('div', {},
    profd.element('div', {class: 'controls'}, search, button('Next', () => find(false)), button('Previous', () => find(true)),
      button('Whole run', () => timeline.show(0, timeline.model.span)), button('+', () => timeline.zoom(0.6)), button('−', () => timeline.zoom(1.6)),
      button('Save for Perfetto', () => profd.save('timeline.perfetto-trace', 'application/octet-stream', profd.perfettoTrace(data))),
      button('Save for chrome://tracing', () => profd.save('timeline.json', 'application/json', profd.chromeTrace(data)))),
    profd.element('div', {id: 'timeline-box'}, canvas),
    data.left_out ? profd.element('p', {class: 'warning'}, profd.number(data.left_out) + ' of the shortest slices are left out here.') : null,
    profd.element('p', {class: 'none'}, profd.element('kbd', {}, 'W'), ' ', profd.element('kbd', {}, 'S'), ' zoom, ', profd.element('kbd', {}, 'A'), ' ',
      profd.element('kbd', {}, 'D'), ' or dragging moves, the wheel scrolls (with Ctrl: zooms), Shift and dragging selects a time, ',
      profd.element('kbd', {}, 'F'), ' shows what is selected, ', profd.element('kbd', {}, '0'), ' the whole run.'),
    profd.element('section', {class: 'panel', id: 'slice', 'aria-live': 'polite'}));
};
