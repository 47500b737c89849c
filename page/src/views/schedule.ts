// Jobs and their slots: what ran, what failed, what was skipped and why, and what comes next.
import { get, post, Refusal, serves } from '../api.ts';
import { button, command, empty, h, name, pill, put, quote, say, svg } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { ago, clock, duration, exact, short } from '../time.ts';
import { slotKind } from '../words.ts';
import { unserved } from './unserved.ts';

interface Job {
  job: string;
  schedule?: string;
  tz?: string;
  paused?: boolean;
  next_at_ms?: number | null;
  resource?: string;
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

class JobCard {
  readonly root = h('section', { class: 'card job' });
  private readonly head = h('div', { class: 'title' });
  private readonly strip = h('div', { class: 'strip-box' });
  private readonly sums = h('div', { class: 'legend' });
  private readonly picked = h('div', { class: 'picked', 'aria-live': 'polite' });
  private readonly told = h('p', { class: 'told', role: 'alert' });
  private slots: Slot[] = [];
  private drawn = '';

  constructor(
    private job: Job,
    private readonly may: boolean,
    private readonly changed: () => void,
  ) {
    put(this.root, this.head, this.strip, this.sums, this.picked, this.told);
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
    put(
      this.head,
      h('h2', {}, name(job.job, 'whole')),
      job.paused ? pill('paused', 'low') : null,
      h('span', { class: 'mono dim' }, String(job.schedule ?? ''), job.tz ? ` ${job.tz}` : ''),
      h('span', { class: 'dim' }, job.paused ? '' : job.next_at_ms ? 'next ' : '', job.paused || !job.next_at_ms ? '' : ago(job.next_at_ms)),
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
    const slots = got.slots.toSorted((a, b) => a.at_ms - b.at_ms);
    const key = JSON.stringify(slots.map((slot) => [slot.key, slot.attempt, slot.state]));
    if (key === this.drawn) return;
    this.drawn = key;
    this.slots = slots;
    this.draw();
  }

  private draw(): void {
    if (this.slots.length === 0) {
      put(this.strip, h('p', { class: 'dim' }, 'No slot has come yet.'));
      put(this.sums);
      return;
    }
    const count = this.slots.length;
    const wide = Math.max(count, 40);
    const picture = svg('svg', { class: 'strip', viewBox: `0 0 ${wide * 10} 30`, preserveAspectRatio: 'none', role: 'img', tabindex: 0, 'aria-label': `${count} slots, from ${exact(this.slots[0]!.at_ms)}: ${this.words(this.slots)}` });
    const shift = (wide - count) * 10;
    this.slots.forEach((slot, i) => {
      const skip = slot.state.startsWith('skipped');
      picture.append(
        svg('rect', { class: `slot ${slotKind(slot.state)}`, x: shift + i * 10 + 1, y: skip ? 18 : 2, width: 8, height: skip ? 10 : 26 }, svg('title', {}, `${slot.slot}: ${slot.state.replaceAll('_', ' ')}${slot.exit_code ? `, exit ${slot.exit_code}` : ''}${slot.cause ? `, ${slot.cause}` : ''}`)),
      );
    });
    const band = svg('rect', { class: 'band', y: 0, height: 30, x: 0, width: 0 });
    picture.append(band);
    this.dragging(picture, band, shift, wide);
    put(this.strip, picture as unknown as HTMLElement, h('div', { class: 'ticks' }, h('span', {}, short(this.slots[0]!.at_ms)), h('span', {}, short(this.slots.at(-1)!.at_ms))));
    const states = [...new Set(this.slots.map((slot) => slot.state))];
    put(
      this.sums,
      ...states.map((state) => h('span', {}, h('i', { class: `swatch ${slotKind(state)}` }), `${state.replaceAll('_', ' ')} ${this.slots.filter((slot) => slot.state === state).length}`)),
      h('span', { class: 'dim' }, 'drag over the strip to ask about an outage'),
    );
  }

  private words(slots: Slot[]): string {
    const sums = new Map<string, number>();
    for (const slot of slots) sums.set(slot.state, (sums.get(slot.state) ?? 0) + 1);
    return [...sums].map(([state, n]) => `${n} ${state.replaceAll('_', ' ')}`).join(', ');
  }

  // A stretch that is dragged over: what became of its slots, and how to ask what an outage would do.
  private dragging(picture: SVGElement, band: SVGElement, shift: number, wide: number): void {
    let from = -1;
    const place = (event: PointerEvent): number => {
      const box = picture.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * wide * 10 - shift;
      return Math.max(0, Math.min(this.slots.length - 1, Math.floor(x / 10)));
    };
    const paint = (a: number, b: number): void => {
      band.setAttribute('x', String(shift + Math.min(a, b) * 10));
      band.setAttribute('width', String((Math.abs(a - b) + 1) * 10));
      this.explain(Math.min(a, b), Math.max(a, b));
    };
    picture.addEventListener('pointerdown', (event) => {
      from = place(event);
      picture.setPointerCapture(event.pointerId);
      paint(from, from);
    });
    picture.addEventListener('pointermove', (event) => {
      if (from >= 0) paint(from, place(event));
    });
    picture.addEventListener('pointerup', () => (from = -1));
    // By keyboard: the arrows move one end.
    let at = this.slots.length - 1;
    picture.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(this.slots.length - 1, at + by));
      paint(at, event.shiftKey ? this.slots.length - 1 : at);
    });
  }

  private explain(first: number, last: number): void {
    const stretch = this.slots.slice(first, last + 1);
    const begin = stretch[0]!;
    const end = stretch.at(-1)!;
    const utc = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
    const rows = stretch.slice(0, 30).map((slot) =>
      h(
        'tr',
        {},
        h('td', { class: 'mono' }, slot.slot),
        h('td', {}, pill(slot.state.replaceAll('_', ' '), slotKind(slot.state))),
        h('td', {}, slot.started_at_ms ? clock(slot.started_at_ms) : ''),
        h('td', { class: 'number' }, slot.started_at_ms && slot.ended_at_ms ? duration(slot.ended_at_ms - slot.started_at_ms) : ''),
        h('td', {}, slot.exit_code === null ? '' : `exit ${slot.exit_code}`),
        h('td', {}, slot.owner ? name(slot.owner) : '', slot.cause ? h('span', { class: 'dim' }, ` ${slot.cause}`) : ''),
      ),
    );
    put(
      this.picked,
      h('p', {}, h('b', {}, `${stretch.length} slots: `), this.words(stretch)),
      h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Chosen slots' }, h('table', {}, h('tbody', {}, ...rows))),
      h('p', { class: 'dim' }, 'What would run after an outage as long as this, and what would be skipped:'),
      command(`stint explain ${quote(this.job.job)} --down ${utc(begin.at_ms)}..${utc(end.at_ms)}`),
    );
  }
}

export const scheduleView: MakeView = (live) => {
  const jobs = h('div', { class: 'jobs' });
  const root = h('div', { class: 'view' }, h('div', { class: 'title' }, h('h1', {}, 'Schedule')), jobs);
  const cards = new Map<string, JobCard>();
  let over = false;
  let timer = 0;

  const read = async (): Promise<void> => {
    try {
      if (!(await serves('/v1/jobs'))) throw new Refusal(404, 'invalid', '');
      const got = await get<{ jobs: Job[] }>('/v1/jobs');
      if (over) return;
      if (got.jobs.length === 0) {
        cards.clear();
        put(jobs, empty('No job yet', 'Jobs stand in a file, and any number of schedulers may run it:', command('printf \'[job.hello]\\nschedule = "* * * * *"\\ncommand = ["date"]\\n\' > stint.toml'), command('stint cron')));
      } else {
        if (cards.size === 0) put(jobs);
        for (const job of got.jobs) {
          let card = cards.get(job.job);
          if (!card) {
            card = new JobCard(job, live.may('schedule') || live.may('operate'), () => void read());
            cards.set(job.job, card);
            jobs.append(card.root);
          }
          card.show(job);
        }
        await Promise.all(got.jobs.slice(0, 50).map((job) => cards.get(job.job)!.read().catch(() => {})));
      }
      next(5000);
    } catch (error) {
      if (over) return;
      cards.clear();
      put(jobs, unserved(error, 'schedules', 'stint slots JOB'));
      if (!(error instanceof Refusal) || error.status === 0 || error.status >= 500) next(3000);
    }
  };
  const next = (ms: number): void => {
    clearTimeout(timer);
    if (!over) timer = window.setTimeout(() => void read(), ms);
  };
  const KINDS = /^(ran|failed|lost|quarantined|skipped_|job_|schedule_)/;
  const off = live.onEvent((event) => {
    if (KINDS.test(event.kind)) next(200);
  });
  put(jobs, h('p', { class: 'dim loading' }, 'Reading the jobs …'));
  void read();
  return {
    title: 'Schedule',
    body: root,
    end: () => {
      over = true;
      off();
      clearTimeout(timer);
    },
  };
};
