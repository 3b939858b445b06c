// What the checks found: a summary, and each finding with its table and the way to the timeline.
'use strict';
var profd = window.profd || (window.profd = {});

// Colours of the advisor's report (analysis 1.2).
profd.priorityColors = {high: '#B5495B', medium: '#fcaf17', low: '#65c294', info: '#7f8791'};

profd.priorityLabel = (priority) => profd.element('span', {class: 'priority', style: {background: profd.priorityColors[priority],
  color: profd.inkOn(profd.priorityColors[priority])}}, priority);

profd.findingPanel = function (finding) {
  const columns = finding.table.columns.map((name, i) => ({name: name.replace(/_/g, ' '), value: (row) => row[i],
    number: finding.table.rows.some((row) => typeof row[i] === 'number')}));
  const index = profd.data.ranks.findIndex((rank) => rank.rank === finding.rank);
  const where = finding.at_ns === null ? null : profd.element('p', {}, profd.element('a',
    {href: profd.address('timeline', {rank: Math.max(index, 0), at: finding.at_ns})}, 'On the timeline'));
  const panel = profd.panel(finding.title, profd.element('p', {}, profd.priorityLabel(finding.priority), ' ', finding.dimension, ', ', finding.check,
    finding.rank === null ? '' : ', rank ' + finding.rank, finding.cost_ms === null ? '' : ', ' + profd.number(finding.cost_ms, 3) + ' ms per step'),
  profd.element('p', {}, finding.evidence + '.'),
  finding.advice.length ? profd.element('ul', {}, finding.advice.map((each) => profd.element('li', {}, each))) : null, where,
  finding.table.rows.length ? profd.table(columns, finding.table.rows, {size: 10, search: (row) => row.join(' '), file: finding.check}) : null);
  panel.id = 'finding-' + finding.check;
  return panel;
};

profd.advicePage = function () {
  const findings = (profd.data && profd.data.findings) || [];
  if (!findings.length) return profd.element('p', {class: 'none'}, 'No check found anything in what was recorded.');
  const show = (finding) => () => document.getElementById('finding-' + finding.check).scrollIntoView();
  return profd.element('div', {}, profd.panel('Findings', profd.element('div', {class: 'scroll'}, profd.element('table', {}, profd.element('thead', {},
    profd.element('tr', {}, ['Priority', 'Dimension', 'Finding', 'Rank', 'Cost (ms per step)'].map((name) => profd.element('th', {scope: 'col'}, name)))),
  profd.element('tbody', {}, findings.map((finding) => profd.element('tr', {}, profd.element('td', {}, profd.priorityLabel(finding.priority)),
    profd.element('td', {}, finding.dimension), profd.element('td', {class: 'name'}, profd.element('button', {type: 'button', class: 'plain', onclick: show(finding)}, finding.title)),
    profd.element('td', {class: 'number'}, finding.rank === null ? '-' : String(finding.rank)),
    profd.element('td', {class: 'number'}, finding.cost_ms === null ? '-' : profd.number(finding.cost_ms, 3)))))))),
  findings.map(profd.findingPanel));
};
