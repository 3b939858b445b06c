// What the checks found, as the advisor's report has it: overall, comparison, performance problem analysis. First a summary
// by dimension and priority; then each finding with its table, code to paste, places in the program and on the timeline.
'use strict';
var profd = window.profd || (window.profd = {});

// Colours of the advisor's report (analysis 1.2).
profd.priorityColors = {high: '#B5495B', medium: '#fcaf17', low: '#65c294', info: '#7f8791'};
profd.priorities = ['high', 'medium', 'low', 'info'];

// In the languages of the findings; a module is a part of the report, with its dimensions in this order.
profd.adviceModules = [
  {en: 'Overall', zh: '总体性能分析', dimensions: ['overall']},
  {en: 'Comparison', zh: '性能比对', dimensions: ['comparison']},
  {en: 'Performance problem analysis', zh: '性能问题分析', dimensions: ['computation', 'schedule', 'communication', 'memory', 'dataloader']},
];
profd.adviceWords = {
  overall: {en: 'Overall', zh: '总体'},
  comparison: {en: 'Comparison', zh: '比对'},
  computation: {en: 'Computation', zh: '计算'},
  schedule: {en: 'Schedule', zh: '下发'},
  communication: {en: 'Communication', zh: '通信'},
  memory: {en: 'Memory', zh: '内存'},
  dataloader: {en: 'Data loader', zh: '数据加载'},
  high: {en: 'high', zh: '高'},
  medium: {en: 'medium', zh: '中'},
  low: {en: 'low', zh: '低'},
  info: {en: 'info', zh: '信息'},
  none: {en: 'No check found anything in what was recorded.', zh: '所有检查均未在采集的数据中发现问题。'},
  summary: {en: 'Summary', zh: '概览'},
  findings: {en: 'Findings', zh: '问题列表'},
  dimension: {en: 'Dimension', zh: '维度'},
  priority: {en: 'Priority', zh: '优先级'},
  finding: {en: 'Finding', zh: '问题'},
  rank: {en: 'Rank', zh: 'Rank'},
  cost: {en: 'Cost (ms per step)', zh: '代价（ms/step）'},
  costInAll: {en: 'Cost (ms in all)', zh: '代价（ms，全程）'},
  perStep: {en: 'ms per step', zh: '毫秒/step'},
  inAll: {en: 'ms in all', zh: '毫秒（全程）'},
  timeline: {en: 'On the timeline', zh: '在时间线上查看'},
  code: {en: 'Code to paste', zh: '可粘贴的代码'},
  copy: {en: 'Copy', zh: '复制'},
  places: {en: 'Places in the program', zh: '代码位置'},
  merged: {en: 'The same cause', zh: '同一原因'},
  suggestions: {en: 'Suggestions', zh: '建议'},
};

profd.adviceLanguage = () => (profd.data && profd.data.language) || 'en';
profd.adviceWord = (name) => profd.adviceWords[name] ? profd.adviceWords[name][profd.adviceLanguage()] : name;

profd.priorityLabel = (priority) => profd.element('span', {class: 'priority', style: {background: profd.priorityColors[priority],
  color: profd.inkOn(profd.priorityColors[priority])}}, profd.adviceWord(priority));

profd.codeBox = function (lines) {
  const text = lines.join('\n');
  const box = profd.element('pre', {class: 'code', tabindex: '0'}, profd.element('code', {}, text));
  const copy = navigator.clipboard && profd.element('button', {type: 'button', onclick: () => navigator.clipboard.writeText(text)}, profd.adviceWord('copy'));
  return profd.element('div', {}, profd.element('h4', {}, profd.adviceWord('code')), box, copy);
};

profd.placeList = (places) => profd.element('div', {}, profd.element('h4', {}, profd.adviceWord('places')),
  profd.element('ul', {class: 'places'}, places.map((place) => profd.element('li', {}, profd.element('code', {}, place.file + ':' + place.line), ' ' + place.function,
    place.stack.length > 1 ? profd.details(String(place.stack.length), profd.element('pre', {class: 'code'}, place.stack.map((frame) =>
      frame.file + ':' + frame.line + ' ' + frame.function).join('\n'))) : null))));

// "rdma_bandwidth_gb_s" is "rdma bandwidth (GB/s)".
profd.columnTitle = function (name) {
  const units = {gb_s: 'GB/s', mb: 'MB', ms: 'ms', us: 'us'};
  return name.replace(/_(gb_s|mb|ms|us)$/, (_, unit) => ' (' + units[unit] + ')').replace(/_/g, ' ');
};

// Names of a run are in advice, too: addresses of the vendor's documents alone are links.
profd.withLinks = (text) => text.split(/(https:\/\/gitcode\.com\/Ascend\/\S+)/).map((part, i) =>
  i % 2 ? profd.element('a', {href: part, rel: 'noreferrer'}, part) : part);

profd.findingPanel = function (finding) {
  const columns = finding.table.columns.map((name, i) => ({name: profd.columnTitle(name), value: (row) => row[i],
    number: finding.table.rows.some((row) => typeof row[i] === 'number')}));
  const index = profd.data.ranks.findIndex((rank) => rank.rank === finding.rank);
  const where = finding.at_ns === null ? null : profd.element('p', {}, profd.element('a',
    {href: profd.address('timeline', {rank: Math.max(index, 0), at: finding.at_ns})}, profd.adviceWord('timeline')));
  const facts = [profd.adviceWord(finding.dimension), finding.check];
  if (finding.rank !== null) facts.push('rank ' + finding.rank);
  if (finding.cost_ms !== null) facts.push(profd.number(finding.cost_ms, 3) + ' ' + profd.adviceWord(finding.cost_of === 'run' ? 'inAll' : 'perStep'));
  const panel = profd.panel(finding.title, profd.element('p', {}, profd.priorityLabel(finding.priority), ' ' + facts.join(', ')),
    profd.element('p', {}, finding.evidence.replace(/^rank /, 'Rank ') + (profd.adviceLanguage() === 'zh' ? '。' : '.')),
    finding.merged.length ? profd.element('ul', {class: 'merged'}, finding.merged.map((each) =>
      profd.element('li', {}, profd.adviceWord('merged') + ' (' + each.check + '): ' + each.title + ': ' + each.evidence))) : null,
    finding.advice.length ? profd.element('div', {}, profd.element('h4', {}, profd.adviceWord('suggestions')),
      profd.element('ul', {}, finding.advice.map((each) => profd.element('li', {}, profd.withLinks(each))))) : null,
    finding.code.length ? profd.codeBox(finding.code) : null,
    finding.places.length ? profd.placeList(finding.places) : null, where,
    finding.table.rows.length ? profd.table(columns, finding.table.rows, {size: 10, search: (row) => row.join(' '), file: finding.check}) : null);
  panel.id = 'finding-' + finding.check;
  panel.style.borderTop = '4px solid ' + profd.priorityColors[finding.priority];
  return panel;
};

// Columns from `numbers` on are of numbers.
profd.plainTable = (names, numbers, rows) => profd.element('div', {class: 'scroll'}, profd.element('table', {}, profd.element('thead', {},
  profd.element('tr', {}, names.map((name, i) => profd.element('th', {scope: 'col', class: i >= numbers ? 'number' : null}, name)))), profd.element('tbody', {}, rows)));

// How many of each dimension have each priority.
profd.adviceSummary = function (findings) {
  const all = profd.adviceModules.flatMap((module) => module.dimensions);
  const rows = all.filter((dimension) => findings.some((finding) => finding.dimension === dimension)).map((dimension) => profd.element('tr', {},
    profd.element('td', {}, profd.adviceWord(dimension)), profd.priorities.map((priority) => {
      const count = findings.filter((finding) => finding.dimension === dimension && finding.priority === priority).length;
      return profd.element('td', {class: 'number'}, count ? String(count) : '');
    })));
  const panel = profd.panel(profd.adviceWord('summary'), profd.plainTable([profd.adviceWord('dimension'), ...profd.priorities.map((each) => profd.priorityLabel(each))], 1, rows));
  panel.id = 'advice-summary';
  return panel;
};

profd.showFinding = function (check) {
  const panel = document.getElementById('finding-' + check);
  if (panel) panel.scrollIntoView();
};

profd.adviceList = function (findings) {
  const cost = findings[0].cost_of === 'run' ? 'costInAll' : 'cost';
  return profd.panel(profd.adviceWord('findings'), profd.plainTable(['priority', 'dimension', 'finding', 'rank', cost].map(profd.adviceWord), 3,
    findings.map((finding) => profd.element('tr', {}, profd.element('td', {}, profd.priorityLabel(finding.priority)),
      profd.element('td', {}, profd.adviceWord(finding.dimension)),
      profd.element('td', {class: 'name'}, profd.element('a', {href: profd.address('advice', {finding: finding.check}), onclick: () => profd.showFinding(finding.check)}, finding.title)),
      profd.element('td', {class: 'number'}, finding.rank === null ? '-' : String(finding.rank)),
      profd.element('td', {class: 'number'}, finding.cost_ms === null ? '-' : profd.number(finding.cost_ms, 3))))));
};

profd.advicePage = function (query) {
  const findings = (profd.data && profd.data.findings) || [];
  profd.entered = () => profd.showFinding(query.get('finding'));
  if (!findings.length) return profd.element('p', {class: 'none'}, profd.adviceWord('none'));
  const order = (dimension) => profd.adviceModules.flatMap((module) => module.dimensions).indexOf(dimension);
  // Findings come by priority, which stays the order within a dimension.
  const sorted = findings.slice().sort((a, b) => order(a.dimension) - order(b.dimension));
  const modules = profd.adviceModules.map((module) => {
    const own = sorted.filter((finding) => module.dimensions.includes(finding.dimension));
    return own.length ? profd.element('div', {class: 'module'}, profd.element('h2', {}, module[profd.adviceLanguage()]), own.map(profd.findingPanel)) : null;
  });
  return profd.element('div', {lang: profd.adviceLanguage()}, profd.adviceSummary(findings), profd.adviceList(findings), modules);
};
