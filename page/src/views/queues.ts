// Queues: how deep they are and were while this page is open, their items by state, and one item.
import { get, Refusal, serves } from '../api.ts';
import { button, command, empty, h, name, pill, put, svg, visible } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { ago, duration, rough } from '../time.ts';
import { itemKind } from '../words.ts';
import { unserved } from './unserved.ts';

interface Queue {
  queue: string;
  oldest_at_ms?: number | null;
  oldest_ms?: number | null;
  limits?: Record<string, unknown>;
  [further: string]: unknown;
}
interface Item {
  id: string;
  queue: string;
  state: string;
  epoch: number;
  live: boolean;
  owner: string | null;
  reason: string | null;
  attempt: number;
  priority: number;
  labels: string[];
  unique: string | null;
  payload?: string | null;
  payload_base64?: string;
  payload_bytes: number;
  checkpoint?: string | null;
  checkpoint_base64?: string;
  result?: string | null;
  result_base64?: string;
  progress: string | null;
  progress_at_ms: number | null;
  why: string | null;
  by: string | null;
  parent: string | null;
  put_by: string | null;
  put_at_ms: number;
  not_before_ms: number | null;
  claimed_at_ms: number | null;
  ended_at_ms: number | null;
  ttl_ms: number;
  remaining_ms: number | null;
  limits: Record<string, unknown>;
  [further: string]: unknown;
}

const STATES = ['waiting', 'claimed', 'parked', 'failed', 'done'];
// Samples outlive the view: [time, depth], one each few seconds while the page is open.
const samples = new Map<string, [number, number][]>();
const MOST_SAMPLES = 600;

const depth = (queue: Queue): number => Number(queue['waiting'] ?? 0) + Number(queue['claimed'] ?? 0);

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

const itemLink = (id: string): HTMLElement => h('a', { class: 'plain mono', href: `#/item/${encodeURIComponent(id)}` }, name(id));

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
    put(
      items,
      h('div', { class: 'title' }, h('h2', {}, 'Items of ', name(queue, 'whole')), h('div', { class: 'chips' }, ...tabs)),
      rows.length === 0
        ? empty('No such item', 'Put one, and a worker takes it:', command(`stint queue put ${queue} 'hello'`), command(`stint work ${queue} -- cat`))
        : h('div', { class: 'scroll card', tabindex: 0, role: 'region', 'aria-label': 'Items' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Item', 'State', 'Attempt', 'Epoch', 'Owner', 'Progress', 'Put', 'Why'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))),
    );
  };

  const read = async (): Promise<void> => {
    clearTimeout(timer);
    try {
      if (!(await serves('/v1/queues'))) throw new Refusal(404, 'invalid', '');
      const got = await get<{ queues: Queue[] }>('/v1/queues');
      if (over) return;
      for (const one of got.queues) {
        const line = samples.get(one.queue) ?? [];
        line.push([Date.now(), depth(one)]);
        if (line.length > MOST_SAMPLES) line.shift();
        samples.set(one.queue, line);
      }
      if (queue === '' && got.queues.length === 1) queue = got.queues[0]!.queue;
      if (got.queues.length === 0) put(cards, empty('No queue yet', 'A queue hands each piece of work to one worker at a time:', command("stint queue put mail 'hello' --create"), command('stint work mail -- cat')));
      else put(cards, ...got.queues.map(card));
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
  void live;
  void read();
  return {
    title: 'Queues',
    body: root,
    end: () => {
      over = true;
      clearTimeout(timer);
    },
  };
};

export const itemView: MakeView = (live, id) => {
  const root = h('div', { class: 'view' });
  let over = false;
  let timer = 0;
  const fact = (label: string, ...value: (Node | string)[]) => h('div', {}, h('dt', {}, label), h('dd', {}, ...value));
  const content = (title: string, text: string | null | undefined, base64: string | undefined): HTMLElement | null => {
    if (base64 !== undefined) return h('section', { class: 'card' }, h('h2', {}, title), h('p', { class: 'dim' }, 'Not text; base64:'), h('pre', {}, base64.slice(0, 4000)));
    if (text === null || text === undefined) return null;
    return h('section', { class: 'card' }, h('h2', {}, title), h('pre', {}, text.split('\n').map(visible).join('\n')));
  };
  const read = async (): Promise<void> => {
    try {
      if (!(await serves('/v1/queues/item'))) throw new Refusal(404, 'invalid', '');
      const item = await get<Item>('/v1/queues/item', { id });
      if (over) return;
      const events = live.events.filter((event) => event['item'] === id || event['id'] === id);
      put(
        root,
        h('p', { class: 'crumbs' }, h('a', { href: '#/queues' }, 'Queues'), ' / ', h('a', { href: `#/queues/${encodeURIComponent(item.queue)}` }, name(item.queue)), ' / '),
        h('div', { class: 'title' }, h('h1', { class: 'mono' }, name(item.id, 'whole')), pill(item.state, itemKind(item.state))),
        h(
          'section',
          { class: 'card now' },
          h(
            'dl',
            { class: 'facts' },
            fact('Epoch', h('span', { class: 'number' }, String(item.epoch)), item.reason ? h('span', { class: 'dim' }, ` ${item.reason.replaceAll('_', ' ')}`) : ''),
            fact('Attempt', `${item.attempt} of ${String(item.limits['max_attempts'] ?? '?')}`),
            fact('Owner', item.owner ? name(item.owner) : '–'),
            fact('Left', item.live && item.remaining_ms !== null ? duration(item.remaining_ms) : '–'),
            fact('Progress', item.progress ? name(item.progress, 'whole') : '–', ' ', item.progress_at_ms ? ago(item.progress_at_ms) : ''),
            fact('Put', ago(item.put_at_ms), item.put_by ? ' by ' : '', item.put_by ? name(item.put_by) : ''),
            fact('Claimed', ago(item.claimed_at_ms)),
            fact('Ended', ago(item.ended_at_ms)),
            fact('Priority', String(item.priority)),
            ...(item.labels.length ? [fact('Labels', item.labels.map(visible).join(', '))] : []),
            ...(item.unique ? [fact('Unique', name(item.unique))] : []),
            ...(item.parent ? [fact('Follows', itemLink(item.parent))] : []),
            ...(item.why ? [fact('Why', name(item.why, 'whole'), item.by ? h('span', { class: 'dim' }, ' by ', name(item.by)) : '')] : []),
          ),
        ),
        content('Checkpoint', item.checkpoint, item.checkpoint_base64),
        content('Payload', item.payload, item.payload_base64),
        content('Result', item.result, item.result_base64),
        events.length === 0
          ? null
          : h(
              'section',
              { class: 'card' },
              h('h2', {}, 'Epochs'),
              h('table', {}, h('tbody', {}, ...events.toReversed().map((event) => h('tr', {}, h('td', {}, ago(event.at_ms)), h('td', {}, event.kind.replaceAll('_', ' ')), h('td', { class: 'number' }, String(event.token ?? event['epoch'] ?? '')), h('td', {}, event.owner ? name(event.owner) : ''), h('td', {}, event['why'] ? name(String(event['why']), 'whole') : '')))),
            ),
          ),
      );
    } catch (error) {
      if (over) return;
      put(root, h('p', { class: 'crumbs' }, h('a', { href: '#/queues' }, 'Queues'), ' / '), unserved(error, 'this item', `stint queue show ${id}`));
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) return;
    }
    timer = window.setTimeout(() => void read(), 2000);
  };
  void read();
  return {
    title: visible(id),
    body: root,
    end: () => {
      over = true;
      clearTimeout(timer);
    },
  };
};
