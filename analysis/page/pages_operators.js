// The pages of operators, by kind of core, and of the application's marks.
'use strict';
var profd = window.profd || (window.profd = {});

profd.timesColumns = [
  {name: 'Count', value: (row) => row.count, number: true},
  {name: 'Total', unit: 'ms', value: (row) => row.total_ms, number: true},
  {name: 'Share', value: (row) => row.share, text: (row) => profd.percent(row.share), number: true},
  {name: 'Min', unit: 'ms', value: (row) => row.min_ms, number: true},
  {name: 'Mean', unit: 'ms', value: (row) => row.mean_ms, number: true},
  {name: 'Max', unit: 'ms', value: (row) => row.max_ms, number: true},
];

profd.typeTable = function (rank, size) {
  return profd.table([{name: 'Type', value: (row) => row.type || '(unknown)'}, {name: 'Core', value: (row) => row.core}].concat(profd.timesColumns),
    rank.operator_types || [], {search: (row) => row.type || '', filters: [{name: 'Core', value: (row) => row.core}], size: size || 20,
      link: (row) => profd.address('operators', {type: row.type || '(unknown)'}), file: 'operator_types'});
};

profd.kindNames = {ai_core: 'AI Core', vector: 'Vector', mixed: 'Mixed', ai_cpu: 'AI CPU', communication: 'Communication', other: 'Other'};

// Tabs: all operators, and those of each kind of core there is.
profd.kindTabs = function (rank, chosen, graph) {
  const kinds = (rank.operator_kinds || []).map((kind) => kind.kind);
  if ((rank.ai_cpu || []).length && !kinds.includes('ai_cpu')) kinds.push('ai_cpu');
  const order = Object.keys(profd.kindNames).filter((kind) => kinds.includes(kind));
  const tab = (kind, name) => profd.element('a', {href: profd.address('operators', Object.assign(kind ? {kind: kind} : {}, graph ? {graph: graph} : {})),
    'aria-current': kind === chosen ? 'true' : null}, name);
  return profd.element('nav', {class: 'tabs', 'aria-label': 'Kinds of cores'}, tab('', 'All'), order.map((kind) => tab(kind, profd.kindNames[kind])));
};

// What bounds the longest operators: how busy their computing units are against how busy what moves their data is.
profd.rooflinePanel = function (rank, kind) {
  const kinds = new Map(rank.operators.map((row) => [row.name + '\n' + row.core, row.kind]));
  const rows = (rank.roofline || []).filter((row) => !kind || kinds.get(row.name + '\n' + row.core) === kind);
  if (!rows.length) return null;
  const of = (unit) => unit ? unit.of_peak * 100 : 0;
  const limits = [['compute', 'Bound by computing'], ['memory', 'Bound by memory'], ['none', 'Bound by neither']];
  const most = Math.max(...rows.map((row) => row.total_ms), 1e-9);
  const datasets = limits.map(([limit, name], i) => ({label: name, backgroundColor: profd.colors[i] + 'b0', borderColor: profd.colors[i],
    data: rows.slice(0, 300).filter((row) => row.limit === limit).map((row) => ({x: of(row.memory), y: of(row.compute), name: row.name, ms: row.total_ms,
      r: 3 + 15 * Math.sqrt(row.total_ms / most)}))}));
  const axis = (title) => ({min: 0, max: 100, title: {display: true, text: title}});
  const unitText = (unit) => unit ? unit.unit + ' ' + profd.percent(unit.of_peak) : '-';
  return profd.panel('Roofline',
    profd.element('p', {class: 'none'}, 'A unit that is busy all the time works at its peak. Above 80 % it bounds the operator; what is near neither edge waits.'),
    profd.chart('Computing against memory units, per cent of their peak', {type: 'bubble', data: {datasets: datasets},
      options: {plugins: {tooltip: {callbacks: {label: (item) => item.raw.name + ': ' + profd.number(item.raw.ms, 3) + ' ms'}}},
        scales: {x: axis('memory units busy, %'), y: axis('computing units busy, %')}}}, 340),
    profd.table([{name: 'Operator', value: (row) => row.name}, {name: 'Core', value: (row) => row.core},
      {name: 'Total', unit: 'ms', value: (row) => row.total_ms, number: true},
      {name: 'Computing', value: (row) => of(row.compute), text: (row) => unitText(row.compute), number: true},
      {name: 'Memory', value: (row) => of(row.memory), text: (row) => unitText(row.memory), number: true},
      {name: 'Of peak', value: (row) => row.of_peak, text: (row) => profd.percent(row.of_peak), number: true},
      {name: 'At peak', unit: 'ms', value: (row) => row.at_peak_ms, number: true}, {name: 'Limit', value: (row) => row.limit}],
    rows, {search: (row) => row.name || '', filters: [{name: 'Limit', value: (row) => row.limit}], file: 'roofline'}));
};

profd.operatorTable = function (rows, query) {
  const ratios = Array.from(new Set(rows.flatMap((row) => Object.keys(row.ratios || {}))));
  const columns = [{name: 'Operator', value: (row) => row.name}, {name: 'Type', value: (row) => row.type}, {name: 'Core', value: (row) => row.core}]
    .concat(profd.timesColumns, [{name: 'Bound', value: (row) => row.bound}],
      ratios.map((name) => ({name: name, value: (row) => (row.ratios || {})[name], text: (row) => profd.percent((row.ratios || {})[name]), number: true})),
      [{name: 'Input shapes', value: (row) => row.input_shapes}, {name: 'Output shapes', value: (row) => row.output_shapes}]);
  return profd.table(columns, rows, {search: (row) => (row.name || '') + ' ' + (row.type || ''),
    filters: [{name: 'Core', value: (row) => row.core}, {name: 'Bound', value: (row) => row.bound}], file: 'operators', find: query.get('search')});
};

profd.cpuLogPanel = function (cpu) {
  return profd.panel('Log of the AI CPU', profd.table([{name: 'Number', value: (row) => row.serial_number, number: true}, {name: 'Type', value: (row) => row.type},
    {name: 'Total', unit: 'ms', value: (row) => row.total_ms, number: true}, {name: 'Dispatch', unit: 'ms', value: (row) => row.dispatch_ms, number: true}],
  cpu, {search: (row) => row.type || '', file: 'ai_cpu'}));
};

profd.operatorsPage = function (rank, query) {
  const cpu = (rank && rank.ai_cpu) || [];
  if (!rank || (!(rank.operators || []).length && !cpu.length)) return profd.none('Operators', 'profctl start --task-time l1 records them.');
  const graph = query.get('graph') === 'bar' ? 'bar' : 'pie';
  const type = query.get('type');
  const kind = query.get('kind') || '';
  const here = (row) => !kind || row.kind === kind;
  const types = (rank.operator_types || []).filter(here);
  const operators = (rank.operators || []).filter((row) => here(row) && (!type || (row.type || '(unknown)') === type));
  const now = Object.assign(type ? {type: type} : {}, kind ? {kind: kind} : {});
  const all = (rank.operator_kinds || []).find((each) => each.kind === kind);
  return profd.element('div', {},
    profd.kindTabs(rank, kind, query.get('graph')),
    all ? profd.figures([['Time', profd.number(all.total_ms, 3) + ' ms'], ['Share', profd.percent(all.share)], ['Executions', profd.number(all.count)],
      ['Operators', profd.number(all.operators)], ['Types', profd.number(all.types)]]) : null,
    types.length ? profd.panel('Time by type', profd.element('div', {class: 'controls'}, ['pie', 'bar'].map((each) => profd.element('a', {
      href: profd.address('operators', Object.assign({graph: each}, now)), 'aria-current': each === graph ? 'true' : null}, each === 'pie' ? 'Pie' : 'Bars'))),
    profd.typeChart({operator_types: types}, 19, graph), profd.typeTable({operator_types: types})) : null,
    operators.length ? profd.panel(type ? 'Operators of the type ' + type : 'Operators', type ? profd.element('p', {}, profd.element('a', {href: profd.address('operators')}, 'All types')) : null,
      profd.operatorTable(operators, query)) : null,
    type ? null : profd.rooflinePanel(rank, kind),
    cpu.length && (!kind || kind === 'ai_cpu') ? profd.cpuLogPanel(cpu) : null);
};

profd.marksPage = function (rank) {
  const marks = rank && rank.marks;
  if (!marks) return profd.none('Marks', 'Mark ranges of the training with mstx or libprofd.');
  const many = marks.left_out > 0 ? profd.element('p', {class: 'none'}, 'The longest ones; ' + profd.number(marks.left_out) + ' are left out.') : null;
  return profd.element('div', {},
    profd.panel('By name', profd.table([{name: 'Mark', value: (row) => row.name}, {name: 'Domain', value: (row) => row.domain},
      {name: 'Count', value: (row) => row.count, number: true}, {name: 'Total', unit: 'ms', value: (row) => row.total_ms, number: true},
      {name: 'Min', unit: 'ms', value: (row) => row.min_ms, number: true}, {name: 'Mean', unit: 'ms', value: (row) => row.mean_ms, number: true},
      {name: 'Max', unit: 'ms', value: (row) => row.max_ms, number: true}], marks.names,
    {search: (row) => (row.name || '') + ' ' + (row.domain || ''), filters: [{name: 'Domain', value: (row) => row.domain}], file: 'marks'})),
    profd.panel('One by one', many, profd.table([{name: 'Start', unit: 'ms', value: (row) => row.start_ms, number: true}, {name: 'Mark', value: (row) => row.name},
      {name: 'Domain', value: (row) => row.domain}, {name: 'Duration', unit: 'ms', value: (row) => row.duration_ms, number: true}], marks.list,
    {search: (row) => row.name || '', file: 'mark_list'})));
};
