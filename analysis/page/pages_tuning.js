// What the vendor's tuning tool wrote: tasks, operators, subgraphs, and contradictions in its files.
'use strict';
var profd = window.profd || (window.profd = {});

profd.tuningGain = (row) => row.gain_percent === null ? '-' : profd.number(row.gain_percent, 2);

// Of models and subgraphs it is cut, as the tool writes it.
profd.tuningCut = (row) => row.gain_percent === null ? '-' : profd.number(Math.trunc(row.gain_percent * 100 + Math.sign(row.gain_percent) * 1e-6) / 100, 2);

profd.tuningRows = function (name, unit, first, rows, file) {
  const columns = first.concat([{name: 'Before', unit: unit, value: (row) => row['before_' + unit], number: true},
    {name: 'After', unit: unit, value: (row) => row['after_' + unit], number: true},
    {name: 'Gain', unit: '%', value: (row) => row.gain_percent, text: unit === 'ms' ? profd.tuningCut : profd.tuningGain, number: true}, {name: 'Bank', value: (row) => row.update}]);
  return rows.length ? profd.panel(name, profd.table(columns, rows, {search: (row) => row.name || row.key, file: file})) : null;
};

profd.tuningPage = function () {
  const tuning = profd.data && profd.data.tuning;
  if (!tuning) return profd.none('Tuning');
  const tasks = tuning.files.flatMap((file) => file.tasks);
  const problems = tuning.problems.concat(tuning.files.flatMap((file) => file.problems.map((each) =>
    ({where: file.path + (each.where ? ', ' + each.where : ''), what: each.what}))));
  const count = (name) => (task) => task.summary && task.summary[name];
  const columns = [{name: 'Task', value: (task) => task.name || task.key}, {name: 'State', value: (task) => task.state},
    {name: 'Time', unit: 's', value: (task) => task.seconds, number: true},
    {name: 'Model before', unit: 'ms', value: (task) => task.model && task.model.before_ms, number: true},
    {name: 'Model after', unit: 'ms', value: (task) => task.model && task.model.after_ms, number: true},
    {name: 'Model gain', unit: '%', value: (task) => task.model && task.model.gain_percent, text: (task) => task.model ? profd.tuningCut(task.model) : '-', number: true}].concat(
    ['add', 'hit', 'reserved', 'unsatisfied', 'update', 'total'].map((name) => ({name: name, value: count(name), number: true})));
  return profd.element('div', {},
    profd.panel('Tasks', profd.table(columns, tasks, {search: (task) => task.name || task.key, file: 'tuning_tasks'})),
    profd.tuningRows('Operators', 'us', [{name: 'Operator', value: (row) => row.name}, {name: 'Type', value: (row) => row.types.join(', ')},
      {name: 'Mode', value: (row) => row.mode}], tasks.flatMap((task) => task.operators), 'tuned_operators'),
    profd.tuningRows('Subgraphs', 'ms', [{name: 'Key', value: (row) => row.key}], tasks.flatMap((task) => task.subgraphs), 'tuned_subgraphs'),
    tasks.some((task) => task.failed_operators.length) ? profd.panel('Operators that failed',
      profd.element('ul', {}, tasks.flatMap((task) => task.failed_operators).map((name) => profd.element('li', {}, name)))) : null,
    problems.length ? profd.panel('Problems in the files',
      profd.element('ul', {}, problems.map((each) => profd.element('li', {}, (each.where ? each.where + ': ' : '') + each.what)))) : null);
};
