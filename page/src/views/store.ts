// What stands behind the server: version, generation, what it can lose, how fast it answers, how
// near renewals come to their end, and what doctor found.
import { get, getText, Refusal } from '../api.ts';
import { empty, h, name, pill, put, svg } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { duration } from '../time.ts';
import { doctorCard } from './doctor.ts';

interface Histogram {
  bounds: number[]; // seconds; the last is Infinity
  counts: number[]; // of each stretch
  total: number;
  sum: number;
}

// Prometheus text, as far as it is needed here.
class Samples {
  private readonly values = new Map<string, number>();
  constructor(text: string) {
    for (const line of text.split('\n')) {
      if (line.startsWith('#')) continue;
      const end = line.lastIndexOf(' ');
      if (end > 0) this.values.set(line.slice(0, end), Number(line.slice(end + 1)));
    }
  }
  value(key: string): number {
    return this.values.get(key) ?? 0;
  }
  family(family: string): [string, number][] {
    return [...this.values].filter(([key]) => key === family || key.startsWith(`${family}{`)).map(([key, n]) => [/="([^"]*)"/.exec(key)?.[1] ?? '', n]);
  }
  histogram(family: string): Histogram {
    const bounds: number[] = [];
    const counts: number[] = [];
    let below = 0;
    for (const [key, n] of this.values) {
      const le = key.startsWith(`${family}_bucket{`) ? /le="([^"]*)"/.exec(key)?.[1] : undefined;
      if (le === undefined) continue;
      bounds.push(le === '+Inf' ? Infinity : Number(le));
      counts.push(n - below);
      below = n;
    }
    return { bounds, counts, total: this.value(`${family}_count`), sum: this.value(`${family}_sum`) };
  }
}

function quantile(one: Histogram, share: number): string {
  let seen = 0;
  for (let i = 0; i < one.counts.length; i++) {
    seen += one.counts[i]!;
    if (seen >= one.total * share) return one.bounds[i] === Infinity ? `over ${tell(one.bounds[i - 1]!)}` : `under ${tell(one.bounds[i]!)}`;
  }
  return '–';
}
const tell = (seconds: number): string => (seconds === 0 ? '0' : seconds < 0.001 ? `${Math.round(seconds * 1e6)} µs` : seconds < 1 ? `${+(seconds * 1000).toFixed(1)} ms` : duration(seconds * 1000));

function chart(one: Histogram, label: string): HTMLElement {
  if (one.total === 0) return h('p', { class: 'dim' }, 'Nothing was measured yet.');
  const used = one.counts.map((n, i) => [n, i] as const).filter(([n]) => n > 0).map(([, i]) => i);
  const first = Math.max(0, Math.min(...used) - 1);
  const last = Math.min(one.counts.length - 1, Math.max(...used) + 1);
  const most = Math.max(...one.counts);
  const bars: HTMLElement[] = [];
  for (let i = first; i <= last; i++) {
    const n = one.counts[i]!;
    const words = `${one.bounds[i] === Infinity ? `over ${tell(one.bounds[i - 1] ?? 0)}` : `up to ${tell(one.bounds[i]!)}`}: ${n}`;
    const picture = svg('svg', { viewBox: '0 0 10 60', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('rect', { class: 'bin', x: 0, width: 10, y: (60 - (n / most) * 58).toFixed(1), height: ((n / most) * 58).toFixed(1) }));
    bars.push(h('div', { class: 'column', title: words }, picture as unknown as HTMLElement, h('span', {}, last - first > 7 && (i - first) % 2 === 1 ? '' : one.bounds[i] === Infinity ? 'more' : tell(one.bounds[i]!))));
  }
  return h(
    'div',
    {},
    h('p', { class: 'dim' }, `${one.total.toLocaleString()} measured · half ${quantile(one, 0.5)} · 99 of 100 ${quantile(one, 0.99)}`),
    h('div', { class: 'columns', role: 'img', 'aria-label': `${label}: half ${quantile(one, 0.5)}, 99 of 100 ${quantile(one, 0.99)}` }, ...bars),
  );
}

export const storeView: MakeView = (live) => {
  const facts = h('dl', { class: 'facts' });
  const doctor = doctorCard(live);
  const latency = h('div', {});
  const requests = h('div', {});
  const slack = h('div', {});
  const counted = h('dl', { class: 'facts' });
  const card = (title: string, ...inside: HTMLElement[]) => h('section', { class: 'card' }, h('h2', {}, title), ...inside);
  const measures = h('div', { class: 'grid' }, card('Time in the store', latency), card('Time of a request', requests), card('Left of a lease when it was renewed', slack), card('Since this server started', counted));
  const root = h('div', { class: 'view' }, h('div', { class: 'title' }, h('h1', {}, 'Store')), h('section', { class: 'card now' }, facts), measures, doctor.root);
  let over = false;
  let timer = 0;
  let trip = 0;
  const fact = (label: string, ...value: (Node | string)[]) => h('div', {}, h('dt', {}, label), h('dd', {}, ...value));

  const showFacts = (): void => {
    const store = live.facts!;
    put(
      facts,
      fact('Version', store.version),
      fact('Generation', h('span', { class: 'mono' }, store.generation.slice(0, 16), '…')),
      fact('Smallest ttl', tell(store.smallest_ttl_ms / 1000)),
      fact('Round trip from here', trip === 0 ? '–' : `${trip.toFixed(trip < 10 ? 1 : 0)} ms`),
      fact('Your key', store.key === '' ? 'none is asked for' : name(store.key), store.allow ? h('span', { class: 'dim' }, ` may ${store.allow.join(', ')}`) : ''),
      fact('What it can lose', store.caveat === '' ? pill('nothing that it acknowledged', 'good') : h('span', {}, pill('something', 'low'), ' ', name(store.caveat, 'whole'))),
    );
  };

  const read = async (): Promise<void> => {
    try {
      const began = performance.now();
      live.facts = { ...live.facts!, ...(await get<typeof live.facts>('/v1/store')) };
      trip = performance.now() - began;
      const samples = new Samples(await getText('/metrics'));
      if (over) return;
      showFacts();
      put(latency, chart(samples.histogram('stint_store_seconds'), 'Time in the store'));
      put(requests, chart(samples.histogram('stint_http_request_seconds'), 'Time of a request'));
      put(slack, chart(samples.histogram('stint_renewal_slack_seconds'), 'Left when renewed'));
      const sum = (family: string): string => samples.family(family).reduce((all, [, n]) => all + n, 0).toLocaleString();
      put(
        counted,
        fact('Grants', sum('stint_grants_total')),
        fact('Renewals', sum('stint_renewals_total')),
        fact('Releases', sum('stint_releases_total')),
        fact('Lost', sum('stint_lost_leases_total')),
        fact('Takeovers', sum('stint_takeovers_total')),
        fact('Refusals', sum('stint_refusals_total')),
        fact('Stale writes refused', sum('stint_stale_writes_refused_total')),
        fact('Connections', String(samples.value('stint_connections'))),
        fact('Waiting', String(samples.value('stint_waiters'))),
        fact('Streams', String(samples.value('stint_event_streams'))),
      );
    } catch (error) {
      if (over) return;
      if (error instanceof Refusal && error.status === 403) put(measures, empty('Your key may not see the measures', error.message));
    }
    if (!over) timer = window.setTimeout(() => void read(), 2000);
  };
  showFacts();
  void read();
  return {
    title: 'Store',
    body: root,
    end: () => {
      over = true;
      doctor.end();
      clearTimeout(timer);
    },
  };
};
