// The pages of the data pipeline, communication, memory, hardware, and of two runs beside each other.
'use strict';
var profd = window.profd || (window.profd = {});

profd.stageList = function (pipeline) {
  const stages = pipeline.stages || [];
  const verdict = pipeline.bottleneck ? 'Bottleneck: ' + pipeline.bottleneck_name : 'No stage is a bottleneck.';
  return profd.element('div', {}, profd.element('p', {class: pipeline.bottleneck ? 'warning' : 'normal'}, verdict),
    stages.length ? profd.element('ul', {}, stages.filter((stage) => stage.stage !== 'device_queue_warning').map((stage) =>
      profd.element('li', {class: stage.status}, stage.name + ': ' + stage.status))) : null);
};

// What only MindInsight 1.0 would say, as that the last operator is slow where all queues before it are full.
profd.firstAdvice = function (pipeline) {
  const more = ((pipeline.rules_1_0 || {}).suggestions || []).filter((text) => !(pipeline.suggestions || []).includes(text));
  return more.length ? profd.element('div', {}, profd.element('p', {class: 'none'}, 'By the rules of MindInsight 1.0 also:'),
    profd.element('ul', {}, more.map((text) => profd.element('li', {}, text)))) : null;
};

profd.queueNames = {host: 'Queue on the host', device: 'Queue on the device'};
profd.emptySteps = (queue) => profd.number(queue.empty) + ' of ' + profd.number(queue.total) + ' steps';

// From the readers to what the training takes from: the numbers of operators need not follow the data.
profd.alongThePipeline = function (operators) {
  const byId = new Map(operators.map((op) => [op.id, op]));
  const depth = function (op) {
    let steps = 0;
    for (let at = op; at && at.parent !== null && steps < byId.size; at = byId.get(at.parent)) ++steps;
    return steps;
  };
  return operators.map((op) => ({op: op, depth: depth(op)})).sort((a, b) => b.depth - a.depth || b.op.id - a.op.id).map((each) => each.op);
};

profd.pipelineGraph = function (pipeline, query) {
  const operators = pipeline.operators || [];
  if (!operators.length) return profd.none('The pipeline of operators');
  const chosen = operators.find((op) => String(op.id) === query.get('operator'));
  const low = new Set(pipeline.bottleneck_operators || []);
  const graph = profd.element('div', {class: 'pipeline'}, profd.alongThePipeline(operators).map((op) => profd.element('button', {type: 'button',
    class: low.has(op.type + ' ' + op.id) ? 'low' : null, onclick: () => { location.hash = profd.address('pipeline', {operator: op.id}); }},
  profd.element('strong', {}, op.type + ' ' + op.id), profd.element('br'), op.workers + (op.workers === 1 ? ' worker' : ' workers'), profd.element('br'),
  op.queue_use === null ? 'no queue' : 'queue ' + profd.percent(op.queue_use), profd.element('br'),
  op.parent === null ? 'to the training' : 'to ' + op.parent)));
  const table = profd.table([{name: 'Operator', value: (op) => op.type + ' ' + op.id}, {name: 'Workers', value: (op) => op.workers, number: true},
    {name: 'Queue length', value: (op) => op.queue_length, number: true}, {name: 'Mean in queue', value: (op) => op.queue_mean, number: true},
    {name: 'Use', value: (op) => op.queue_use, text: (op) => profd.percent(op.queue_use), number: true},
    {name: 'Feeds', value: (op) => op.parent, number: true}], operators, {search: (op) => op.type, file: 'pipeline'});
  const sizes = chosen && chosen.sizes.length ? profd.panel('Queue behind ' + chosen.type + ' ' + chosen.id, profd.lines('Queue', [{name: 'in queue',
    x: chosen.sizes.map((_, i) => i), y: chosen.sizes}], 'sample', 'elements')) : null;
  return profd.element('div', {}, graph, sizes, table);
};

// What the process and each operator of the pipeline use of the host's CPUs.
profd.cpuPanel = function (pipeline) {
  const cpu = pipeline.cpu;
  const operators = (pipeline.operators || []).filter((op) => op.cpu);
  if (!cpu && !operators.length) return null;
  const line = (name, values) => ({name: name, x: values.map((_, i) => i), y: values});
  return profd.panel('CPUs of the host', cpu ? [profd.figures([['CPUs', cpu.processors === null ? '-' : profd.number(cpu.processors)],
    ['User', profd.number(cpu.user_percent, 1) + ' %'], ['System', profd.number(cpu.sys_percent, 1) + ' %']]),
  profd.lines('CPUs of the host', [line('user', cpu.user), line('system', cpu.sys)], 'sample', '% of all CPUs')] : null,
  operators.length ? profd.table([{name: 'Operator', value: (op) => op.type + ' ' + op.id},
    {name: 'User', unit: '%', value: (op) => op.cpu.user_percent, number: true}, {name: 'System', unit: '%', value: (op) => op.cpu.sys_percent, number: true}],
  operators, {file: 'pipeline_cpu'}) : null);
};

profd.pipelinePage = function (rank, query) {
  const pipeline = rank && rank.data_pipeline;
  if (!pipeline) return profd.none('The data pipeline', 'MindData writes its logs where MindSpore profiles.');
  const queues = (pipeline.queues || []).map((queue) => profd.panel(profd.queueNames[queue.queue],
    profd.figures([['Empty', profd.emptySteps(queue)], ['Full', queue.full === null ? '-' : profd.number(queue.full)],
      ['Capacity', queue.capacity === null ? '-' : profd.number(queue.capacity)], ['Mean', profd.number(queue.mean_size, 2)]]),
    profd.lines('Queue', [{name: 'elements', x: queue.sizes.map((_, i) => i + 1), y: queue.sizes}], 'step', 'elements'),
    profd.details('As a table', profd.table([{name: 'Step', value: (row) => row.step, number: true}, {name: 'Elements', value: (row) => row.size, number: true}],
      queue.sizes.map((size, i) => ({step: i + 1, size: size})), {file: 'queue_' + queue.queue}))));
  const times = (pipeline.times || []).filter((time) => time.values.length);
  return profd.element('div', {},
    profd.panel('Stages', profd.stageList(pipeline), (pipeline.suggestions || []).length ? profd.element('ul', {}, pipeline.suggestions.map((text) => profd.element('li', {}, text))) : null,
      profd.firstAdvice(pipeline)),
    profd.element('div', {class: 'grid'}, queues),
    times.length ? profd.panel('Times', profd.figures(times.map((time) => [time.what, profd.number(time.mean_ms, 3) + ' ms on average'])),
      profd.lines('Times', times.map((time) => ({name: time.what, x: time.values.map((_, i) => i + 1), y: time.values})), 'step', 'ms')) : null,
    profd.cpuPanel(pipeline),
    profd.panel('Operators of the pipeline', profd.pipelineGraph(pipeline, query)));
};

// Numbers of ranks are those within the group. Of more groups the table below has all.
profd.mostHeats = 4;
profd.heat = function (links, group) {
  const ranks = (field) => Array.from(new Set(links.map((link) => link[field]))).sort((a, b) => a - b || (a < b ? -1 : 1));
  const sources = ranks('src');
  const targets = ranks('dst');
  if (sources.length > 64 || targets.length > 64) return null;
  const between = new Map();  // of each transport
  for (const link of links) between.set(link.src + ' ' + link.dst, (between.get(link.src + ' ' + link.dst) || []).concat(link));
  const most = Math.max(...links.map((link) => link.bandwidth_gb_s || 0), 1e-9);
  return profd.element('div', {class: 'scroll'}, profd.element('table', {class: 'heat'}, profd.element('caption', {}, group && 'Group ' + group),
    profd.element('tr', {}, profd.element('th', {}, 'GB/s from, to'), targets.map((rank) => profd.element('th', {scope: 'col'}, rank))),
    sources.map((from) => profd.element('tr', {}, profd.element('th', {scope: 'row'}, from), targets.map((to) => {
      const found = between.get(from + ' ' + to);
      if (!found) return profd.element('td', {}, '');
      const part = Math.max(...found.map((link) => link.bandwidth_gb_s || 0)) / most;
      return profd.element('td', {title: found.map((link) => link.transport).join(', '), style: {background: 'hsl(' + Math.round(part * 120) + ' 60% 29%)', color: '#fff'}},
        found.map((link) => (found.length > 1 ? link.transport + ' ' : '') + profd.number(link.bandwidth_gb_s, 2)).join(', '));
    })))));
};

profd.communicationPage = function (rank) {
  const operations = (rank && rank.communication) || [];
  const links = (rank && rank.links) || [];
  if (!operations.length && !links.length) return profd.none('Communication', 'profctl start --hccl on records it.');
  const times = [['elapse_ms', 'Elapsed'], ['transit_ms', 'Transit'], ['wait_ms', 'Wait'], ['synchronization_ms', 'Synchronization'], ['idle_ms', 'Idle']];
  const transports = operations.flatMap((op) => op.transports.map((each) => Object.assign({name: op.name}, each)));
  const between = links.filter((link) => link.src !== link.dst);
  const groups = Array.from(new Set(between.map((link) => link.group)));
  // Numbers of ranks come as texts.
  const end = (name, field) => ({name: name, value: (link) => /^\d+$/.test(link[field]) ? Number(link[field]) : link[field], number: true});
  const linkColumns = [end('From', 'src'), end('To', 'dst'), {name: 'Transport', value: (link) => link.transport},
    {name: 'Size', unit: 'MB', value: (link) => link.size_mb, number: true}, {name: 'Time', unit: 'ms', value: (link) => link.time_ms, number: true},
    {name: 'Bandwidth', unit: 'GB/s', value: (link) => link.bandwidth_gb_s, number: true}, {name: 'Reference', unit: 'GB/s', value: (link) => link.reference_gb_s, number: true},
    {name: 'Group', value: (link) => link.group}];
  return profd.element('div', {}, profd.overallPanel(rank),
    profd.panel('Operations', profd.table([{name: 'Operation', value: (op) => op.name}, {name: 'Type', value: (op) => op.type},
      {name: 'Count', value: (op) => op.count, number: true}].concat(times.map(([field, name]) => ({name: name, unit: 'ms', value: (op) => op[field], number: true})),
      [{name: 'Wait share', value: (op) => op.wait_ratio, text: (op) => profd.percent(op.wait_ratio), number: true}, {name: 'Group', value: (op) => op.group}]),
    operations, {search: (op) => op.name || '', filters: [{name: 'Group', value: (op) => op.group}], file: 'communication'})),
    transports.length ? profd.panel('Bandwidth', profd.table([{name: 'Operation', value: (each) => each.name}, {name: 'Transport', value: (each) => each.transport},
      {name: 'Size', unit: 'MB', value: (each) => each.size_mb, number: true}, {name: 'Time', unit: 'ms', value: (each) => each.time_ms, number: true},
      {name: 'Bandwidth', unit: 'GB/s', value: (each) => each.bandwidth_gb_s, number: true},
      {name: 'Reference', unit: 'GB/s', value: (each) => each.reference_gb_s, number: true}, {name: 'Packets', value: (each) => each.packets, number: true},
      {name: 'Large', value: (each) => each.large_packet_ratio, text: (each) => profd.percent(each.large_packet_ratio), number: true}], transports,
    {search: (each) => each.name || '', filters: [{name: 'Transport', value: (each) => each.transport}], file: 'bandwidth'})) : null,
    links.length ? profd.panel('Links', groups.slice(0, profd.mostHeats).map((group) => profd.heat(between.filter((link) => link.group === group), group)), profd.table(linkColumns, links,
      {search: (link) => link.src + ' ' + link.dst + ' ' + link.transport, filters: [{name: 'Transport', value: (link) => link.transport}], file: 'links'})) : null);
};

profd.memoryPage = function (rank) {
  const memory = rank && rank.memory;
  if (!memory) return profd.none('Memory', "PyTorch's profile_memory records it.");
  const kinds = [['allocated_mb', 'allocated'], ['reserved_mb', 'reserved'], ['active_mb', 'active']];
  const lines = memory.components.flatMap((component) => kinds.filter(([field]) => component[field].some((value) => value !== null)).map(([field, name]) =>
    ({name: component.component + ' ' + name, x: component.time_ms, y: component[field]})));
  return profd.element('div', {},
    profd.panel('Memory over time', profd.lines('Memory over time', lines, 'ms', 'MB'),
      memory.fragmentation === null ? null : profd.element('p', {}, 'Reserved and not in use at the peak: ' + profd.percent(memory.fragmentation))),
    profd.panel('Peaks', profd.table([{name: 'Component', value: (row) => row.component}, {name: 'Allocated', unit: 'MB', value: (row) => row.peak_allocated_mb, number: true},
      {name: 'Reserved', unit: 'MB', value: (row) => row.peak_reserved_mb, number: true}, {name: 'Active', unit: 'MB', value: (row) => row.peak_active_mb, number: true},
      {name: 'At', unit: 'ms', value: (row) => row.peak_at_ms, number: true}], memory.components, {file: 'memory_peaks'})),
    profd.panel('Who held it at the peak', profd.table([{name: 'Operator', value: (row) => row.name || '(unknown)'}, {name: 'Size', unit: 'KB', value: (row) => row.size_kb, number: true}],
      memory.at_peak, {search: (row) => row.name || '', file: 'memory_at_peak'})),
    profd.panel('Operators by memory', profd.table([{name: 'Operator', value: (row) => row.name || '(unknown)'}, {name: 'Count', value: (row) => row.count, number: true},
      {name: 'Total', unit: 'KB', value: (row) => row.total_kb, number: true}, {name: 'Largest', unit: 'KB', value: (row) => row.max_kb, number: true},
      {name: 'Held on average', unit: 'ms', value: (row) => row.mean_duration_ms, number: true}], memory.operators, {search: (row) => row.name || '', file: 'memory_operators'})));
};

profd.hardwarePage = function (rank, query) {
  const series = (rank && rank.hardware) || [];
  if (!series.length) return profd.none('Hardware', 'profctl start samples it.');
  const counters = ((rank.timeline_data || {}).counters || []);
  const named = series.filter((each) => each.name === query.get('counter'));
  const chosen = named.find((each) => String(each.device) === query.get('device')) || named[0] || series[0];
  const title = profd.counterNames(series)[series.indexOf(chosen)];
  const points = counters.find((each) => each.name === chosen.name && each.device === chosen.device);
  let graph = profd.none('The course of ' + chosen.name);
  if (points && points.time.length) {
    let t = 0;
    const every = Math.ceil(points.time.length / 2000);
    const x = points.time.map((step) => (t += step) / 1e6);
    graph = profd.lines(chosen.name, [{name: chosen.name, x: x.filter((_, i) => i % every === 0), y: points.value.filter((_, i) => i % every === 0)}], 'ms', chosen.unit || 'value');
  }
  const value = (field) => (each) => profd.quantity(each[field], each.unit);
  return profd.element('div', {},
    profd.panel(title, graph,
      chosen.by_operator.length ? profd.element('div', {}, profd.element('h3', {}, 'While the longest operators ran'), profd.table([{name: 'Operator', value: (row) => row.operator},
        {name: 'Mean', value: (row) => row.mean, text: (row) => profd.quantity(row.mean, chosen.unit), number: true}], chosen.by_operator, {file: 'hardware_by_operator'})) : null,
      chosen.by_step.length ? profd.details('By step', profd.table([{name: 'Step', value: (row) => row.step, number: true},
        {name: 'Mean', value: (row) => row.mean, text: (row) => profd.quantity(row.mean, chosen.unit), number: true}], chosen.by_step, {file: 'hardware_by_step'})) : null),
    profd.panel('Counters', profd.table([{name: 'Counter', value: (each) => each.name}, {name: 'Device', value: (each) => each.device < 0 ? 'host' : String(each.device)},
      {name: 'Samples', value: (each) => each.count, number: true}, {name: 'Min', value: (each) => each.min, text: value('min'), number: true},
      {name: 'Mean', value: (each) => each.mean, text: value('mean'), number: true}, {name: 'Max', value: (each) => each.max, text: value('max'), number: true}],
    series, {search: (each) => each.name, link: (each) => profd.address('hardware', {counter: each.name, device: each.device}), file: 'hardware'})));
};

profd.partNames = {computing_ms: 'Computing', uncovered_communication_ms: 'Communication, not overlapped', overlapped_ms: 'Overlapped', free_ms: 'Free'};

// Which of the other runs that are served to compare with.
profd.baselineChoice = function () {
  const chosen = profd.query().get('baseline') || '';
  const others = profd.runs.filter((run) => run.id !== profd.query().get('run'));
  return profd.panel('Another run', profd.element('label', {}, 'Compare with ', profd.element('select', {id: 'baseline',
    onchange: (event) => { location.hash = profd.address('compare', {baseline: event.target.value}); }},
  profd.element('option', {value: '', selected: !chosen}, 'none'),
  others.map((run) => profd.element('option', {value: run.id, selected: run.id === chosen}, run.name + ', ' + run.kind + ' in ' + run.path)))));
};

profd.comparePage = function () {
  const compare = profd.data && profd.data.compare;
  const ranks = (profd.data && profd.data.ranks) || [];
  const box = profd.element('div');
  if (ranks.length > 1) {
    const with_time = ranks.filter((rank) => rank.overall);
    box.append(profd.panel('Ranks beside each other', profd.table([{name: 'Rank', value: profd.rankName}].concat(
      [['e2e_ms', 'End to end'], ['computing_ms', 'Computing'], ['uncovered_communication_ms', 'Communication, not overlapped'], ['free_ms', 'Free']].map(
        ([field, name]) => ({name: name, unit: 'ms', value: (rank) => rank.overall[field], number: true}))), with_time, {file: 'ranks'})));
  }
  if (profd.served) box.append(profd.baselineChoice());
  if (!compare) {
    if (!profd.served) box.append(profd.element('p', {class: 'none'}, 'To compare with another run: profctl report RUN --baseline OTHER.'));
    return box;
  }
  const of = compare.of === 'step' ? ['A step', compare.run_step_ms, compare.baseline_step_ms] : ['The run', compare.run_ms, compare.baseline_ms];
  if (compare.note) box.append(profd.element('p', {class: 'none'}, compare.note + '.'));
  const ms = (value) => profd.quantity(value, 'ms');
  box.append(profd.panel('Compared with ' + compare.baseline, profd.figures([[of[0] + ' now', ms(of[1])], [of[0] + ' then', ms(of[2])], ['Difference', ms(compare.difference_ms)]]),
  profd.table([{name: 'Name', value: (row) => profd.partNames[row.name] || row.name}, {name: 'What', value: (row) => row.what.replace('_', ' ')}, {name: 'Then', value: (row) => row.baseline, number: true},
    {name: 'Now', value: (row) => row.run, number: true}, {name: 'Difference', value: (row) => row.difference, number: true}, {name: 'Unit', value: (row) => row.unit},
    {name: compare.of === 'step' ? "Of the step's difference" : 'Of the difference', value: (row) => row.share_of_difference, text: (row) => profd.percent(row.share_of_difference), number: true}], compare.differences,
  {search: (row) => row.name, filters: [{name: 'What', value: (row) => row.what.replace('_', ' ')}], file: 'compare'})));
  return box;
};
