// The ranks of a run beside each other: steps, stages, who waits for whom, links, experts.
'use strict';
var profd = window.profd || (window.profd = {});

profd.clusterPage = function () {
  const cluster = profd.data && profd.data.cluster;
  if (!cluster) return profd.none('Several ranks', 'Give the directories of all ranks, or a folder of them.');
  const column = (name, field, unit) => ({name: name, unit: unit, value: (row) => row[field], number: typeof unit === 'string'});
  const ms = (name, field) => column(name, field, 'ms');
  // Of operations that ranks met in; of none nothing is known.
  const met = (name, field) => ({name: name, value: (row) => row.operations ? row[field] : null, number: true});
  const count = (name, field) => ({name: name, value: (row) => row[field], number: true});
  const known = (rows, columns) => columns.filter((each) => rows.some((row) => each.value(row) !== null && each.value(row) !== undefined));
  // A panel with a table of those columns that have a value; none of an empty list.
  const list = (title, rows, columns, file, above) => rows.length === 0 ? null : profd.panel(title, above || null,
    profd.table(known(rows, columns), rows, {search: (row) => Object.values(row).join(' '), size: 15, file: file}));
  const rank = [count('Rank', 'rank'), column('Host', 'host')];
  const ranks = cluster.rank_times;
  const parts = [['computing_ms', 'Computing'], ['uncovered_communication_ms', 'Communication, not overlapped'], ['free_ms', 'Free']];
  const chart = profd.lines('Mean step by rank', parts.map(([field, name]) => ({name: name, x: ranks.map((row) => row.rank), y: ranks.map((row) => row[field])})), 'rank', 'ms');
  const steps = cluster.steps.map((step) => Object.assign({step: step.step, ranks: step.ranks}, ...parts.map(([field]) => ({
    [field + '_min']: step[field].min, [field + '_mean']: step[field].mean, [field + '_max']: step[field].max, [field + '_rank']: step[field].max_rank}))));
  const stages = cluster.stages.map((stage) => Object.assign({stage: stage.stage, ranks: stage.ranks.length, list: stage.ranks.join(', ')}, ...parts.map(([field]) => ({
    [field + '_mean']: stage[field] && stage[field].mean, [field + '_max']: stage[field] && stage[field].max}))));
  return profd.element('div', {},
    list('Ranks, a step on average', ranks, rank.concat([count('Stage', 'stage'), count('DP', 'dp'), count('PP', 'pp'), count('TP', 'tp')],
      parts.map(([field, name]) => ms(name, field)), [ms('Waits for others', 'waits_ms'), ms('Others wait for it', 'others_wait_ms'), met('Comes last to', 'last_of'),
        met('Outlier of', 'votes'), met('Operations', 'operations')]), 'ranks', chart),
    list('Steps over all ranks', steps, [count('Step', 'step'), count('Ranks', 'ranks')].concat(parts.flatMap(([field, name]) =>
      [ms(name + ', least', field + '_min'), ms('mean', field + '_mean'), ms('most', field + '_max'), count('of rank', field + '_rank')])), 'cluster_steps'),
    list('Stages of the pipeline, a step on average', stages, [count('Stage', 'stage'), count('Ranks', 'ranks')].concat(parts.flatMap(([field, name]) =>
      [ms(name + ', mean', field + '_mean'), ms('most', field + '_max')]), [column('Ranks', 'list')]), 'stages'),
    list('Who waits for whom', cluster.waits, [count('Step', 'step')].concat(rank, [count('Waits for rank', 'for_rank'), column('on host', 'for_host'), ms('Time', 'wait_ms'),
      count('Operations', 'operations')]), 'waits'),
    list('Operations that differ from others of their type and size', cluster.slow_operations, [column('Operation', 'operation'), column('Group', 'group'), count('Step', 'step'),
      count('Ranks', 'ranks'), column('Size', 'size_mb', 'MB'), ms('Shortest', 'transit_ms'), ms('Mean', 'mean_ms'), count('Deviations', 'score')], 'slow_operations'),
    list('Links between ranks', cluster.pairs, [count('From', 'src'), column('Host', 'src_host'), count('To', 'dst'), column('Host', 'dst_host'), column('Transport', 'transport'),
      column('Size', 'size_mb', 'MB'), ms('Time', 'time_ms'), column('Bandwidth', 'bandwidth_gb_s', 'GB/s'), column('Mean', 'mean_gb_s', 'GB/s'), count('Deviations', 'score')], 'pairs'),
    list('Load of experts, a step', cluster.experts, [column('Group', 'group')].concat(rank, [column('Size', 'size_mb', 'MB'), ms('Transit', 'transit_ms'),
      {name: 'Beside the mean', value: (row) => row.beside_mean, text: (row) => profd.percent(row.beside_mean), number: true}]), 'experts'),
    list('Groups', cluster.groups.map((group) => Object.assign({}, group, {list: group.ranks.join(', ')})), [column('Group', 'group'), column('Name', 'name'), column('Type', 'type'),
      column('Ranks', 'list'), count('Operations', 'operations')], 'groups'));
};
