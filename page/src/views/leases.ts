// All leases: a filter, a tree of prefixes, and a list of which only what is in sight exists.
import type { MakeView } from '../main.ts';
import { button, command, empty, h, put, say, visible } from '../dom.ts';
import { stuckFor, type Live, type Row } from '../live.ts';
import { duration, exact, rough } from '../time.ts';
import { PrefixTree } from './tree.ts';

type Chip = 'all' | 'held' | 'stuck' | 'waited' | 'free';
type Order = 'name' | 'left' | 'since' | 'progress';

// What was chosen outlives the view: who comes back from a lease finds the list as it was.
const chosen = { text: '', chip: 'all' as Chip, prefix: '', order: 'name' as Order, scroll: 0 };

const ORDERS: Record<Order, (row: Row) => number> = {
  name: () => 0,
  left: (row) => (row.until === 0 ? Infinity : row.until),
  since: (row) => (row.lease.held ? (row.lease.acquired_at_ms ?? Infinity) : Infinity),
  progress: (row) => (row.lease.held ? (row.lease.progress_at_ms ?? Infinity) : Infinity),
};

class Line {
  readonly root: HTMLElement;
  private readonly dot = h('i', { class: 'dot', 'aria-hidden': 'true' });
  private readonly state = h('span', { class: 'sr' });
  private readonly link = h('a', { class: 'name', tabindex: -1 });
  private readonly owner = h('bdi', { class: 'name' });
  private readonly token = h('span', { class: 'number' });
  private readonly fill = h('i', { class: 'fill' });
  private readonly left = h('span', { class: 'left' });
  private readonly progress = h('bdi', { class: 'name' });
  private readonly age = h('span', { class: 'age' });
  private readonly waiters = h('span', { class: 'number' });
  private readonly note = h('bdi', { class: 'name' });
  private until = -1;
  row: Row | null = null;
  index = -1;

  constructor() {
    const cell = (kind: string, ...children: HTMLElement[]) => h('div', { role: 'gridcell', class: `c ${kind}` }, ...children);
    this.root = h(
      'div',
      { role: 'row', class: 'line', tabindex: -1 },
      cell('c-name', this.dot, this.state, this.link),
      cell('c-owner', this.owner),
      cell('c-token', this.token),
      cell('c-left', h('span', { class: 'bar', 'aria-hidden': 'true' }, this.fill), this.left),
      cell('c-progress', this.progress, this.age),
      cell('c-waiters', this.waiters),
      cell('c-note', this.note),
    );
  }

  show(row: Row, index: number, live: Live, now: number, wall: number): void {
    const { lease } = row;
    const other = this.row !== row;
    this.row = row;
    if (this.index !== index) {
      this.index = index;
      this.root.setAttribute('aria-rowindex', String(index + 2));
    }
    if (other) {
      const shown = visible(lease.resource);
      this.link.textContent = shown;
      this.link.title = shown;
      this.link.href = `#/lease/${encodeURIComponent(lease.resource)}`;
    }
    const left = row.until === 0 ? -1 : row.until - now;
    const over = lease.held && (row.until === 0 || left <= 0) && lease.remaining_ms !== null;
    const stuck = stuckFor(lease, wall);
    const state = over ? 'expired' : lease.state;
    const kind = `line ${state}${stuck ? ' stuck' : ''}`;
    if (this.root.className !== kind) this.root.className = kind;
    say(this.state, `${stuck ? 'stuck' : state}: `);
    say(this.owner, visible(lease.owner));
    say(this.token, lease.token === 0 ? '' : String(lease.token));
    this.showLeft(lease.ttl_ms, left, state, lease.remaining_ms === null);
    if (other || this.until !== row.until) {
      this.until = row.until;
      this.left.title = left <= 0 ? '' : `runs out ${exact(wall + left)}`;
    }
    say(this.progress, lease.state === 'free' ? '' : visible(lease.progress));
    const age = lease.progress_at_ms === null || !lease.held ? '' : stuck ? `stuck ${rough(stuck)}` : rough(Math.max(0, wall - lease.progress_at_ms));
    say(this.age, age);
    if (lease.progress_at_ms !== null) this.age.title = exact(lease.progress_at_ms);
    const line = live.waiters.get(lease.resource)?.length ?? 0;
    say(this.waiters, line === 0 ? '' : String(line));
    say(this.note, lease.state === 'free' ? '' : visible(lease.note));
  }

  private showLeft(ttl: number, left: number, state: string, unknown: boolean): void {
    const share = left <= 0 || ttl <= 0 ? 0 : Math.min(1, left / ttl);
    const kind = `fill ${share < 0.2 ? 'short' : share < 0.5 ? 'low' : ''}`;
    if (this.fill.className !== kind) this.fill.className = kind;
    this.fill.style.transform = `scaleX(${share.toFixed(4)})`;
    const words =
      state === 'free' ? 'free' : state === 'expired' ? 'expired' : unknown ? 'held' : state === 'held' ? duration(left) : `${state} ${duration(left)}`;
    say(this.left, words);
  }
}

export const leasesView: MakeView = (live) => {
  const lines: Line[] = [];
  let shown: Row[] = [];
  let seen = { membership: -1, key: '', at: 0 };
  let focused = '';

  const filter = h('input', { type: 'search', id: 'filter', class: 'filter', placeholder: 'Filter by name, owner, note   /', 'aria-label': 'Filter leases', spellcheck: 'false' });
  filter.value = chosen.text;
  const chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Show' });
  const list = h('div', { class: 'list' });
  const space = h('div', { class: 'space', role: 'presentation' });
  const order = (which: Order, text: string) => {
    const out = button(text, () => {
      chosen.order = chosen.order === which ? 'name' : which;
      for (const one of head.querySelectorAll('button')) one.setAttribute('aria-pressed', String(one.dataset['order'] === chosen.order));
      update(true);
    });
    out.dataset['order'] = which;
    out.setAttribute('aria-pressed', String(chosen.order === which));
    return out;
  };
  const column = (kind: string, ...inside: (HTMLElement | string)[]) => h('div', { role: 'columnheader', class: `c ${kind}` }, ...inside);
  const head = h(
    'div',
    { role: 'row', class: 'line head', 'aria-rowindex': 1 },
    column('c-name', order('name', 'Resource')),
    column('c-owner', 'Owner'),
    column('c-token', 'Token'),
    column('c-left', order('left', 'Time left')),
    column('c-progress', order('progress', 'Progress')),
    column('c-waiters', h('span', { title: 'Requests held open at this server. Runs that wait by watching, on the store itself or at another server, are not counted: the lease tells who asked' }, 'Wait')),
    column('c-note', 'Note'),
  );
  const body = h('div', { role: 'rowgroup', class: 'rows' }, space);
  const table = h('div', { role: 'grid', class: 'leases', 'aria-label': 'Leases: arrow keys move, Enter opens', 'aria-readonly': 'true' }, h('div', { role: 'rowgroup' }, head), body);
  const nothing = h('div', { class: 'nothing' });
  put(list, table, nothing);
  const tree = new PrefixTree(live, (prefix) => {
    chosen.prefix = prefix;
    update(true);
  });
  const root = h(
    'div',
    { class: 'view leases-view' },
    h('h1', { class: 'sr' }, 'Leases'),
    h('div', { class: 'tools' }, filter, chips),
    h('div', { class: 'split' }, tree.root, list),
  );

  const matches = (row: Row, text: string, wall: number): boolean => {
    const { lease } = row;
    if (chosen.prefix !== '' && !lease.resource.startsWith(chosen.prefix)) return false;
    if (chosen.chip === 'held' && !lease.held) return false;
    if (chosen.chip === 'free' && lease.state !== 'free') return false;
    if (chosen.chip === 'stuck' && stuckFor(lease, wall) === 0) return false;
    if (chosen.chip === 'waited' && !live.waiters.has(lease.resource)) return false;
    return text === '' || row.words.includes(text);
  };

  const showChips = (): void => {
    const wall = Date.now();
    let held = 0;
    let stuck = 0;
    let free = 0;
    for (const { lease } of live.sorted) {
      if (lease.held) held++;
      if (lease.state === 'free') free++;
      if (stuckFor(lease, wall) > 0) stuck++;
    }
    const counts: Record<Chip, number> = { all: live.sorted.length, held, stuck, waited: live.waiters.size, free };
    const words: Record<Chip, string> = { all: 'All', held: 'Held', stuck: 'Stuck', waited: 'Waited for', free: 'Free' };
    if (chips.childElementCount === 0) {
      for (const chip of Object.keys(words) as Chip[]) {
        const one = h('button', { type: 'button', class: `chip ${chip}`, 'data-chip': chip }, words[chip], h('b', {}));
        one.addEventListener('click', () => {
          chosen.chip = chosen.chip === chip ? 'all' : chip;
          update(true);
        });
        chips.append(one);
      }
    }
    for (const one of chips.querySelectorAll<HTMLElement>('.chip')) {
      const chip = one.dataset['chip'] as Chip;
      one.setAttribute('aria-pressed', String(chosen.chip === chip));
      one.classList.toggle('some', counts[chip] > 0);
      say(one.lastElementChild!, String(counts[chip]));
    }
  };

  const choose = (): void => {
    const text = chosen.text.trim().toLowerCase();
    const wall = Date.now();
    shown = live.sorted.filter((row) => matches(row, text, wall));
    if (chosen.order !== 'name') {
      const by = ORDERS[chosen.order];
      shown.sort((a, b) => by(a) - by(b) || (a.lease.resource < b.lease.resource ? -1 : 1));
    }
  };

  const rowHeight = (): number => (window.matchMedia('(max-width: 720px)').matches ? 62 : 34);

  // Only the lines in sight, and a few around them, exist.
  const draw = (): void => {
    const height = rowHeight();
    const first = Math.max(0, Math.floor(body.scrollTop / height) - 4);
    const count = Math.min(shown.length - first, Math.ceil(body.clientHeight / height) + 8);
    const total = `${shown.length * height}px`;
    if (space.style.height !== total) space.style.height = total;
    // The head keeps step with the rows, whether they have a scroll bar or not.
    const room = `${body.offsetWidth - body.clientWidth + 14}px`;
    if (head.style.paddingRight !== room) head.style.paddingRight = room;
    table.setAttribute('aria-rowcount', String(shown.length + 1));
    const now = performance.now();
    const wall = Date.now();
    while (lines.length < count) {
      const line = new Line();
      lines.push(line);
      space.append(line.root);
    }
    // A row keeps its element while it is in sight: what has the focus keeps it.
    const used = new Set<Line>();
    let reachable: Line | null = null;
    for (let i = first; i < first + count; i++) {
      const row = shown[i]!;
      const line = lines[i % lines.length]!;
      used.add(line);
      line.root.hidden = false;
      const top = `translateY(${i * height}px)`;
      if (line.root.style.transform !== top) line.root.style.transform = top;
      line.show(row, i, live, now, wall);
      if (row.lease.resource === focused || reachable === null) reachable = line;
    }
    for (const line of lines) {
      if (!used.has(line)) line.root.hidden = true;
      const stop = line === reachable ? 0 : -1;
      if (line.root.tabIndex !== stop) line.root.tabIndex = stop;
    }
  };

  const showNothing = (): void => {
    const none = shown.length === 0;
    table.classList.toggle('none', none);
    nothing.hidden = !none;
    const key = !none ? '' : live.fault ? `fault ${live.fault.message}` : !live.loaded ? 'loading' : live.sorted.length === 0 ? 'empty' : 'filtered';
    if (nothing.dataset['key'] === key) return;
    nothing.dataset['key'] = key;
    if (key === '') return put(nothing);
    if (key === 'loading') return put(nothing, h('p', { class: 'dim loading' }, 'Reading the leases …'));
    if (live.fault) {
      return put(nothing, empty('The leases cannot be shown', live.fault.message, h('p', {}, 'A key that may look is made with:'), command('stint key create me --allow read')));
    }
    if (key === 'empty') {
      return put(
        nothing,
        empty(
          'No lease yet',
          'A lease appears here as soon as a run takes it. Try one:',
          command(`stint run --store ${location.origin} hello -- sleep 30`),
          h('p', {}, 'Where a key is asked for, the run takes it from STINT_KEY.'),
        ),
      );
    }
    put(nothing, empty('Nothing matches', 'No lease is like this.', button('Show all', () => {
      chosen.text = filter.value = '';
      chosen.chip = 'all';
      chosen.prefix = '';
      update(true);
    })));
  };

  const update = (now = false): void => {
    const key = `${chosen.text}\n${chosen.chip}\n${chosen.prefix}\n${chosen.order}`;
    const stale = seen.membership !== live.membership || (performance.now() - seen.at > 1000 && (chosen.chip !== 'all' || chosen.order !== 'name' || chosen.text !== ''));
    if (now || seen.key !== key || (stale && performance.now() - seen.at > 100) || seen.at === 0) {
      seen = { membership: live.membership, key, at: performance.now() };
      choose();
      showChips();
    }
    tree.show(chosen.prefix);
    showNothing();
    draw();
  };

  const move = (by: number): void => {
    const at = shown.findIndex((row) => row.lease.resource === focused);
    const next = Math.max(0, Math.min(shown.length - 1, at < 0 ? 0 : at + by));
    const row = shown[next];
    if (!row) return;
    focused = row.lease.resource;
    const height = rowHeight();
    if (next * height < body.scrollTop) body.scrollTop = next * height;
    if ((next + 1) * height > body.scrollTop + body.clientHeight) body.scrollTop = (next + 1) * height - body.clientHeight;
    draw();
    lines.find((one) => !one.root.hidden && one.row === row)?.root.focus({ preventScroll: true });
  };

  const open = (): void => {
    const line = lines.find((one) => one.root.contains(document.activeElement));
    if (line?.row) location.hash = `#/lease/${encodeURIComponent(line.row.lease.resource)}`;
  };

  body.addEventListener('scroll', () => {
    chosen.scroll = body.scrollTop;
    draw();
  }, { passive: true });
  body.addEventListener('click', (event) => {
    if ((event.target as Element).closest('a')) return;
    const line = lines.find((one) => one.root.contains(event.target as Node));
    if (line?.row && !window.getSelection()?.toString()) location.hash = `#/lease/${encodeURIComponent(line.row.lease.resource)}`;
  });
  body.addEventListener('focusin', (event) => {
    const line = lines.find((one) => one.root.contains(event.target as Node));
    focused = line?.row?.lease.resource ?? focused;
  });
  body.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(body.clientHeight / rowHeight()) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    const by = steps[event.key];
    if (by !== undefined) move(by);
    else if (event.key === 'Enter') open();
    else return;
    event.preventDefault();
  });
  filter.addEventListener('input', () => {
    chosen.text = filter.value;
    body.scrollTop = 0;
    update(true);
  });
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      chosen.text = filter.value = '';
      update(true);
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      focused = '';
      move(0);
    }
  });
  const slash = (event: KeyboardEvent): void => {
    if (event.key !== '/' || event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
    event.preventDefault();
    filter.focus();
    filter.select();
  };
  document.addEventListener('keydown', slash);
  const resized = new ResizeObserver(() => draw());
  resized.observe(body);
  const off = live.onChange(() => update());
  const timer = setInterval(() => update(), 250);
  live.inSight = () => lines.flatMap((line) => (line.root.hidden || !line.row ? [] : [line.row.lease.resource]));
  requestAnimationFrame(() => {
    update(true);
    body.scrollTop = chosen.scroll;
  });
  return {
    title: 'Leases',
    body: root,
    end: () => {
      off();
      clearInterval(timer);
      resized.disconnect();
      document.removeEventListener('keydown', slash);
      live.inSight = () => [];
    },
  };
};
