// How long runs took, with the present and the advised ttl.
import { command, h, quote, svg } from '../dom.ts';
import { duration } from '../time.ts';

export interface Tune {
  name: string;
  count: number;
  unclean: number;
  p50_ms: number;
  p95_ms: number;
  worst_ms: number;
  ttl_ms: number;
  slack_ms: number | null;
  advised_ttl_ms?: number;
  advised_renewed_ttl_ms?: number;
  flags: string;
  bins: { from_ms: number; to_ms: number; count: number }[];
}

const WIDTH = 1000;
const HEIGHT = 120;

export function histogram(tune: Tune | null): HTMLElement {
  if (tune === null) return h('p', { class: 'dim' }, 'This server is older than its page: it does not tell.');
  if (tune.bins.length === 0) return h('p', { class: 'dim' }, 'No run has ended yet.');
  const marks: [string, string, number][] = [['present', 'ttl now', tune.ttl_ms]];
  if (tune.advised_ttl_ms) marks.push(['advised', 'advised without renewal', tune.advised_ttl_ms]);
  if (tune.advised_renewed_ttl_ms) marks.push(['renewed', 'advised with renewal', tune.advised_renewed_ttl_ms]);
  const longest = Math.max(tune.bins.at(-1)!.to_ms, ...marks.map(([, , at]) => at)) * 1.04;
  const highest = Math.max(...tune.bins.map((bin) => bin.count));
  const x = (ms: number): number => (ms / longest) * WIDTH;
  const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', class: 'histogram', role: 'img', 'aria-label': `${tune.count} runs, half of them shorter than ${duration(tune.p50_ms)}, the worst ${duration(tune.worst_ms)}` });
  for (const bin of tune.bins) {
    if (bin.count === 0) continue;
    const tall = Math.max(3, (bin.count / highest) * (HEIGHT - 6));
    picture.append(
      svg('rect', { class: 'bin', x: (x(bin.from_ms) + 1).toFixed(1), width: Math.max(3, x(bin.to_ms) - x(bin.from_ms) - 2).toFixed(1), y: (HEIGHT - tall).toFixed(1), height: tall.toFixed(1) }, svg('title', {}, `${bin.count} runs of ${duration(bin.from_ms)} to ${duration(bin.to_ms)}`)),
    );
  }
  for (const [kind, , at] of marks) picture.append(svg('line', { class: `ttl ${kind}`, x1: x(at).toFixed(1), x2: x(at).toFixed(1), y1: 0, y2: HEIGHT, 'vector-effect': 'non-scaling-stroke' }));
  const legend = marks.map(([kind, text, at]) => h('span', {}, h('i', { class: `swatch ttl-${kind}` }), `${text}: ${duration(at)}`));
  const facts = tune.p50_ms > 0 ? `${tune.count} runs · half under ${duration(tune.p50_ms)} · 95 of 100 under ${duration(tune.p95_ms)} · worst ${duration(tune.worst_ms)}` : `${tune.count} runs`;
  return h(
    'div',
    {},
    h('p', { class: 'dim' }, facts),
    picture as unknown as HTMLElement,
    h('div', { class: 'ticks' }, ...[0, 0.25, 0.5, 0.75, 1].map((part) => h('span', {}, part === 0 ? '0' : duration(longest * part)))),
    h('div', { class: 'legend' }, ...legend),
    ...tune.flags.split('; ').filter((flag) => flag !== '').map((flag) => h('p', { class: 'flag' }, flag)),
    h('details', {}, h('summary', {}, 'The same on the command line'), command(`stint tune ${quote(tune.name)}`)),
  );
}
