// Writes that came late or without a token, as guards refused them; and runs that were waved off.
import type { StintEvent } from '../api.ts';
import { button, command, empty, h, name, pill, put, renew } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { ago } from '../time.ts';
import { causeOf } from '../words.ts';

type Which = 'writes' | 'waved';
const chosen = { which: 'writes' as Which };
const KINDS: Record<Which, string[]> = {
  writes: ['write_refused', 'write_would_be_refused', 'item_refused_stale'],
  waved: ['refused_held', 'skipped_held', 'skipped_overlap'],
};
const SHOWN = 300;

export const refusalsView: MakeView = (live) => {
  const body = h('tbody', {});
  const head = h('tr', {});
  const table = h('div', { class: 'scroll card', tabindex: 0, role: 'region', 'aria-label': 'Refusals' }, h('table', { class: 'feed' }, h('thead', {}, head), body));
  const nothing = h('div', {});
  const tabs = h('div', { class: 'chips', role: 'group', 'aria-label': 'Show' });
  const words: Record<Which, string> = { writes: 'Refused writes', waved: 'Waved off' };
  const counts = new Map<Which, HTMLElement>();
  for (const which of Object.keys(words) as Which[]) {
    const count = h('b', {});
    counts.set(which, count);
    const one = button(words[which], () => {
      chosen.which = which;
      shown = '';
      draw();
    }, 'chip');
    one.append(count);
    one.dataset['which'] = which;
    tabs.append(one);
  }
  const root = h('div', { class: 'view' }, h('div', { class: 'title' }, h('h1', {}, 'Refusals'), tabs), table, nothing);
  let shown = '';

  const draw = (): void => {
    const all = live.events.filter((event) => KINDS[chosen.which].includes(event.kind));
    const key = `${chosen.which} ${all.length} ${all.at(-1)?.number ?? ''} ${live.loaded}`;
    if (key === shown) return;
    shown = key;
    for (const [which, place] of counts) {
      const n = live.events.reduce((sum, event) => sum + (KINDS[which].includes(event.kind) ? Number(event['count'] ?? 1) : 0), 0);
      place.textContent = String(n);
    }
    for (const one of tabs.children) one.setAttribute('aria-pressed', String((one as HTMLElement).dataset['which'] === chosen.which));
    const columns = chosen.which === 'writes' ? ['When', 'Why', 'Target', 'Token → fence', 'Resource', 'Owner', 'Newest'] : ['When', 'What', 'Resource', 'Owner', 'Held by', 'Times'];
    put(head, ...columns.map((text) => h('th', { scope: 'col' }, text)));
    renew(body, ...all.slice(-SHOWN).reverse().map(chosen.which === 'writes' ? writeRow : wavedRow));
    table.hidden = all.length === 0;
    if (all.length > 0) return put(nothing);
    put(
      nothing,
      chosen.which === 'writes'
        ? empty(
            'No write was refused',
            'A guard refuses a write whose token is stale, was never issued, or is missing, and it is told here. See one at work:',
            command('make demo'),
            h('p', {}, 'Put a target under guard by sealing it:'),
            command('stint run site --seal file:page.html -- sh -c "echo new | stint write page.html"'),
          )
        : empty('Nobody was waved off', 'A run that finds its lease held goes away quietly, and it is told here.', command('stint run blog-repo -- ./publish.sh')),
    );
  };

  const off = live.onChange(draw);
  draw();
  return { title: 'Refusals', body: root, end: off };
};

const link = (resource: string | null, what = 'lease'): HTMLElement =>
  resource === null ? h('span', { class: 'dim' }, '–') : h('a', { class: 'plain', href: `#/${what}/${encodeURIComponent(resource)}` }, name(resource));

// A worker whose claim of an item had ended: its epoch is the token, the item the target.
const isItem = (event: StintEvent): boolean => event.kind === 'item_refused_stale';

function writeRow(event: StintEvent): HTMLElement {
  const [kind, word] = isItem(event) ? causeOf('stale') : causeOf(String(event['cause'] ?? 'refused'));
  const fence = isItem(event) ? event['epoch'] : event['fence'];
  const count = Number(event['count'] ?? 1);
  const newest = isItem(event) ? event.owner : event['newest_owner'] ? String(event['newest_owner']) : null;
  return h(
    'tr',
    {},
    h('td', {}, ago(event.at_ms)),
    h('td', {}, pill(word, kind), event.kind === 'write_would_be_refused' ? h('span', { class: 'dim' }, ' let through') : '', count > 1 ? h('span', { class: 'dim' }, ` ×${count}`) : ''),
    h('td', {}, isItem(event) ? h('span', { class: 'dim' }, 'item of a queue') : name(String(event['target'] ?? ''), 'mono')),
    h('td', { class: 'number' }, event.token === null ? 'none' : String(event.token), ' → ', fence === undefined || fence === null ? '?' : String(fence)),
    h('td', {}, link(event.resource, isItem(event) ? 'item' : 'lease')),
    h('td', {}, event.owner && !isItem(event) ? name(event.owner) : ''),
    h('td', {}, newest ? name(newest) : ''),
  );
}

function wavedRow(event: StintEvent): HTMLElement {
  return h(
    'tr',
    {},
    h('td', {}, ago(event.at_ms)),
    h('td', {}, pill(event.kind.replaceAll('_', ' '), event.kind === 'refused_held' ? 'plain' : 'blue')),
    h('td', {}, link(event.resource)),
    h('td', {}, event.owner ? name(event.owner) : ''),
    h('td', {}, event['held_by'] ? name(String(event['held_by'])) : ''),
    h('td', { class: 'number' }, String(event['count'] ?? 1)),
  );
}
