// What the doctor finds on the server's store. It is examined when somebody asks for it; the findings
// come one after the other.
import { get, post, Refusal, serves } from '../api.ts';
import { button, command, h, name, pill, put, renew, say } from '../dom.ts';
import type { Live } from '../live.ts';
import { ago } from '../time.ts';

interface Examined {
  running: boolean;
  began_at_ms?: number; // none: nobody has asked yet
  ended_at_ms?: number;
  fault?: string;
  findings: { check: string; level: string; text: string }[];
}

const KINDS: Record<string, string> = { ok: 'good', warn: 'low', fail: 'bad' };
const PACE = 500;

function verdict(seen: Examined): HTMLElement {
  const count = (level: string): number => seen.findings.filter((one) => one.level === level).length;
  if (seen.began_at_ms === undefined) return h('p', { class: 'dim', role: 'status' }, 'Nobody has had this store examined since the server started. It is tried with records of its own; no lease is touched.');
  if (seen.running) return h('p', { class: 'dim', role: 'status' }, 'Examining the store with records of its own; no lease is touched …');
  if (seen.fault !== undefined) return h('p', { class: 'flag', role: 'status' }, 'The examination did not come to its end: ', name(seen.fault, 'whole'));
  const words = count('fail') > 0 ? 'This store is NOT safe for leases: see the lines that say fail.' : count('warn') > 0 ? 'This store can carry leases; see the lines that say warn.' : 'This store can carry leases.';
  return h('p', { role: 'status' }, words, h('span', { class: 'dim' }, ' Examined ', ago(seen.ended_at_ms), '.'));
}

export function doctorCard(live: Live): { root: HTMLElement; end: () => void } {
  const body = h('div', {});
  const ask = button('Examine', () => void begin());
  ask.title = 'An examination is kept for half a minute';
  ask.hidden = true;
  const root = h('section', { class: 'card doctor' }, h('div', { class: 'title' }, h('h2', {}, 'What doctor says'), h('div', { class: 'orders' }, ask)), body);
  let over = false;
  let timer = 0;

  // Not `disabled`, which would take the focus away from who pressed it.
  const busy = (is: boolean): void => ask.setAttribute('aria-disabled', String(is));
  const show = (seen: Examined): void => {
    ask.hidden = false;
    busy(seen.running);
    say(ask, seen.began_at_ms === undefined ? 'Examine' : 'Examine again');
    const rows = seen.findings.map((one) => h('tr', {}, h('td', {}, pill(one.level, KINDS[one.level] ?? '')), h('td', {}, name(one.check)), h('td', { class: 'whole' }, name(one.text, 'whole'))));
    renew(
      body,
      verdict(seen),
      rows.length === 0 ? null : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Findings' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Level', 'Check', 'What was found'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))),
      h('details', {}, h('summary', {}, 'The same on the command line, with contenders that are processes'), command('stint doctor')),
    );
  };

  const go = (seen: Examined): void => {
    if (over) return;
    show(seen);
    if (seen.running) timer = window.setTimeout(() => void read(), PACE);
  };
  const told = (error: unknown): void => {
    if (over) return;
    ask.hidden = false;
    busy(false);
    put(body, h('p', { class: 'told', role: 'alert' }, error instanceof Refusal ? error.message : String(error)));
  };
  const begin = async (): Promise<void> => {
    if (ask.getAttribute('aria-disabled') === 'true') return;
    busy(true);
    clearTimeout(timer);
    await post<Examined>('/v1/doctor', {}).then(go, told);
  };
  const read = async (): Promise<void> => {
    clearTimeout(timer);
    try {
      // It is about the whole store: a key for a part of it is not enough.
      if (!live.may('admin') && (!live.may('operate') || (live.facts?.prefixes?.length ?? 0) > 0)) {
        put(body, h('p', { class: 'dim' }, 'Your key may not examine the store: it needs “admin”, or “operate” without a prefix. Where the store can be reached:'), command('stint doctor'));
        return;
      }
      if (!(await serves('/v1/doctor'))) {
        put(body, h('p', { class: 'dim' }, 'This server is older than its page: it does not examine its store. Where the store can be reached:'), command('stint doctor'));
        return;
      }
      go(await get<Examined>('/v1/doctor'));
    } catch (error) {
      told(error);
    }
  };
  void read();
  return {
    root,
    end: () => {
      over = true;
      clearTimeout(timer);
    },
  };
}
