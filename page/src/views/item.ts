// One item of a queue: what it carries, who had it and how that ended, and what the next claimant
// receives.
import { get, Refusal, serves, type StintEvent } from '../api.ts';
import { h, name, pill, put, quote, renew, say, visible } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { ago, duration, exact } from '../time.ts';
import { itemKind, type Kind } from '../words.ts';
import { unserved } from './unserved.ts';

export interface Item {
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

export const itemLink = (id: string): HTMLElement => h('a', { class: 'plain mono', href: `#/item/${encodeURIComponent(id)}` }, name(id));

const ENDS: Record<string, Kind> = { item_completed: 'good', item_released: 'plain', item_put_off: 'low', item_failed: 'bad', item_parked: 'low', item_requeued: 'bad', item_reassigned: 'blue', item_cancelled: 'violet', item_dropped: 'violet' };
const SHOWN = 300;
const word = (kind: string): string => kind.replace(/^item_/, '').replaceAll('_', ' ');

// One line a claim: its epoch, whose it was, and the event that ended it.
function attemptsCard(events: StintEvent[], item: Item): HTMLElement | null {
  const rows = events.flatMap((claimed, i) => {
    if (claimed.kind !== 'item_claimed') return [];
    const end = events.slice(i + 1).find((event) => event.kind in ENDS || event.kind === 'item_claimed');
    const stands = end === undefined && item.live;
    const how = stands ? pill('stands', 'good') : end === undefined || end.kind === 'item_claimed' ? pill('ran out', 'bad') : pill(word(end.kind), ENDS[end.kind] ?? 'plain');
    const cause = end?.['why'] ?? end?.['cause'];
    return [
      h(
        'tr',
        {},
        h('td', { class: 'number' }, String(claimed.token ?? '')),
        h('td', { class: 'number' }, String(claimed['attempt'] ?? '')),
        h('td', {}, claimed.owner ? name(claimed.owner) : ''),
        h('td', {}, String(claimed['reason'] ?? '').replaceAll('_', ' ')),
        h('td', {}, ago(claimed.at_ms)),
        h('td', { class: stands ? 'number lasts' : 'number', 'data-since': stands ? claimed.at_ms : undefined, title: end ? `until ${exact(end.at_ms)}` : '' }, duration((end?.at_ms ?? (stands ? Date.now() : claimed.at_ms)) - claimed.at_ms)),
        h('td', {}, how),
        h('td', {}, cause ? name(String(cause), 'whole') : ''),
      ),
    ];
  });
  if (rows.length === 0) return null;
  const columns = ['Epoch', 'Attempt', 'Owner', 'Came by', 'Claimed', 'Lasted', 'Ended', 'Why'];
  return h('section', { class: 'card' }, h('h2', {}, 'Attempts'), h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Attempts' }, h('table', {}, h('thead', {}, h('tr', {}, ...columns.map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows.toReversed()))));
}

function toldCard(events: StintEvent[]): HTMLElement | null {
  if (events.length === 0) return null;
  const row = (event: StintEvent): HTMLElement =>
    h(
      'tr',
      {},
      h('td', {}, ago(event.at_ms)),
      h('td', {}, event.kind === 'item_refused_stale' ? pill('refused stale', 'bad') : word(event.kind)),
      h('td', { class: 'number' }, String(event.token ?? '')),
      // A refusal names who has the item now, which is not who was refused.
      h('td', {}, event.owner && event.kind !== 'item_refused_stale' ? name(event.owner) : ''),
      h('td', {}, event['by'] ? name(String(event['by'])) : '', event['why'] ? h('span', { class: 'dim' }, ' ', name(String(event['why']), 'whole')) : ''),
    );
  return h('section', { class: 'card' }, h('h2', {}, 'Epochs and orders'), h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Epochs and orders' }, h('table', {}, h('thead', {}, h('tr', {}, ...['When', 'What', 'Epoch', 'Owner', 'By'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...events.toReversed().map(row)))));
}

export const itemView: MakeView = (live, id) => {
  const root = h('div', { class: 'view' });
  let over = false;
  let shown = '';
  let left = h('span', {});
  let timer = 0;
  // The ledger of this item: what came before the page was opened is read once, for the server walks
  // all that it keeps; what comes after is told by the stream.
  let events: StintEvent[] = [];
  let begun = false;
  const learn = (more: StintEvent[]): void => {
    const all = new Map([...events, ...more].filter((event) => event.resource === id).map((event) => [event.number, event]));
    events = [...all.values()].sort((a, b) => (a.number < b.number ? -1 : 1)).slice(-SHOWN);
  };
  const again = (ms: number): void => {
    clearTimeout(timer);
    if (!over) timer = window.setTimeout(() => void read(), ms);
  };
  const off = live.onEvent((event) => {
    if (event.resource !== id) return;
    learn([event]);
    if (begun) again(50);
  });
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
      if (!begun) {
        const told = await get<{ events: StintEvent[] }>('/v1/events', { prefix: id, newest: 'true', limit: SHOWN }).catch(() => null);
        begun = told !== null;
        learn(told?.events ?? live.events);
      }
      if (over) return;
      const key = JSON.stringify([{ ...item, remaining_ms: 0 }, events.at(-1)?.number]);
      if (key === shown) {
        if (item.live) say(left, duration(item.remaining_ms ?? 0));
        for (const one of root.querySelectorAll<HTMLElement>('.lasts')) say(one, duration(Date.now() - Number(one.dataset['since'])));
        again(2000);
        return;
      }
      shown = key;
      left = h('span', {}, item.live && item.remaining_ms !== null ? duration(item.remaining_ms) : '–');
      renew(
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
            fact('Left', left),
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
        content(`Checkpoint of epoch ${item.epoch}, or before`, item.checkpoint, item.checkpoint_base64),
        content('Payload', item.payload, item.payload_base64),
        content('Result', item.result, item.result_base64),
        attemptsCard(events, item),
        toldCard(events),
      );
    } catch (error) {
      if (over) return;
      put(root, h('p', { class: 'crumbs' }, h('a', { href: '#/queues' }, 'Queues'), ' / '), unserved(error, 'this item', `stint queue show ${quote(id)}`));
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) return;
    }
    again(2000);
  };
  void read();
  return {
    title: visible(id),
    body: root,
    end: () => {
      over = true;
      off();
      clearTimeout(timer);
    },
  };
};
