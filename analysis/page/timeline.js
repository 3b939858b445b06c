// The timeline: lanes of slices and counters on a canvas. A row draws at most one rectangle per pixel, found by binary
// search, so that a frame costs the same for a thousand slices and for ten million.
'use strict';
var profd = window.profd || (window.profd = {});

profd.timelineRow = 17;      // px
profd.timelineCounter = 34;  // px
profd.timelineLeft = 170;    // px for names

// First index of the sorted array whose value is above `value`.
profd.firstAbove = function (sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
};

profd.timelineMostRows = 64;

// A lane's slices by depth: in a row none overlaps another, so starts and ends are both sorted.
profd.timelineRows = function (lane) {
  const count = lane.start.length;
  const depth = new Uint8Array(count);
  const starts = new Float64Array(count);
  const ends = [];  // of the last slice of each row
  const sizes = [];
  let t = 0;
  for (let i = 0; i < count; ++i) {
    t += lane.start[i];
    starts[i] = t;
    const end = t + lane.duration[i];
    // Below what is around it, in the first row that is free: what overlaps without being nested is below or above.
    let row = ends.length;
    while (row > 0 && (ends[row - 1] <= t || ends[row - 1] < end)) --row;
    while (ends[row] > t) ++row;
    row = Math.min(row, profd.timelineMostRows - 1);
    depth[i] = row;
    ends[row] = end;
    sizes[row] = (sizes[row] || 0) + 1;
  }
  const rows = Array.from(sizes, (size) => ({start: new Float64Array(size || 0), end: new Float64Array(size || 0),
    name: new Uint32Array(size || 0), index: new Uint32Array(size || 0), used: 0}));
  for (let i = 0; i < count; ++i) {
    const row = rows[depth[i]];
    // Zero-length slices are shown a nanosecond long; a row stays without overlaps.
    const end = starts[i] + Math.max(lane.duration[i], 1);
    row.start[row.used] = starts[i];
    row.end[row.used] = row.used > 0 ? Math.max(end, row.end[row.used - 1]) : end;
    row.name[row.used] = lane.name_id[i];
    row.index[row.used++] = i;
  }
  return rows;
};

profd.timelineModel = function (data) {
  const model = {span: Math.max(Number(data.span_ns), 1), names: data.names, lanes: [], counters: [], byIndex: new Map(), flows: new Map()};
  data.lanes.forEach((lane, number) => {
    model.lanes.push({group: lane.group, name: lane.name, number: number, rows: profd.timelineRows(lane), count: lane.start.length});
  });
  const names = profd.counterNames(data.counters || []);
  (data.counters || []).forEach((counter, number) => {
    const times = new Float64Array(counter.time.length);
    let t = 0;
    let most = 0;
    let least = 0;
    counter.time.forEach((step, i) => {
      times[i] = t += step;
      most = Math.max(most, counter.value[i]);
      least = Math.min(least, counter.value[i]);
    });
    if (times.length) model.counters.push({name: names[number], unit: counter.unit, holds: counter.holds, times: times,
      values: Float64Array.from(counter.value), most: most, least: least});
  });
  for (const [lane, slice, toLane, toSlice] of data.flows || []) {
    const from = lane + ' ' + slice;
    const to = toLane + ' ' + toSlice;
    for (const [key, flow] of [[from, {lane: toLane, slice: toSlice, out: true}], [to, {lane: lane, slice: slice, out: false}]]) {
      if (!model.flows.has(key)) model.flows.set(key, []);
      model.flows.get(key).push(flow);
    }
  }
  return model;
};

// Row and place of a slice by its number in the lane; null: there is none.
profd.timelineFind = function (model, lane, slice) {
  const rows = model.lanes[lane] ? model.lanes[lane].rows : [];
  for (let depth = 0; depth < rows.length; ++depth) {
    const row = rows[depth];
    let low = 0;
    let high = row.index.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (row.index[middle] < slice) low = middle + 1; else high = middle;
    }
    if (row.index[low] === slice) return {lane: lane, depth: depth, at: low, start: row.start[low], end: row.end[low], name: row.name[low], slice: slice};
  }
  return null;
};

profd.Timeline = class {
  constructor(data, canvas, changed) {
    this.model = profd.timelineModel(data);
    this.canvas = canvas;
    this.changed = changed;
    this.from = 0;
    this.to = this.model.span;
    this.top = 0;
    this.folded = new Set();
    this.selected = null;
    this.range = null;
    this.frames = 0;
    this.colors = new Map();
    this.layout();
  }

  // Lines from top to bottom: groups, rows of lanes, counters.
  layout() {
    this.lines = [];
    let y = 0;
    let group = null;
    for (const lane of this.model.lanes) {
      if (lane.group !== group) {
        group = lane.group;
        this.lines.push({kind: 'group', group: group, y: y, height: 22});
        y += 22;
      }
      if (this.folded.has(group)) continue;
      lane.rows.forEach((row, depth) => {
        this.lines.push({kind: 'row', lane: lane, row: row, depth: depth, y: y, height: profd.timelineRow});
        y += profd.timelineRow;
      });
      y += 3;
    }
    if (this.model.counters.length) {
      this.lines.push({kind: 'group', group: 'Counters', y: y, height: 22});
      y += 22;
      if (!this.folded.has('Counters')) {
        for (const counter of this.model.counters) {
          this.lines.push({kind: 'counter', counter: counter, y: y, height: profd.timelineCounter});
          y += profd.timelineCounter + 3;
        }
      }
    }
    this.height = y;
  }

  get width() { return Math.max(this.canvas.clientWidth - profd.timelineLeft, 50); }
  x(t) { return profd.timelineLeft + (t - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + (x - profd.timelineLeft) / this.width * (this.to - this.from); }

  show(from, to) {
    const least = 20;
    if (to - from < least) to = from + least;
    const length = Math.min(to - from, this.model.span * 1.2);
    from = Math.max(-0.1 * this.model.span, Math.min(from, this.model.span * 1.1 - length));
    this.from = from;
    this.to = from + length;
    this.request();
  }
  zoom(factor, x) {
    const at = x === undefined ? (this.from + this.to) / 2 : this.time(Math.max(x, profd.timelineLeft));
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(part) { this.show(this.from + (this.to - this.from) * part, this.to + (this.to - this.from) * part); }
  scroll(pixels) {
    this.top = Math.max(0, Math.min(this.top + pixels, this.height + 24 - this.canvas.clientHeight));
    this.request();
  }
  request() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  color(name) {
    let color = this.colors.get(name);
    if (!color) {
      color = profd.colorOf(this.model.names[name] || '');
      this.colors.set(name, color);
    }
    return color;
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.canvas.getContext('2d');
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.text = profd.style('--text');
    this.faint = profd.style('--faint');
    this.back = profd.style('--back');
    this.panel = profd.style('--panel');
    this.lineColor = profd.style('--line');
    pen.fillStyle = this.back;
    pen.fillRect(0, 0, width, height);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    this.rectangles = 0;
    for (const line of this.lines) {
      const y = line.y - this.top + 24;
      if (y + line.height < 24 || y > height) continue;
      if (line.kind === 'group') this.drawGroup(pen, line, y, width);
      else if (line.kind === 'row') this.drawRow(pen, line, y);
      else this.drawCounter(pen, line, y);
    }
    this.drawNames(pen, height);
    this.drawFlows(pen);
    this.drawAxis(pen, width, height);
    ++this.frames;
  }

  drawGroup(pen, line, y, width) {
    pen.fillStyle = this.panel;
    pen.fillRect(0, y, width, line.height);
    pen.fillStyle = this.text;
    pen.fillText((this.folded.has(line.group) ? '▸ ' : '▾ ') + line.group, 6, y + line.height / 2);
  }

  drawRow(pen, line, y) {
    const row = line.row;
    const scale = this.width / (this.to - this.from);
    const right = profd.timelineLeft + this.width;
    let i = profd.firstAbove(row.end, this.from);
    let dense = -1;  // where a run of slices that are narrower than a pixel begins
    let denseEnd = -1;
    const flush = () => {
      if (dense < 0) return;
      pen.fillStyle = this.faint;
      pen.fillRect(dense, y + 1, Math.max(denseEnd - dense, 1), line.height - 3);
      ++this.rectangles;
      dense = -1;
    };
    while (i < row.start.length) {
      const begin = profd.timelineLeft + (row.start[i] - this.from) * scale;
      if (begin > right) break;
      const end = profd.timelineLeft + (row.end[i] - this.from) * scale;
      if (end - begin >= 1.5) {
        flush();
        this.drawSlice(pen, row, i, Math.max(begin, profd.timelineLeft), Math.min(end, right), y, line);
        ++i;
        continue;
      }
      const pixel = Math.max(Math.floor(begin), profd.timelineLeft);
      if (dense >= 0 && pixel > denseEnd) flush();
      if (dense < 0) dense = pixel;
      denseEnd = pixel + 1;
      // On to the first slice that ends behind this pixel, unless that is a wide one.
      const next = profd.firstAbove(row.end, this.from + (pixel + 1 - profd.timelineLeft) / scale);
      i = Math.max(next, i + 1);
    }
    flush();
  }

  drawSlice(pen, row, i, x, end, y, line) {
    pen.fillStyle = this.color(row.name[i]);
    pen.fillRect(x, y + 1, Math.max(end - x - 0.5, 1), line.height - 3);
    ++this.rectangles;
    const chosen = this.selected;
    if (chosen && chosen.lane === line.lane.number && chosen.depth === line.depth && chosen.at === i) {
      pen.strokeStyle = this.text;
      pen.lineWidth = 2;
      pen.strokeRect(x, y + 1, Math.max(end - x - 0.5, 2), line.height - 3);
    }
    if (end - x < 34) return;
    const letters = Math.floor((end - x - 6) / 6);
    pen.fillStyle = profd.inkOn(this.color(row.name[i]));
    pen.fillText((this.model.names[row.name[i]] || '').slice(0, letters), x + 3, y + line.height / 2);
  }

  drawCounter(pen, line, y) {
    const {times, values, most, least} = line.counter;
    const height = line.height - 4;
    const range = most - least || 1;
    pen.fillStyle = profd.colorOf(line.counter.name);
    pen.globalAlpha = 0.7;
    pen.beginPath();
    pen.moveTo(profd.timelineLeft, y + height);
    for (let x = 0; x <= this.width; ++x) {
      const at = profd.firstAbove(times, this.from + x / this.width * (this.to - this.from)) - 1;
      const value = at < 0 ? least : values[at];
      pen.lineTo(profd.timelineLeft + x, y + height - (value - least) / range * (height - 4));
    }
    pen.lineTo(profd.timelineLeft + this.width, y + height);
    pen.fill();
    pen.globalAlpha = 1;
    ++this.rectangles;
  }

  drawNames(pen, height) {
    pen.fillStyle = this.back;
    for (const line of this.lines) {
      const y = line.y - this.top + 24;
      if (line.kind === 'group' || y + line.height < 24 || y > height) continue;
      pen.fillStyle = this.back;
      pen.fillRect(0, y, profd.timelineLeft - 2, line.height);
      if (line.kind === 'row' && line.depth > 0) continue;
      pen.fillStyle = this.text;
      const name = line.kind === 'row' ? line.lane.name : line.counter.name;
      const fit = (text) => text.length > 27 ? text.slice(0, 26) + '…' : text;
      // Counters of one metric differ in what follows its name: a long name has two lines.
      const space = line.kind === 'counter' && name.length > 27 ? name.indexOf(' ') : -1;
      if (space > 0) {
        pen.fillText(fit(name.slice(0, space)), 6, y + 6);
        pen.fillText(fit(name.slice(space + 1).replace('direction=', '')), 6, y + 17);
      } else {
        pen.fillText(fit(name), 6, y + (line.kind === 'row' ? line.height / 2 : 10));
      }
      if (line.kind !== 'counter') continue;
      pen.fillStyle = this.faint;
      pen.fillText('to ' + profd.quantity(line.counter.most, line.counter.unit), 6, y + (space > 0 ? 28 : 24));
    }
  }

  middle(found) {
    const line = this.lines.find((each) => each.kind === 'row' && each.lane.number === found.lane && each.depth === found.depth);
    return line ? line.y - this.top + 24 + line.height / 2 : null;
  }
  drawFlows(pen) {
    if (!this.selected) return;
    pen.strokeStyle = this.text;
    pen.lineWidth = 1.2;
    for (const flow of this.partners()) {
      const [from, to] = flow.out ? [this.selected, flow.found] : [flow.found, this.selected];
      const y0 = this.middle(from);
      const y1 = this.middle(to);
      if (y0 === null || y1 === null) continue;
      const x0 = this.x(from.end);
      const x1 = this.x(to.start);
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.bezierCurveTo(x0 + 40, y0, x1 - 40, y1, x1, y1);
      pen.stroke();
    }
  }
  partners() {
    if (!this.selected) return [];
    return (this.model.flows.get(this.selected.lane + ' ' + this.selected.slice) || []).slice(0, 200)
      .map((flow) => ({out: flow.out, found: profd.timelineFind(this.model, flow.lane, flow.slice)})).filter((flow) => flow.found);
  }

  drawAxis(pen, width, height) {
    pen.fillStyle = this.panel;
    pen.fillRect(0, 0, width, 24);
    pen.fillStyle = this.text;
    const length = this.to - this.from;
    const rough = length / Math.max(this.width / 110, 1);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    pen.strokeStyle = this.lineColor;
    pen.lineWidth = 1;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t);
      pen.beginPath();
      pen.moveTo(x, 18);
      pen.lineTo(x, 24);
      pen.stroke();
      pen.fillText(profd.shortDuration(Math.round(t)), x + 3, 10);
    }
    if (!this.range) return;
    pen.fillStyle = profd.style('--accent');
    pen.globalAlpha = 0.2;
    const x0 = Math.max(this.x(Math.min(...this.range)), profd.timelineLeft);
    pen.fillRect(x0, 0, this.x(Math.max(...this.range)) - x0, height);
    pen.globalAlpha = 1;
  }

  // What lies at the point of the canvas.
  hit(x, y) {
    const line = this.lines.find((each) => y >= each.y - this.top + 24 && y < each.y - this.top + 24 + each.height);
    if (!line || y < 24) return null;
    if (line.kind === 'group') return {group: line.group};
    if (line.kind !== 'row' || x < profd.timelineLeft) return null;
    const row = line.row;
    const slack = (this.to - this.from) / this.width * 2;
    const at = profd.firstAbove(row.end, this.time(x) - slack);
    if (at >= row.start.length || row.start[at] > this.time(x) + slack) return null;
    return {lane: line.lane.number, depth: line.depth, at: at, start: row.start[at], end: row.end[at], name: row.name[at], slice: row.index[at]};
  }
  fold(group) {
    if (!this.folded.delete(group)) this.folded.add(group);
    this.layout();
    this.scroll(0);
  }
  select(found, move) {
    this.selected = found;
    if (found && move) {
      const length = Math.max((found.end - found.start) * 6, Math.min(this.to - this.from, (found.end - found.start) * 400));
      const middle = (found.start + found.end) / 2;
      const group = this.model.lanes[found.lane].group;
      if (this.folded.has(group)) this.fold(group);
      const line = this.lines.find((each) => each.kind === 'row' && each.lane.number === found.lane && each.depth === found.depth);
      if (line) this.top = Math.max(0, Math.min(line.y - this.canvas.clientHeight / 2, this.height + 24 - this.canvas.clientHeight));
      this.show(middle - length / 2, middle + length / 2);
    }
    this.changed(found);
    this.request();
  }

  // The next (or previous) slice whose name has the text, from the selected one on.
  search(text, back) {
    const words = text.toLowerCase();
    const wanted = new Set();
    this.model.names.forEach((name, i) => { if ((name || '').toLowerCase().includes(words)) wanted.add(i); });
    if (!words || !wanted.size) return null;
    const key = (found) => [found.start, found.lane, found.depth];
    const before = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
    const here = this.selected ? key(this.selected) : back ? [Infinity, 0, 0] : [-Infinity, 0, 0];
    let best = null;
    let first = null;
    for (const lane of this.model.lanes) {
      lane.rows.forEach((row, depth) => {
        for (let i = 0; i < row.start.length; ++i) {
          if (!wanted.has(row.name[i])) continue;
          const found = {lane: lane.number, depth: depth, at: i, start: row.start[i], end: row.end[i], name: row.name[i], slice: row.index[i]};
          const sign = back ? -1 : 1;
          if (sign * before(key(found), here) > 0 && (!best || sign * before(key(found), key(best)) < 0)) best = found;
          if (!first || sign * before(key(found), key(first)) < 0) first = found;
        }
      });
    }
    return best || first;
  }

  // Slices of the lane around a time, outermost first.
  around(lane, t) {
    return this.model.lanes[lane].rows.map((row, depth) => {
      const at = profd.firstAbove(row.end, t);
      return at < row.start.length && row.start[at] <= t ? {lane: lane, depth: depth, at: at, start: row.start[at], end: row.end[at],
        name: row.name[at], slice: row.index[at]} : null;
    }).filter((found) => found);
  }
};
