// The pages of steps and operators, and the overview.
'use strict';
var profd = window.profd || (window.profd = {});

profd.runsPage = function () {
  if (!(profd.runs || []).length) {
    return profd.panel('Runs below the folders that are served', profd.element('p', {class: 'none'}, 'No run was found below ' +
      (profd.folders || []).join(', ') + ', and no dump of this node. Record one with profctl start or run, copy one there with profctl fetch, ' +
      'or start profctl serve with the folder that has them; then load this page again.'));
  }
  return profd.panel('Runs below the folders that are served', profd.table([
    {name: 'Run', value: (run) => run.name},
    {name: 'Kind', value: (run) => run.kind},
    {name: 'Parts', value: (run) => run.parts, number: true},
    {name: 'Changed', value: (run) => run.changed_s, text: (run) => profd.timeText(run.changed_s)},
    {name: 'Folder', value: (run) => run.path},
  ], profd.runs || [], {search: (run) => run.name + ' ' + run.path, filters: [{name: 'Kind', value: (run) => run.kind}],
    link: (run) => '#/overview?run=' + encodeURIComponent(run.id), file: 'runs'}));
};

// Parts of a whole as a bar with a legend.
profd.shareBar = function (parts, unit) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  const share = (part) => whole > 0 ? part.value / whole : 0;
  return profd.element('div', {},
    profd.element('div', {class: 'bar', role: 'img', 'aria-label': parts.map((part) => part.name + ' ' + profd.percent(share(part))).join(', ')},
      parts.map((part, i) => profd.element('div', {style: {width: share(part) * 100 + '%', background: profd.colors[i]}, title: part.name}))),
    profd.element('ul', {class: 'legend'}, parts.map((part, i) => profd.element('li', {},
      profd.element('span', {style: {background: profd.colors[i]}}), part.name + ': ' + profd.number(part.value, 3) + ' ' + unit + ' (' +
      profd.percent(share(part)) + ')'))));
};

profd.overallPanel = function (rank) {
  const all = rank && rank.overall;
  if (!all) {
    // MindSpore's raw logs and what MindInsight makes of them.
    const why = rank && (rank.operators || []).length ? profd.none('When the device communicated') : profd.none('Operators', 'profctl start --task-time l1 records them.');
    return profd.panel('Time of the device', why);
  }
  return profd.panel('Time of the device', profd.figures([['End to end', profd.number(all.e2e_ms, 3) + ' ms'],
    ['Communication in all', profd.number(all.communication_ms, 3) + ' ms'], ['Overlapped', profd.number(all.overlapped_ms, 3) + ' ms']]),
  profd.shareBar([{name: 'Computing', value: all.computing_ms}, {name: 'Communication, not overlapped', value: all.uncovered_communication_ms},
    {name: 'Free', value: all.free_ms}], 'ms'));
};

// The lines of a step: the whole, its parts, then each stream of all-reduces.
profd.stepLines = function (step) {
  const rows = [[{name: 'Step', start: 0, length: step.total_ms}]];
  if (step.iteration_interval_ms !== null && step.fp_and_bp_ms !== null) {
    rows.push([{name: 'Interval', start: 0, length: step.iteration_interval_ms},
      {name: 'Forward and backward', start: step.iteration_interval_ms, length: step.fp_and_bp_ms},
      {name: 'Tail', start: step.iteration_interval_ms + step.fp_and_bp_ms, length: step.tail_ms}]);
  }
  const streams = new Map();
  for (const reduce of step.reduces || []) {
    const stream = (/^stream_\d+/.exec(reduce.name) || [reduce.name.replace(/_[^_]*$/, '')])[0];
    if (!streams.has(stream)) streams.set(stream, []);
    streams.get(stream).push({name: reduce.name, start: reduce.start_ms, length: reduce.duration_ms});
  }
  rows.push(...streams.values());
  return rows.map((row) => row.filter((each) => each.length !== null));
};

profd.stepGraph = function (step) {
  const part = (length) => step.total_ms > 0 ? length / step.total_ms * 100 + '%' : '0';
  return profd.element('div', {class: 'trace', role: 'img', 'aria-label': 'The step from its start to its end, ' + profd.number(step.total_ms, 3) + ' ms'},
    profd.stepLines(step).map((row, y) => profd.element('div', {class: 'track'}, row.map((each, i) => {
      const color = profd.colors[(y * 3 + i) % profd.colors.length];
      const label = each.name + '  ' + profd.number(each.length, 4) + ' ms';
      return profd.element('div', {title: label, style: {left: part(each.start), width: part(each.length), background: color, color: profd.inkOn(color)}}, label);
    }))));
};

// When each part begins and ends, from the begin of the step.
profd.stepTable = (step) => profd.details('As a table', profd.table([{name: 'Part', value: (each) => each.name},
  {name: 'Begin', unit: 'ms', value: (each) => each.start, number: true}, {name: 'End', unit: 'ms', value: (each) => each.start + each.length, number: true},
  {name: 'Duration', unit: 'ms', value: (each) => each.length, number: true}], profd.stepLines(step).flat(), {file: 'step_parts'}));

profd.stepParts = function (step) {
  const share = (value) => value === null || !step.total_ms ? '-' : profd.number(value, 4) + ' ms (' + profd.percent(value / step.total_ms) + ')';
  return profd.figures([['Total', profd.number(step.total_ms, 4) + ' ms'], ['Interval', share(step.iteration_interval_ms)],
    ['Forward and backward', share(step.fp_and_bp_ms)], ['Tail', share(step.tail_ms)]]);
};

profd.typeTotals = function (rank, most) {
  const types = (rank.operator_types || []).map((type) => ({name: type.type || '(unknown)', value: type.total_ms}));
  if (types.length <= most) return types;
  return types.slice(0, most).concat([{name: 'Other', value: types.slice(most).reduce((sum, type) => sum + type.value, 0)}]);
};

profd.typeChart = function (rank, most, kind) {
  const totals = profd.typeTotals(rank, most);
  const pie = kind !== 'bar';
  // The legend takes its space from the ring; where that is too narrow, it would overlap the edge of the card.
  const narrow = window.innerWidth < 600;
  const cut = (name) => name.length > 28 ? name.slice(0, 27) + '\u2026' : name;
  return profd.chart('Time by type of operator', {type: pie ? 'doughnut' : 'bar',
    data: {labels: totals.map((type) => pie ? cut(type.name) : type.name), datasets: [{label: 'ms', data: totals.map((type) => type.value), borderWidth: 0,
      backgroundColor: totals.map((_, i) => profd.colors[i % profd.colors.length])}]},
    options: pie ? {plugins: {legend: {position: narrow ? 'bottom' : 'right', labels: {boxWidth: 12}}}} : {indexAxis: 'y', plugins: {legend: {display: false}},
      scales: {x: {title: {display: true, text: 'ms'}}}}}, pie ? (narrow ? 260 + totals.length * 10 : 260) : Math.max(220, totals.length * 24));
};

profd.overviewPage = function (rank) {
  if (!rank) return profd.none('Data of this rank');
  const average = rank.step_average;
  const timeline = rank.timeline || {};
  const pipeline = rank.data_pipeline;
  const hints = (profd.data.hints || []);
  const top = (rank.operator_types || []).slice(0, 5);
  const steps = (rank.steps || []).length;  // those of a table have no average
  const judged = steps > 0 || top.length > 0 || pipeline;
  const urgent = (profd.data.findings || []).filter((finding) => finding.priority === 'high' || finding.priority === 'medium').slice(0, 5);
  const item = (text, evidence) => profd.element('li', {}, text, ' ', profd.element('span', {class: 'evidence'}, evidence));
  const hintList = hints.length + urgent.length === 0 ? profd.element('p', {class: 'none'},
    judged ? 'Nothing stands out.' : ['Neither steps, operators nor a data pipeline are recorded: there is nothing to judge. ',
      (rank.hardware || []).length ? profd.element('a', {href: profd.address('hardware')}, 'See the hardware counters.') : null])
    : profd.element('ul', {class: 'hints'}, urgent.map((finding) => item([profd.priorityLabel(finding.priority), ' ',
      profd.element('a', {href: profd.address('advice', {finding: finding.check})}, finding.title)], finding.evidence)),
    hints.slice(0, 12).map((hint) => item(hint.text, hint.evidence)));
  const problems = profd.data.problems || [];
  return profd.element('div', {},
    profd.element('div', {class: 'grid'},
      profd.overallPanel(rank),
      profd.panel('What to look at first', hintList),
      profd.panel('Step trace, average', steps ? [average ? [profd.stepParts(average), profd.stepGraph(average)] : profd.none('Parts of steps'),
        profd.element('p', {}, profd.element('a', {href: profd.address('steps')}, 'All steps'))].flat() : profd.none('Steps', 'Mark steps, or record training_trace.')),
      profd.panel('Operators', top.length ? [profd.typeChart(rank, 5), profd.details('As a table', profd.typeTable(rank, 5)),
        profd.element('p', {}, profd.element('a', {href: profd.address('operators')}, 'All operators'))] : profd.none('Operators', 'profctl start --task-time l1 records them.')),
      profd.panel('Data pipeline', pipeline ? [profd.stageList(pipeline),
        profd.figures((pipeline.queues || []).map((queue) => [profd.queueNames[queue.queue] + ', empty', profd.emptySteps(queue)])), profd.element('p', {}, profd.element('a', {href: profd.address('pipeline')}, 'Queues'))]
        : profd.none('The data pipeline', 'MindData writes its logs where MindSpore profiles.')),
      profd.panel('Timeline', timeline.executions ? profd.figures([['Streams', profd.number(timeline.streams)],
        ['Operators', profd.number(timeline.operators)], ['Executions', profd.number(timeline.executions)],
        ['Time', profd.number(timeline.total_ms, 3) + ' ms']]) : profd.none('Operators'),
      profd.element('p', {}, profd.element('a', {href: profd.address('timeline')}, 'Open the timeline')))),
    rank.environment ? profd.details('Environment of the training process', profd.table([{name: 'Variable', value: (pair) => pair[0]}, {name: 'Value', value: (pair) => pair[1]}],
      Object.entries(rank.environment), {search: (pair) => pair.join(' '), file: 'environment'})) : null,
    problems.length ? profd.details(problems.length + (problems.length === 1 ? ' part' : ' parts') + ' of the data could not be read', profd.element('ul', {}, problems.map((problem) =>
      profd.element('li', {}, problem.where + ': ' + problem.what)))) : null,
    profd.element('p', {class: 'none'}, (rank.source || '') + ', ' + (rank.path || '') + (rank.host ? ', host ' + rank.host : '')));
};

profd.stepsPage = function (rank, query) {
  const steps = (rank && rank.steps) || [];
  if (!steps.length) return profd.none('Steps', 'Mark steps, or record training_trace.');
  const wanted = query.get('step');
  const step = steps.find((each) => String(each.step) === wanted) || rank.step_average || steps[0];
  const chooser = profd.element('input', {type: 'number', id: 'step', min: steps[0].step, max: steps[steps.length - 1].step, 'aria-label': 'Step',
    placeholder: 'average', value: step.step === 'average' ? '' : step.step,
    onchange: (event) => { location.hash = profd.address('steps', event.target.value ? {step: event.target.value} : {}); }});
  const spread = rank.step_distribution;
  const points = rank.step_points;
  const fields = [['total_ms', 'Total'], ['iteration_interval_ms', 'Interval'], ['fp_and_bp_ms', 'Forward and backward'], ['tail_ms', 'Tail'],
    ['computing_ms', 'Computing'], ['uncovered_communication_ms', 'Communication, not overlapped'], ['free_ms', 'Free']];
  const known = fields.filter(([field]) => steps.some((each) => each[field] !== null));
  const columns = [{name: 'Step', value: (each) => each.step, number: true}, {name: 'Start', unit: 'ms', value: (each) => each.start_ms, number: true}]
    .concat(known.map(([field, name]) => ({name: name, unit: 'ms', value: (each) => each[field], number: true})));
  return profd.element('div', {},
    profd.panel(step.step === 'average' ? 'Average of ' + profd.number(step.steps) + (step.steps === 1 ? ' step' : ' steps') : 'Step ' + step.step,
      profd.element('div', {class: 'controls'}, profd.element('label', {}, 'Step ', chooser)), profd.stepParts(step), profd.stepGraph(step), profd.stepTable(step),
      points ? profd.element('p', {class: 'none'}, 'Forward starts with ' + (points.fp_start || '?') + '; backward ends with ' + (points.bp_end || '?')) : null),
    spread ? profd.panel('Lengths of steps', profd.figures([['Least', profd.number(spread.min_ms, 3) + ' ms'], ['Median', profd.number(spread.p50_ms, 3) + ' ms'],
      ['Mean', profd.number(spread.mean_ms, 3) + ' ms'], ['99th percentile', profd.number(spread.p99_ms, 3) + ' ms'], ['Most', profd.number(spread.max_ms, 3) + ' ms'],
      ['Standard deviation', profd.number(spread.stddev_ms, 3) + ' ms']]),
    spread.outliers.length ? profd.element('p', {}, 'Outliers: ', spread.outliers.slice(0, 50).flatMap((number) =>
      [profd.element('a', {href: profd.address('steps', {step: number})}, String(number)), ' ']),
      spread.outliers.length > 50 ? 'and ' + profd.number(spread.outliers.length - 50) + ' more; profctl analyze --json has all' : null) : null) : null,
    profd.panel('Parts over the steps', profd.lines('Parts of steps', known.map(([field, name]) =>
      ({name: name, x: steps.map((each) => each.step), y: steps.map((each) => each[field])})), 'step', 'ms')),
    profd.panel('All steps', profd.table(columns, steps, {link: (each) => profd.address('steps', {step: each.step}), file: 'steps'})));
};
