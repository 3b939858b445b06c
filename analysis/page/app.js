// Which page is shown: `#/page?rank=0&step=7`; every address can be kept and sent.
'use strict';
var profd = window.profd || (window.profd = {});

profd.routes = [
  {name: 'runs', title: 'Runs', served: true, make: () => profd.runsPage()},
  {name: 'overview', title: 'Overview', make: (rank, query) => profd.overviewPage(rank, query)},
  {name: 'advice', title: 'Advice', make: (rank, query) => profd.advicePage(query)},
  {name: 'cluster', title: 'Cluster', wanted: () => profd.data.cluster, make: () => profd.clusterPage()},
  {name: 'steps', title: 'Step trace', make: (rank, query) => profd.stepsPage(rank, query)},
  {name: 'operators', title: 'Operators', make: (rank, query) => profd.operatorsPage(rank, query)},
  {name: 'pipeline', title: 'Data pipeline', make: (rank, query) => profd.pipelinePage(rank, query)},
  {name: 'communication', title: 'Communication', make: (rank, query) => profd.communicationPage(rank, query)},
  {name: 'memory', title: 'Memory', make: (rank, query) => profd.memoryPage(rank, query)},
  {name: 'hardware', title: 'Hardware', make: (rank, query) => profd.hardwarePage(rank, query)},
  {name: 'marks', title: 'Marks', make: (rank, query) => profd.marksPage(rank)},
  {name: 'timeline', title: 'Timeline', make: (rank, query) => profd.timelinePage(rank, query)},
  {name: 'tuning', title: 'Tuning', wanted: () => profd.data.tuning, make: () => profd.tuningPage()},
  {name: 'compare', title: 'Compare', make: (rank, query) => profd.comparePage(rank, query)},
];

profd.query = () => new URLSearchParams(location.hash.split('?')[1] || '');
// Of the page that the address names; where it names none, what the file was written for.
profd.pageName = () => location.hash.replace(/^#\//, '').split('?')[0] || (profd.data ? profd.data.first_page || 'overview' : 'runs');
// The address of a page, with what is chosen now and these besides.
profd.address = function (page, more) {
  const query = new URLSearchParams();
  for (const name of ['run', 'baseline', 'rank']) if (profd.query().get(name)) query.set(name, profd.query().get(name));
  for (const [name, value] of Object.entries(more || {})) query.set(name, value);
  const text = query.toString();
  return '#/' + page + (text ? '?' + text : '');
};

// A device of which no rank is known has its node's name, too.
profd.rankName = (rank) => rank.rank !== null ? String(rank.rank) : [rank.device !== null ? 'device ' + rank.device : 'unknown', rank.host].filter((part) => part).join(', ');

profd.unpack = async function (base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
};

profd.ask = async function (path) {
  const answer = await fetch(path);
  if (answer.ok) return answer.json();
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error.message;
  } catch (error) {
    // It is plain text.
  }
  throw new Error(message || answer.statusText);
};

// What the address asks for, unless it is there already.
profd.load = async function () {
  const script = document.getElementById('profd-data');
  if (script) {
    if (!profd.data) profd.data = await profd.unpack(script.textContent);
    return;
  }
  profd.served = true;
  const wanted = profd.query().get('run');
  const baseline = profd.query().get('baseline');
  if (!profd.runs || wanted === null) {
    const answer = await profd.ask('api/runs');
    profd.runs = answer.runs;
    profd.folders = answer.folders;
  }
  if (wanted === null) {
    profd.data = profd.loaded = null;
    return;
  }
  const path = 'api/run/' + encodeURIComponent(wanted) + (baseline ? '?baseline=' + encodeURIComponent(baseline) : '');
  if (path === profd.loaded) return;
  document.getElementById('content').replaceChildren(profd.element('p', {}, 'Reading the run ...'));
  profd.data = await profd.ask(path);
  profd.loaded = path;
};

profd.showFrame = function (route) {
  document.getElementById('nav').replaceChildren(...profd.routes.filter((each) => each.served ? profd.served : profd.data && (!each.wanted || each.wanted())).map((each) =>
    profd.element('a', {href: each.served ? '#/' + each.name : profd.address(each.name), 'aria-current': each === route ? 'page' : null}, each.title)));
  document.getElementById('rank-label').hidden = true;
  document.getElementById('run-name').textContent = profd.data ? profd.data.run.name : '';
  document.title = (profd.data ? profd.data.run.name + ' - ' : '') + 'profd';
  if (!profd.data) return;
  const label = document.getElementById('rank-label');
  label.hidden = profd.data.ranks.length < 2;
  const chosen = profd.query().get('rank') || '0';
  document.getElementById('rank').replaceChildren(...profd.data.ranks.map((rank, i) =>
    profd.element('option', {value: i, selected: String(i) === chosen}, profd.rankName(rank))));
};

profd.show = async function () {
  const content = document.getElementById('content');
  for (const chart of profd.charts.splice(0)) chart.destroy();
  if (profd.leave) profd.leave();
  profd.leave = null;
  try {
    await profd.load();
  } catch (error) {
    profd.data = profd.loaded = null;
    profd.showFrame(null);
    content.replaceChildren(profd.element('h2', {}, 'The data cannot be read'), profd.element('p', {}, String(error.message || error)));
    return;
  }
  let route = profd.routes.find((each) => each.name === profd.pageName()) || profd.routes[1];
  if (!profd.data) route = profd.routes[0];
  profd.showFrame(route);
  const index = Math.min(Number(profd.query().get('rank') || 0), profd.data ? profd.data.ranks.length - 1 : 0);
  const rank = profd.data ? profd.data.ranks[index] || null : null;
  profd.brief = rank && rank.brief;
  const made = route.make(rank, profd.query());
  content.replaceChildren(profd.element('h2', {}, route.title), made);
  if (profd.entered) profd.entered();
  profd.entered = null;
};

window.addEventListener('hashchange', async () => {
  // A select or a number input changes the address with each key press: it keeps the focus.
  const active = document.activeElement;
  const control = active && active.matches('select, input') ? active.id : '';
  window.scrollTo(0, 0);
  document.getElementById(control || 'content').focus({preventScroll: true});
  await profd.show();
  const again = control && document.getElementById(control);
  if (again) again.focus({preventScroll: true});
});
// What is drawn, in the colours of the page as they are now.
profd.redraw = function () {
  profd.setChartColors();
  for (const chart of profd.charts) {
    // Scales keep the colours that they were made with.
    for (const scale of Object.values(chart.config.options.scales || {})) {
      scale.ticks.color = scale.title.color = Chart.defaults.color;
      scale.grid.color = Chart.defaults.borderColor;
    }
    chart.update('none');
  }
  if (document.getElementById('timeline-box')) profd.timeline.draw();
};

// Paper is light.
window.addEventListener('beforeprint', () => {
  profd.screenTheme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  profd.redraw();
});
window.addEventListener('afterprint', () => {
  if (profd.screenTheme) document.documentElement.dataset.theme = profd.screenTheme;
  else delete document.documentElement.dataset.theme;
  profd.redraw();
});
window.addEventListener('DOMContentLoaded', () => {
  // Its address is not that of a page.
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('content').focus();
  });
  document.getElementById('rank').addEventListener('change', (event) => {
    location.hash = profd.address(profd.pageName(), {rank: event.target.value});
  });
  document.getElementById('theme').addEventListener('click', () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = dark ? 'light' : 'dark';
    profd.show();
  });
  profd.show();
});
