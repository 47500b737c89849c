// Queues: how deep they are and were while this page is open, their items by state, and one item.
import { get, Refusal, serves } from '../api.ts';
import { button, command, empty, h, name, pill, put, quote, renew, svg } from '../dom.ts';
import type { Live } from '../live.ts';
import type { MakeView } from '../main.ts';
import { ago, rough } from '../time.ts';
import { itemKind } from '../words.ts';
import { itemLink, type Item } from './item.ts';
import { unserved } from './unserved.ts';

interface Queue {
  queue: string;
  oldest_at_ms?: number | null;
  oldest_ms?: number | null;
  limits?: Record<string, unknown>;
  [further: string]: unknown;
}
const STATES = ['waiting', 'claimed', 'parked', 'failed', 'done'];
// Samples outlive the view: [time, depth], one each few seconds while the page is open.
const samples = new Map<string, [number, number][]>();
const MOST_SAMPLES = 600;
let shown = false;

const depth = (queue: Queue): number => Number(queue['waiting'] ?? 0) + Number(queue['claimed'] ?? 0);

function sample(queues: Queue[]): void {
  for (const one of queues) {
    const line = samples.get(one.queue) ?? [];
    line.push([Date.now(), depth(one)]);
    if (line.length > MOST_SAMPLES) line.shift();
    samples.set(one.queue, line);
  }
}

// While another view is shown, the depth is looked at now and then, so that the line has no gap.
let meanwhile = 0;
function sampleMeanwhile(live: Live): void {
  clearInterval(meanwhile);
  meanwhile = window.setInterval(() => {
    if (live.ended || shown) return clearInterval(meanwhile);
    void get<{ queues: Queue[] }>('/v1/queues').then((got) => sample(got.queues), () => {});
  }, 10_000);
}

function sparkline(queue: string): HTMLElement {
  const line = samples.get(queue) ?? [];
  const picture = svg('svg', { class: 'spark', viewBox: '0 0 300 48', preserveAspectRatio: 'none', role: 'img', 'aria-label': `Depth over the last ${rough(Date.now() - (line[0]?.[0] ?? Date.now()))}: now ${line.at(-1)?.[1] ?? 0}` });
  if (line.length > 1) {
    const from = line[0]![0];
    const span = Math.max(1, line.at(-1)![0] - from);
    const most = Math.max(1, ...line.map(([, n]) => n));
    const points = line.map(([at, n]) => `${(((at - from) / span) * 300).toFixed(1)},${(46 - (n / most) * 42).toFixed(1)}`);
    picture.append(svg('polygon', { class: 'under', points: `0,48 ${points.join(' ')} 300,48` }), svg('polyline', { class: 'over', points: points.join(' '), 'vector-effect': 'non-scaling-stroke' }));
  }
  return picture as unknown as HTMLElement;
}

export const queuesView: MakeView = (live, words) => {
  const cards = h('div', { class: 'queues' });
  const items = h('div', {});
  const root = h('div', { class: 'view' }, h('div', { class: 'title' }, h('h1', {}, 'Queues')), cards, items);
  let queue = words;
  let state = '';
  let over = false;
  let timer = 0;

  const card = (one: Queue): HTMLElement => {
    const counts = STATES.filter((word) => one[word] !== undefined).map((word) => h('span', {}, h('i', { class: `swatch ${itemKind(word)}` }), `${word} ${String(one[word])}`));
    const oldest = one.oldest_at_ms ?? (typeof one.oldest_ms === 'number' ? Date.now() - one.oldest_ms : null);
    const out = h(
      'button',
      { type: 'button', class: 'card queue', 'aria-pressed': String(one.queue === queue) },
      h('span', { class: 'title' }, h('b', {}, name(one.queue)), h('span', { class: 'depth number' }, String(depth(one)))),
      sparkline(one.queue),
      h('span', { class: 'legend' }, ...counts),
      h('span', { class: 'dim' }, oldest === null ? 'nothing waits' : 'oldest waits since ', oldest === null ? '' : ago(oldest)),
    );
    out.addEventListener('click', () => {
      queue = queue === one.queue ? '' : one.queue;
      state = '';
      void read();
    });
    return out;
  };

  const showItems = async (): Promise<void> => {
    if (queue === '') return put(items);
    const got = await get<{ items: Item[] }>('/v1/queues/items', { queue, state, limit: 200 });
    if (over) return;
    const tabs = ['', 'waiting', 'claimed', 'parked', 'failed', 'done'].map((word) => {
      const one = button(word || 'all', () => {
        state = word;
        void read();
      }, 'chip');
      one.setAttribute('aria-pressed', String(word === state));
      return one;
    });
    const rows = got.items.map((item) =>
      h(
        'tr',
        {},
        h('td', {}, itemLink(item.id)),
        h('td', {}, pill(item.state, itemKind(item.state))),
        h('td', { class: 'number' }, `${item.attempt}/${String(item.limits?.['max_attempts'] ?? '?')}`),
        h('td', { class: 'number' }, String(item.epoch)),
        h('td', {}, item.owner ? name(item.owner) : ''),
        h('td', {}, item.progress ? name(item.progress) : '', ' ', item.progress_at_ms ? ago(item.progress_at_ms) : ''),
        h('td', {}, ago(item.put_at_ms)),
        h('td', {}, item.why ? name(item.why, 'whole') : ''),
      ),
    );
    renew(
      items,
      h('div', { class: 'title' }, h('h2', {}, 'Items of ', name(queue, 'whole')), h('div', { class: 'chips' }, ...tabs)),
      rows.length === 0
        ? empty('No such item', 'Put one, and a worker takes it:', command(`stint queue put ${quote(queue)} 'hello'`), command(`stint work ${quote(queue)} -- cat`))
        : h('div', { class: 'scroll card', tabindex: 0, role: 'region', 'aria-label': 'Items' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Item', 'State', 'Attempt', 'Epoch', 'Owner', 'Progress', 'Put', 'Why'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))),
    );
  };

  const read = async (): Promise<void> => {
    clearTimeout(timer);
    try {
      if (!(await serves('/v1/queues'))) throw new Refusal(404, 'invalid', '');
      const got = await get<{ queues: Queue[] }>('/v1/queues');
      if (over) return;
      sample(got.queues);
      if (queue === '' && got.queues.length === 1) queue = got.queues[0]!.queue;
      if (got.queues.length === 0) put(cards, empty('No queue yet', 'A queue hands each piece of work to one worker at a time:', command("stint queue put mail 'hello' --create"), command('stint work mail -- cat')));
      else renew(cards, ...got.queues.map(card));
      await showItems();
    } catch (error) {
      if (over) return;
      put(items);
      put(cards, unserved(error, 'queues', 'stint queue ls'));
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) return;
    }
    timer = window.setTimeout(() => void read(), 2000);
  };
  put(cards, h('p', { class: 'dim loading' }, 'Reading the queues …'));
  shown = true;
  void read();
  return {
    title: 'Queues',
    body: root,
    end: () => {
      over = true;
      shown = false;
      clearTimeout(timer);
      if (samples.size > 0) sampleMeanwhile(live);
    },
  };
};
