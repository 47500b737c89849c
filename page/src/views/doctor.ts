// What the doctor finds on the server's store. It is examined when somebody looks; the findings come
// one after the other.
import { get, Refusal, serves } from '../api.ts';
import { button, command, h, name, pill, put, renew } from '../dom.ts';
import type { Live } from '../live.ts';
import { ago } from '../time.ts';

interface Examined {
  running: boolean;
  began_at_ms: number;
  ended_at_ms?: number;
  fault?: string;
  findings: { check: string; level: string; text: string }[];
}

const KINDS: Record<string, string> = { ok: 'good', warn: 'low', fail: 'bad' };
const PACE = 500;

function verdict(seen: Examined): HTMLElement {
  const count = (level: string): number => seen.findings.filter((one) => one.level === level).length;
  if (seen.running) return h('p', { class: 'dim', role: 'status' }, 'Examining the store with records of its own; no lease is touched …');
  if (seen.fault !== undefined) return h('p', { class: 'flag', role: 'status' }, 'The examination did not come to its end: ', name(seen.fault, 'whole'));
  const words = count('fail') > 0 ? 'This store is NOT safe for leases: see the lines that say fail.' : count('warn') > 0 ? 'This store can carry leases; see the lines that say warn.' : 'This store can carry leases.';
  return h('p', { role: 'status' }, words, h('span', { class: 'dim' }, ' Examined ', ago(seen.ended_at_ms), '.'));
}

export function doctorCard(live: Live): { root: HTMLElement; end: () => void } {
  const body = h('div', {});
  const again = button('Examine again', () => void read());
  again.title = 'An examination is kept for half a minute';
  again.hidden = true;
  const root = h('section', { class: 'card doctor' }, h('div', { class: 'title' }, h('h2', {}, 'What doctor says'), h('div', { class: 'orders' }, again)), body);
  let over = false;
  let timer = 0;

  const show = (seen: Examined): void => {
    again.hidden = seen.running;
    const rows = seen.findings.map((one) => h('tr', {}, h('td', {}, pill(one.level, KINDS[one.level] ?? '')), h('td', {}, name(one.check)), h('td', { class: 'whole' }, name(one.text, 'whole'))));
    renew(
      body,
      verdict(seen),
      rows.length === 0 ? null : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Findings' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Level', 'Check', 'What was found'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))),
      h('details', {}, h('summary', {}, 'The same on the command line, with contenders that are processes'), command('stint doctor')),
    );
  };

  const read = async (): Promise<void> => {
    clearTimeout(timer);
    try {
      if (!live.may('operate') && !live.may('admin')) {
        put(body, h('p', { class: 'dim' }, 'Your key may not examine the store: it needs “operate” or “admin”. Where the store can be reached:'), command('stint doctor'));
        return;
      }
      if (!(await serves('/v1/doctor'))) {
        put(body, h('p', { class: 'dim' }, 'This server is older than its page: it does not examine its store. Where the store can be reached:'), command('stint doctor'));
        return;
      }
      const seen = await get<Examined>('/v1/doctor');
      if (over) return;
      show(seen);
      if (seen.running) timer = window.setTimeout(() => void read(), PACE);
    } catch (error) {
      if (over) return;
      again.hidden = false;
      put(body, h('p', { class: 'told', role: 'alert' }, error instanceof Refusal ? error.message : String(error)));
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
