// One job: its slots as a strip, what comes next, what an outage would do, and the orders.
import { get, post, Refusal } from '../api.ts';
import { button, h, name, pill, put, say, svg, visible } from '../dom.ts';
import { ago, clock, duration, exact, short } from '../time.ts';
import { slotKind } from '../words.ts';
import { Outage } from './outage.ts';

export interface Job {
  job: string;
  schedule?: string;
  tz?: string;
  paused?: boolean;
  next_at_ms?: number | null;
  next_ms?: number[];
  [further: string]: unknown;
}
interface Slot {
  job: string;
  slot: string;
  key: string;
  at_ms: number;
  attempt: number;
  state: string;
  owner: string | null;
  started_at_ms: number | null;
  ended_at_ms: number | null;
  exit_code: number | null;
  backfill: boolean;
  cause: string | null;
}

const SHOWN = 120;
const LEAST = 40; // a strip is at least so many slots wide
const COMING = 'coming';

const coming = (job: string, at: number): Slot => ({ job, slot: exact(at), key: `${at}`, at_ms: at, attempt: 1, state: COMING, owner: null, started_at_ms: null, ended_at_ms: null, exit_code: null, backfill: false, cause: null });

export class JobCard {
  readonly root = h('section', { class: 'card job' });
  private readonly head = h('div', { class: 'title' });
  private readonly strip = h('div', { class: 'strip-box' });
  private readonly sums = h('div', { class: 'legend' });
  private readonly picked = h('div', { class: 'picked', 'aria-live': 'polite' });
  private readonly told = h('p', { class: 'told', role: 'alert' });
  private readonly outage: Outage;
  private slots: Slot[] = [];
  private drawn = '';
  private band: SVGElement | null = null;
  private chosen: [number, number] | null = null; // keys would change their places; times do not
  private dragged = false;
  private keyed: { at: number; other: number } | null = null; // what the arrow keys chose last: times of slots

  constructor(
    private job: Job,
    private readonly may: boolean,
    explains: boolean,
    private readonly changed: () => void,
  ) {
    this.outage = new Outage(job.job, (from, to) => {
      this.chosen = [from, to];
      this.paint();
    });
    put(this.root, this.head, this.strip, this.sums, explains ? this.outage.root : null, this.picked, this.told);
  }

  show(job: Job): void {
    this.job = job;
    const key = JSON.stringify(job);
    if (this.head.dataset['key'] === key) return;
    this.head.dataset['key'] = key;
    const order = (verb: string, text: string): HTMLElement => {
      const one = button(text, () => void this.order(verb));
      one.disabled = !this.may;
      if (!this.may) one.title = 'Your key does not allow it: it needs “schedule” or “operate”';
      return one;
    };
    const next = job.paused ? [] : (job.next_ms ?? (job.next_at_ms ? [job.next_at_ms] : []));
    put(
      this.head,
      h('h2', {}, name(job.job, 'whole')),
      job.paused ? pill('paused', 'low') : null,
      h('span', { class: 'mono dim' }, String(job.schedule ?? ''), job.tz ? ` ${job.tz}` : ''),
      h('span', { class: 'dim' }, next.length === 0 ? '' : 'next ', ...next.slice(0, 3).flatMap((at, i) => [i ? ', ' : '', ago(at)])),
      h('div', { class: 'orders' }, order('trigger', 'Run now'), job.paused ? order('resume', 'Resume') : order('pause', 'Pause')),
    );
  }

  private async order(verb: string): Promise<void> {
    try {
      await post(`/v1/jobs/${verb}`, verb === 'trigger' ? { job: this.job.job } : { job: this.job.job, by: 'page' });
      say(this.told, '');
    } catch (error) {
      say(this.told, error instanceof Refusal ? error.message : String(error));
    }
    this.changed();
  }

  async read(): Promise<void> {
    const got = await get<{ slots: Slot[] }>('/v1/jobs/slots', { job: this.job.job, limit: SHOWN });
    const past = got.slots.toSorted((a, b) => a.at_ms - b.at_ms);
    const last = past.at(-1)?.at_ms ?? 0;
    const next = this.job.paused ? [] : (this.job.next_ms ?? []).filter((at) => at > last).map((at) => coming(this.job.job, at));
    const slots = [...past, ...next];
    const key = JSON.stringify(slots.map((slot) => [slot.key, slot.attempt, slot.state]));
    // What is dragged over does not move away under the pointer.
    if (key === this.drawn || this.dragged) return;
    this.drawn = key;
    this.slots = slots;
    this.draw();
  }

  private get shift(): number {
    return Math.max(0, LEAST - this.slots.length) * 10;
  }

  private draw(): void {
    if (this.slots.length === 0) {
      put(this.strip, h('p', { class: 'dim' }, 'No slot has come yet.'));
      put(this.sums);
      return;
    }
    const past = this.slots.filter((slot) => slot.state !== COMING);
    const focused = this.strip.contains(document.activeElement);
    const wide = Math.max(this.slots.length, LEAST) * 10;
    const picture = svg('svg', { class: 'strip', viewBox: `0 0 ${wide} 30`, preserveAspectRatio: 'none', role: 'img', tabindex: 0, 'aria-label': `${past.length} slots, from ${exact(this.slots[0]!.at_ms)}: ${words(past)}. The arrow keys choose one, with Shift more` });
    this.slots.forEach((slot, i) => {
      const low = slot.state.startsWith('skipped') || slot.state === COMING;
      picture.append(
        svg('rect', { class: `slot ${slot.state === COMING ? COMING : slotKind(slot.state)}`, x: this.shift + i * 10 + 1, y: low ? 18 : 2, width: 8, height: low ? 10 : 26 }, svg('title', {}, `${slot.slot}: ${slot.state.replaceAll('_', ' ')}${slot.exit_code ? `, exit ${slot.exit_code}` : ''}${slot.cause ? `, ${visible(slot.cause)}` : ''}`)),
      );
    });
    this.band = svg('rect', { class: 'band', y: 0, height: 30, x: 0, width: 0 });
    picture.append(this.band);
    this.dragging(picture);
    put(this.strip, picture as unknown as HTMLElement, h('div', { class: 'ticks' }, h('span', { title: exact(this.slots[0]!.at_ms) }, short(this.slots[0]!.at_ms)), h('span', { title: exact(this.slots.at(-1)!.at_ms) }, short(this.slots.at(-1)!.at_ms))));
    if (focused) picture.focus({ preventScroll: true });
    this.paint();
    const states = [...new Set(this.slots.map((slot) => slot.state))];
    put(this.sums, ...states.map((state) => h('span', {}, h('i', { class: `swatch ${state === COMING ? COMING : slotKind(state)}` }), `${state.replaceAll('_', ' ')} ${this.slots.filter((slot) => slot.state === state).length}`)));
    this.outage.suggest(...this.stretch(Math.max(0, this.slots.length - 6), this.slots.length - 1));
  }

  // An outage over these slots: from just before the first to well after the last.
  private stretch(first: number, last: number): [number, number] {
    const at = (i: number): number => this.slots[i]!.at_ms;
    const gap = last + 1 < this.slots.length ? at(last + 1) - at(last) : last > 0 ? at(last) - at(last - 1) : 60_000;
    return [at(first) - 1000, at(last) + Math.max(1000, Math.floor(gap / 2))];
  }

  // The band over what was chosen.
  private paint(): void {
    if (!this.band) return;
    const [from, to] = this.chosen ?? [1, 0];
    const inside = this.slots.flatMap((slot, i) => (slot.at_ms >= from && slot.at_ms <= to ? [i] : []));
    const first = inside[0];
    this.band.setAttribute('x', String(first === undefined ? 0 : this.shift + first * 10));
    this.band.setAttribute('width', String(first === undefined ? 0 : (inside.at(-1)! - first + 1) * 10));
  }

  // A stretch that is dragged over, by mouse, finger or keys: what became of its slots, and what an
  // outage as long would do.
  private dragging(picture: SVGElement): void {
    let from = -1;
    let to = -1;
    let before: [number, number] | null = null;
    const place = (event: PointerEvent): number => {
      const box = picture.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * Math.max(this.slots.length, LEAST) * 10 - this.shift;
      return Math.max(0, Math.min(this.slots.length - 1, Math.floor(x / 10)));
    };
    const pick = (a: number, b: number): [number, number] => {
      this.chosen = this.stretch(Math.min(a, b), Math.max(a, b));
      this.paint();
      this.tellChosen(Math.min(a, b), Math.max(a, b));
      return this.chosen;
    };
    picture.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      before = this.chosen;
      this.dragged = true;
      from = to = place(event);
      picture.setPointerCapture(event.pointerId);
      pick(from, to);
    });
    picture.addEventListener('pointermove', (event) => {
      if (from < 0 || place(event) === to) return;
      to = place(event);
      pick(from, to);
    });
    const done = (): void => {
      if (from >= 0) this.outage.choose(...pick(from, to));
      from = -1;
      this.dragged = false;
    };
    picture.addEventListener('pointerup', done);
    // The finger scrolls: nothing was chosen.
    picture.addEventListener('pointercancel', () => {
      if (from < 0) return;
      from = -1;
      this.dragged = false;
      this.chosen = before;
      this.paint();
      put(this.picked);
    });
    const index = (time: number): number => {
      const found = this.slots.findIndex((slot) => slot.at_ms >= time);
      return found < 0 ? this.slots.length - 1 : found;
    };
    picture.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const last = this.slots.length - 1;
      const stood = this.keyed ? index(this.keyed.at) : last + 1;
      const at = Math.max(0, Math.min(last, stood + by));
      const other = event.shiftKey && this.keyed ? index(this.keyed.other) : at;
      this.keyed = { at: this.slots[at]!.at_ms, other: this.slots[other]!.at_ms };
      this.outage.choose(...pick(at, other));
    });
  }

  private tellChosen(first: number, last: number): void {
    const stretch = this.slots.slice(first, last + 1).filter((slot) => slot.state !== COMING);
    if (stretch.length === 0) return put(this.picked);
    const rows = stretch.slice(0, 30).map((slot) =>
      h(
        'tr',
        {},
        h('td', { class: 'mono' }, slot.slot),
        h('td', {}, pill(slot.state.replaceAll('_', ' '), slotKind(slot.state))),
        h('td', { title: slot.started_at_ms ? exact(slot.started_at_ms) : '' }, slot.started_at_ms ? clock(slot.started_at_ms) : ''),
        h('td', { class: 'number' }, slot.started_at_ms && slot.ended_at_ms ? duration(slot.ended_at_ms - slot.started_at_ms) : ''),
        h('td', {}, slot.exit_code === null ? '' : `exit ${slot.exit_code}`),
        h('td', {}, slot.owner ? name(slot.owner) : '', slot.cause ? h('span', { class: 'dim' }, ' ', name(slot.cause, 'whole')) : ''),
      ),
    );
    put(
      this.picked,
      h('p', {}, h('b', {}, stretch.length === 1 ? 'What became of this slot: ' : `What became of these ${stretch.length} slots: `), words(stretch)),
      h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Chosen slots' }, h('table', {}, h('tbody', {}, ...rows))),
    );
  }
}

function words(slots: Slot[]): string {
  const sums = new Map<string, number>();
  for (const slot of slots) sums.set(slot.state, (sums.get(slot.state) ?? 0) + 1);
  return [...sums].map(([state, n]) => `${n} ${state.replaceAll('_', ' ')}`).join(', ');
}
