// One lease: who has it, who had it and how that ended, how long runs take, and the two orders.
import { get, Refusal, serves, type Lease, type Past, type StintEvent } from '../api.ts';
import { ask } from '../dialog.ts';
import { button, command, empty, h, name, pill, put, quote, renew, say, visible } from '../dom.ts';
import { stuckFor } from '../live.ts';
import type { MakeView } from '../main.ts';
import { ago, duration, exact, rough } from '../time.ts';
import { cameBy, endedKind } from '../words.ts';
import { histogram, type Tune } from './histogram.ts';
import { timeline } from './timeline.ts';

export const leaseView: MakeView = (live, resource) => {
  const state = h('span', {});
  const holder = h('div', { class: 'holder' });
  const fill = h('i', { class: 'fill' });
  const left = h('span', { class: 'left' });
  const bar = h('div', { class: 'big-bar' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, fill), left);
  const facts = h('dl', { class: 'facts' });
  const orders = h('div', { class: 'orders' });
  const waiting = h('div', { class: 'asked' });
  const turned = h('div', { class: 'asked' });
  const drawing = h('div', { class: 'drawing' });
  const runs = h('div', { class: 'drawing' });
  const past = h('tbody', {});
  const trouble = h('p', { class: 'told', role: 'alert' });
  const card = (title: string, ...inside: (HTMLElement | null)[]) => h('section', { class: 'card' }, h('h2', {}, title), ...inside);
  const root = h(
    'div',
    { class: 'view lease-view' },
    h('p', { class: 'crumbs' }, h('a', { href: '#/leases' }, 'Leases'), ' / '),
    h('div', { class: 'title' }, h('h1', {}, name(resource, 'whole')), state, orders),
    trouble,
    h('section', { class: 'card now' }, holder, bar, facts, waiting, turned),
    card('Who had it', drawing),
    card('How long runs take', runs),
    card(
      'History',
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'History' },
        h(
          'table',
          {},
          h('thead', {}, h('tr', {}, ...['Token', 'Owner', 'Began', 'Since', 'Lasted', 'Ended', 'Order'].map((text) => h('th', { scope: 'col' }, text)))),
          past,
        ),
      ),
    ),
  );

  let grants: Past[] = [];
  let events: StintEvent[] = [];
  let shown = '';
  let reading = false;
  let again = false;

  const order = (what: 'revoke' | 'transfer', lease: Lease): void => {
    ask({ what, lease, done: () => live.refresh(resource) });
  };

  const showOrders = (lease: Lease): void => {
    const may = live.may('operate');
    const key = `${lease.token} ${lease.state} ${may}`;
    if (orders.dataset['key'] === key) return;
    orders.dataset['key'] = key;
    const stands = lease.held || lease.state === 'reserved';
    const revoke = button('Revoke …', () => order('revoke', live.rows.get(resource)?.lease ?? lease), 'danger-line');
    const transfer = button('Transfer …', () => order('transfer', live.rows.get(resource)?.lease ?? lease));
    for (const one of [revoke, transfer]) {
      one.disabled = !may || !stands;
      one.title = !may ? 'Your key does not allow orders: it needs “operate”' : !stands ? 'Nobody holds it' : '';
    }
    put(orders, transfer, revoke);
  };

  const fact = (label: string, ...value: (Node | string)[]) => h('div', {}, h('dt', {}, label), h('dd', {}, ...value));

  const showNow = (): void => {
    const row = live.rows.get(resource);
    if (!row) return;
    const { lease } = row;
    const leftMs = row.until === 0 ? 0 : row.until - performance.now();
    const stuck = stuckFor(lease);
    const over = lease.held && lease.remaining_ms !== null && leftMs <= 0;
    const word = over ? 'expired' : stuck ? 'stuck' : lease.state;
    const kind = { held: 'good', stuck: 'low', expired: 'bad', reserved: 'blue', resting: 'blue', free: '' }[word] ?? '';
    if (state.dataset['word'] !== word) {
      state.dataset['word'] = word;
      put(state, pill(word, kind));
    }
    root.className = `view lease-view ${word}`;
    showOrders(lease);
    const share = leftMs <= 0 || lease.ttl_ms === 0 ? 0 : Math.min(1, leftMs / lease.ttl_ms);
    fill.style.transform = `scaleX(${share.toFixed(4)})`;
    fill.className = `fill ${share < 0.2 ? 'short' : share < 0.5 ? 'low' : ''}`;
    bar.hidden = lease.state === 'free';
    say(left, over ? 'expired' : lease.remaining_ms === null ? 'the store cannot tell when it runs out' : `${duration(leftMs)} of ${duration(lease.ttl_ms)} left`);
    const line = live.waiters.get(resource) ?? [];
    const key = JSON.stringify([lease.token, lease.state, lease.owner, lease.note, lease.progress, lease.progress_at_ms, lease.renewed_at_ms, line.length, stuck > 0]);
    if (key === shown) return;
    const moved = shown === '' || JSON.parse(shown)[0] !== lease.token || JSON.parse(shown)[1] !== lease.state;
    shown = key;
    put(
      holder,
      lease.owner === '' ? h('span', { class: 'dim' }, 'Nobody') : name(lease.owner, 'whole strong'),
      h('span', { class: 'dim' }, lease.held ? ' holds it with token ' : lease.state === 'reserved' ? ' may take it up, token ' : ' had it last, token '),
      h('span', { class: 'number strong' }, String(lease.token)),
    );
    put(
      facts,
      fact(lease.held ? 'Since' : 'Token given', ago(lease.acquired_at_ms)),
      fact('Renewed', ago(lease.renewed_at_ms)),
      fact('Progress', lease.progress === '' ? h('span', { class: 'dim' }, 'none reported') : name(lease.progress, 'whole'), ' ', ago(lease.progress_at_ms), stuck ? pill(` no progress for ${rough(stuck)} `, 'low') : ''),
      fact('Note', lease.note === '' ? h('span', { class: 'dim' }, '–') : name(lease.note, 'whole')),
      fact('Came by', lease.reason === null ? '–' : cameBy(lease.reason)),
      ...(lease.by ? [fact('Ordered by', name(lease.by))] : []),
      ...(lease.why ? [fact('Why', name(lease.why, 'whole'))] : []),
      fact('Generation', h('span', { class: 'mono dim' }, lease.generation.slice(0, 12))),
    );
    put(waiting, line.length === 0 ? null : h('p', {}, h('b', { title: 'Held open at this server. Runs that wait by watching, on the store itself or at another server, are not counted: see who asked, below' }, `${line.length} waiting: `), ...line.slice(0, 8).flatMap((one, i) => [i ? ', ' : '', name(one.owner), h('span', { class: 'dim' }, ` ${rough(one.waiting_ms)}`)])));
    if (moved) void read();
  };

  // Who asked for it since the present holder has it, and went away.
  const showTurnedAway = (): void => {
    const since = live.rows.get(resource)?.lease.acquired_at_ms ?? Infinity;
    const away = new Map<string, number>();
    for (const event of events) {
      if (['refused_held', 'skipped_held', 'skipped_overlap'].includes(event.kind) && event.at_ms >= since && event.owner) away.set(event.owner, event.at_ms);
    }
    const shownOwners = [...away].toReversed().slice(0, 8);
    put(turned, shownOwners.length === 0 ? null : h('p', {}, h('b', {}, 'Asked for it meanwhile: '), ...shownOwners.flatMap(([owner, at], i) => [i ? ', ' : '', name(owner), ' ', ago(at)])));
  };

  const draw = (): void => {
    const row = live.rows.get(resource);
    put(drawing, timeline(grants, events, row?.lease ?? null, row?.late ?? []));
  };

  const readOnce = async (): Promise<void> => {
    const [history, told, tune] = await Promise.all([
      get<{ history: Past[] }>('/v1/history', { resource, limit: 200 }),
      get<{ events: StintEvent[] }>('/v1/events', { prefix: resource, newest: 'true', limit: 500 }),
      serves('/v1/tune').then((there) => (there ? get<Tune>('/v1/tune', { resource }) : null)),
    ]);
    grants = history.history;
    events = told.events.filter((event) => event.resource === resource);
    say(trouble, '');
    draw();
    showTurnedAway();
    renew(runs, histogram(tune));
    renew(past, ...grants.slice(0, 200).map(pastRow));
  };

  // One at a time; what is asked for meanwhile is done once more.
  const read = async (): Promise<void> => {
    if (reading) {
      again = true;
      return;
    }
    reading = true;
    try {
      do {
        again = false;
        await readOnce();
      } while (again);
    } catch (error) {
      say(trouble, error instanceof Refusal ? `The history cannot be read: ${error.message}` : '');
    } finally {
      reading = false;
    }
  };

  const start = async (): Promise<void> => {
    try {
      const lease = await get<Lease>('/v1/lease', { resource });
      if (lease.token === 0) {
        put(
          root,
          h('p', { class: 'crumbs' }, h('a', { href: '#/leases' }, 'Leases'), ' / '),
          h('h1', {}, name(resource, 'whole')),
          empty('Nobody ever held it', 'It comes into being with the first run that takes it:', command(`stint run ${quote(resource)} -- sleep 30`)),
        );
        return;
      }
      live.refresh(resource);
      await read();
      showNow();
    } catch (error) {
      say(trouble, error instanceof Refusal ? error.message : String(error));
    }
  };

  live.inSight = () => [resource];
  const timer = setInterval(() => {
    showNow();
  }, 250);
  const redraw = setInterval(() => draw(), 5000);
  const off = live.onChange(showNow);
  const offEvents = live.onEvent((event) => {
    if (event.resource === resource) void read();
  });
  void start();
  showNow();
  return {
    title: visible(resource),
    body: root,
    end: () => {
      off();
      offEvents();
      clearInterval(timer);
      clearInterval(redraw);
      live.inSight = () => [];
    },
  };
};

function pastRow(one: Past): HTMLElement {
  const lasted = one.acquired_at_ms === null ? null : (one.ended_at_ms ?? (one.ended === null ? Date.now() : null));
  return h(
    'tr',
    {},
    h('td', { class: 'number' }, String(one.token)),
    h('td', {}, one.owner === '' ? h('span', { class: 'dim' }, 'nobody') : name(one.owner)),
    h('td', { title: cameBy(one.reason) }, one.reason.replaceAll('_', ' ')),
    h('td', {}, ago(one.acquired_at_ms)),
    h('td', { class: 'number', title: one.ended_at_ms ? `until ${exact(one.ended_at_ms)}` : '' }, lasted === null ? '–' : duration(lasted - one.acquired_at_ms!)),
    h('td', {}, one.ended === null ? pill('stands', 'good') : pill(one.ended.replaceAll('_', ' '), endedKind(one.ended))),
    h('td', {}, one.by ? name(one.by) : '', one.why ? h('span', { class: 'dim' }, ' ', name(one.why, 'whole')) : ''),
  );
}
