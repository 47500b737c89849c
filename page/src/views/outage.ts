// What an outage would do to a job: which slots would run afterwards, which would be skipped, and why.
import { get, Refusal } from '../api.ts';
import { command, h, pill, put, quote, say } from '../dom.ts';
import { duration, exact, short } from '../time.ts';

interface Explained {
  job: string;
  from_ms: number;
  to_ms: number;
  paused: boolean;
  max_backfill: number;
  start_deadline_ms?: number;
  supposed: boolean; // the store does not know the job's limits: the usual ones
  would_run: number;
  would_skip: number;
  left_out: number;
  slots: { slot: string; at_ms: number; key: string; state: string; backfill: boolean }[];
}

const SECOND = 1000;
const pad = (n: number, wide = 2): string => String(n).padStart(wide, '0');

// For <input type="datetime-local">: the browser's own clock.
function local(at: number): string {
  const t = new Date(at);
  return `${pad(t.getFullYear(), 4)}-${pad(t.getMonth() + 1)}-${pad(t.getDate())}T${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}
const utc = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
const slots = (n: number): string => (n === 1 ? '1 slot' : `${n} slots`);

function why(state: string, backfill: boolean, told: Explained): string {
  if (state === 'runs') return backfill ? 'missed, and made up for afterwards' : 'due as the outage ends';
  if (state === 'skipped_paused') return 'the job is paused';
  if (state === 'skipped_late') return `may start at most ${duration(told.start_deadline_ms ?? 0)} late (start_deadline)`;
  return told.max_backfill === 0 ? 'missed slots are not made up for (max_backfill 0)' : `of missed slots only the newest ${told.max_backfill === 1 ? 'is' : `${told.max_backfill} are`} made up for (max_backfill ${told.max_backfill})`;
}

export class Outage {
  private readonly from = h('input', { type: 'datetime-local', step: 1, required: true });
  private readonly to = h('input', { type: 'datetime-local', step: 1, required: true });
  private readonly answer = h('div', { class: 'picked', 'aria-live': 'polite' });
  private readonly told = h('p', { class: 'told', role: 'alert' });
  private readonly form: HTMLFormElement;
  readonly root: HTMLDetailsElement;
  private asked = 0;

  // `changed`: another stretch was chosen by its times.
  constructor(
    private readonly job: string,
    private readonly changed: (from: number, to: number) => void,
  ) {
    const label = (text: string, input: HTMLInputElement) => h('label', {}, text, input);
    this.form = h('form', { class: 'outage' }, label('Down from ', this.from), label(' to ', this.to), h('button', { type: 'submit' }, 'Explain'));
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      const from = new Date(this.from.value).getTime();
      const to = new Date(this.to.value).getTime();
      if (to < from) return say(this.told, 'The outage ends before it begins.');
      this.changed(from, to);
      void this.ask(from, to);
    });
    this.root = h('details', {}, h('summary', {}, 'What would an outage do? Drag over the strip, or say from when to when'), this.form, this.told, this.answer);
  }

  // Before anything was chosen: a stretch to begin with.
  suggest(from: number, to: number): void {
    if (this.from.value !== '') return;
    this.from.value = local(from);
    this.to.value = local(to);
  }

  choose(from: number, to: number): void {
    this.root.open = true;
    this.from.value = local(from);
    this.to.value = local(to);
    void this.ask(from, to);
  }

  private async ask(from: number, to: number): Promise<void> {
    const mine = ++this.asked;
    try {
      const told = await get<Explained>('/v1/jobs/explain', { job: this.job, from_ms: Math.floor(from / SECOND) * SECOND, to_ms: Math.floor(to / SECOND) * SECOND, limit: 100 });
      if (mine !== this.asked) return;
      say(this.told, '');
      this.show(told);
    } catch (error) {
      if (mine !== this.asked) return;
      put(this.answer);
      say(this.told, error instanceof Refusal ? error.message : String(error));
    }
  }

  private show(told: Explained): void {
    const rows = told.slots.toReversed().map((slot) =>
      h(
        'tr',
        {},
        h('td', { class: 'mono', title: exact(slot.at_ms) }, slot.slot),
        h('td', {}, pill(slot.state.replaceAll('_', ' '), slot.state === 'runs' ? 'good' : 'plain')),
        h('td', {}, why(slot.state, slot.backfill, told)),
      ),
    );
    const none = told.would_run + told.would_skip === 0;
    put(
      this.answer,
      h('p', {}, h('b', {}, `Down for ${duration(told.to_ms - told.from_ms)}`), ` (${short(told.from_ms)} to ${short(told.to_ms)}): `, none ? 'no slot would be missed.' : `${slots(told.would_run)} would run, ${slots(told.would_skip)} would be recorded as skipped.`),
      told.supposed ? h('p', { class: 'flag' }, 'The store does not know this job’s limits yet: max_backfill 1 and no start_deadline are supposed. A scheduler of this version writes them down.') : null,
      none ? null : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Slots of the outage' }, h('table', {}, h('thead', {}, h('tr', {}, ...['Slot', 'What', 'Why'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {}, ...rows))),
      told.left_out > 0 ? h('p', { class: 'dim' }, `${told.left_out} earlier ones are not listed.`) : null,
      h('p', { class: 'dim' }, 'The same from the configuration, before it is loaded:'),
      command(`stint explain ${quote(this.job)} --down ${utc(told.from_ms)}..${utc(told.to_ms)}`),
    );
  }
}
