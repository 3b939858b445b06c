// The timeline as files of other viewers: Chrome's JSON, and Perfetto's own format, which is smaller and keeps nanoseconds
// since the epoch and arrows.
'use strict';
var profd = window.profd || (window.profd = {});

profd.chromeTrace = function (data) {
  const events = [];
  data.lanes.forEach((lane, i) => {
    events.push({ph: 'M', name: 'thread_name', pid: lane.group, tid: i, args: {name: lane.name}});
    let t = 0;
    lane.start.forEach((step, j) => {
      t += step;
      events.push({ph: 'X', name: data.names[lane.name_id[j]] || '(unknown)', pid: lane.group, tid: i, ts: t / 1000, dur: lane.duration[j] / 1000});
    });
  });
  const names = profd.counterNames(data.counters || []);
  (data.counters || []).forEach((counter, i) => {
    let t = 0;
    counter.time.forEach((step, j) => {
      t += step;
      events.push({ph: 'C', name: names[i], pid: 'Counters', tid: 0, ts: t / 1000, args: {[counter.unit || 'value']: counter.value[j]}});
    });
  });
  return JSON.stringify({traceEvents: events});
};

// Bytes of a protobuf message.
profd.Bytes = class {
  constructor(size) {
    this.bytes = new Uint8Array(size || 256);
    this.used = 0;
  }

  room(count) {
    if (this.used + count <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.used + count));
    larger.set(this.bytes.subarray(0, this.used));
    this.bytes = larger;
  }

  varint(value) {
    this.room(10);
    while (value >= 128) {
      this.bytes[this.used++] = value % 128 | 128;
      value = Math.floor(value / 128);
    }
    this.bytes[this.used++] = value;
  }

  // high * 2^28 + low: a time since the epoch is more than a number holds exactly.
  longVarint(high, low) {
    if (high === 0) return this.varint(low);
    this.room(14);
    for (let i = 0; i < 4; ++i) this.bytes[this.used++] = low >>> 7 * i & 127 | 128;
    this.varint(high);
  }

  number(field, value) {
    this.varint(field * 8);
    this.varint(value);
  }

  fixed64(field, value) {
    this.varint(field * 8 + 1);
    this.room(8);
    new DataView(this.bytes.buffer).setBigUint64(this.used, BigInt(value), true);
    this.used += 8;
  }

  double(field, value) {
    this.varint(field * 8 + 1);
    this.room(8);
    new DataView(this.bytes.buffer).setFloat64(this.used, value, true);
    this.used += 8;
  }

  put(field, bytes) {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    this.room(bytes.length);
    this.bytes.set(bytes, this.used);
    this.used += bytes.length;
  }

  text(field, text) {
    this.put(field, new TextEncoder().encode(text));
  }

  all() {
    return this.bytes.subarray(0, this.used);
  }
};

// Field numbers: protos/perfetto/trace/trace_packet.proto, track_descriptor.proto, track_event.proto.
profd.PerfettoWriter = class {
  constructor(beginNs) {
    const begin = BigInt(beginNs);
    this.high = Number(begin >> 28n);
    this.low = Number(begin & 0xfffffffn);
    this.out = new profd.Bytes(1 << 20);
    this.packet = new profd.Bytes();
    this.event = new profd.Bytes();
    this.tracks = 0;
    this.snapshot();
  }

  time(bytes, field, offset) {
    const low = this.low + offset % 0x10000000;
    bytes.varint(field * 8);
    bytes.longVarint(this.high + Math.floor(offset / 0x10000000) + (low >= 0x10000000 ? 1 : 0), low % 0x10000000);
  }

  // The trace's clock (BOOTTIME, 6) is the wall clock (REALTIME, 1).
  snapshot() {
    const clocks = new profd.Bytes();
    for (const id of [1, 6]) {
      const clock = new profd.Bytes();
      clock.number(1, id);
      this.time(clock, 2, 0);
      clocks.put(1, clock.all());
    }
    this.packet.put(6, clocks.all());
    const defaults = new profd.Bytes();
    defaults.number(58, 6);
    this.packet.put(59, defaults.all());
    this.packet.number(13, 1);  // sequence_flags: what stood before is void
    this.end();
  }

  end() {
    this.packet.number(10, 1);  // trusted_packet_sequence_id
    this.out.put(1, this.packet.all());
    this.packet.used = 0;
  }

  track(name, parent, more) {
    const uuid = ++this.tracks;
    this.event.used = 0;
    this.event.number(1, uuid);
    this.event.text(2, name);
    if (parent) this.event.number(5, parent);
    if (more) more(this.event);
    this.packet.put(60, this.event.all());
    this.end();
    return uuid;
  }

  // type: 1 begin, 2 end, 4 counter
  put(track, offset, type, more) {
    this.time(this.packet, 8, offset);
    this.packet.number(58, 6);
    this.packet.number(13, 2);  // sequence_flags: needs the snapshot
    this.event.used = 0;
    this.event.number(9, type);
    this.event.number(11, track);
    if (more) more(this.event);
    this.packet.put(11, this.event.all());
    this.end();
  }
};

// A lane's slices on as few tracks as nest properly: on one, a slice that begins within another ends within it.
profd.perfettoLane = function (writer, lane, parent, names, flows) {
  const tracks = [];
  const endUntil = (track, t) => {
    while (track.open.length && track.open[track.open.length - 1] <= t) writer.put(track.id, track.open.pop(), 2);
  };
  let t = 0;
  lane.start.forEach((step, i) => {
    t += step;
    const end = t + lane.duration[i];
    let track = null;
    for (const each of tracks) {
      endUntil(each, t);
      if (!each.open.length || each.open[each.open.length - 1] >= end) {
        track = each;
        break;
      }
    }
    if (!track) tracks.push(track = {id: writer.track(lane.name + (tracks.length ? ' ' + (tracks.length + 1) : ''), parent), open: []});
    writer.put(track.id, t, 1, (event) => {
      event.text(23, names[lane.name_id[i]] || '(unknown)');
      for (const flow of flows.get(i) || []) event.fixed64(47, flow);
    });
    track.open.push(end);
  });
  for (const track of tracks) endUntil(track, Infinity);
};

profd.perfettoTrace = function (data) {
  const writer = new profd.PerfettoWriter(data.begin_ns);
  const flows = data.lanes.map(() => new Map());
  (data.flows || []).forEach(([lane, slice, toLane, toSlice], i) => {
    for (const [at, index] of [[lane, slice], [toLane, toSlice]]) {
      if (!flows[at].has(index)) flows[at].set(index, []);
      flows[at].get(index).push(i + 1);
    }
  });
  const groups = new Map();
  const groupOf = (name) => {
    // A process of its own, so that viewers show it by its name.
    if (!groups.has(name)) {
      groups.set(name, writer.track(name, 0, (event) => {
        const process = new profd.Bytes();
        process.number(1, groups.size + 1);
        process.text(6, name);
        event.put(3, process.all());
      }));
    }
    return groups.get(name);
  };
  data.lanes.forEach((lane, i) => profd.perfettoLane(writer, lane, groupOf(lane.group), data.names, flows[i]));
  const names = profd.counterNames(data.counters || []);
  (data.counters || []).forEach((counter, number) => {
    const id = writer.track(names[number], groupOf('Counters'), (event) => {
      const described = new profd.Bytes();
      if (counter.unit) described.text(6, counter.unit);
      event.put(8, described.all());
    });
    let t = 0;
    counter.time.forEach((step, i) => {
      t += step;
      writer.put(id, t, 4, (event) => event.double(44, counter.value[i]));
    });
  });
  return writer.out.all();
};
