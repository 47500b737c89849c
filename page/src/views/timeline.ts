// Who had a lease: one bar a grant, in a lane for each holder, coloured by how it ended; marks for
// late renewals, progress, and writes that were refused.
import type { Lease, Past, StintEvent } from '../api.ts';
import { h, name, svg, visible } from '../dom.ts';
import { clock, duration, exact, short } from '../time.ts';
import { endedKind, reasonText } from '../words.ts';

const WIDTH = 1000;
const LANE = 26;
const MOST_LANES = 8;
const MOST_GRANTS = 60;

export function timeline(grants: Past[], events: StintEvent[], lease: Lease | null, late: number[]): HTMLElement {
  const drawn = grants.filter((one) => one.acquired_at_ms !== null).slice(0, MOST_GRANTS);
  if (drawn.length === 0) return h('p', { class: 'dim' }, 'No grant is on record yet.');
  const oldest = drawn.at(-1)!.acquired_at_ms!;
  // Up to now; of what ended long ago, up to a little after that.
  const wall = Date.now();
  const last = Math.max(...drawn.map((one) => one.ended_at_ms ?? one.acquired_at_ms!), ...events.filter((event) => event.kind === 'write_refused').map((event) => event.at_ms));
  const stands = lease?.held ?? true;
  const now = stands ? wall : Math.min(wall, last + Math.max(2000, (last - oldest) * 0.25));
  const from = oldest - Math.max(200, (now - oldest) * 0.01);
  const span = Math.max(1000, now - from);
  const x = (at: number): number => ((Math.min(Math.max(at, from), now) - from) / span) * WIDTH;

  // The newest holders have lanes of their own.
  const owners = [...new Set(drawn.map((one) => one.owner))];
  const lanes = owners.slice(0, MOST_LANES);
  const crowded = owners.length > lanes.length;
  const laneOf = (owner: string): number => {
    const i = lanes.indexOf(owner);
    return i < 0 ? lanes.length : i;
  };
  const count = lanes.length + (crowded ? 1 : 0);
  const height = count * LANE;

  const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: 'none', class: 'timeline', role: 'img', 'aria-label': `${drawn.length} grants of ${owners.length} holders since ${exact(oldest)}; the table below has them all` });
  picture.style.height = `${height}px`;
  for (let i = 0; i < count; i++) picture.append(svg('rect', { class: 'lane', x: 0, y: i * LANE + 4, width: WIDTH, height: LANE - 8 }));
  for (const one of drawn) {
    const begin = x(one.acquired_at_ms!);
    const until = one.ended_at_ms ?? (one.ended === null && (lease?.held ?? true) ? now : one.acquired_at_ms!);
    const kind = one.ended === null && !(lease?.held ?? true) ? 'plain' : endedKind(one.ended);
    const text = `${visible(one.owner) || 'nobody'}, token ${one.token}: ${duration(until - one.acquired_at_ms!)}, ${one.ended === null ? 'stands' : reasonText(one.ended)}`;
    picture.append(
      svg('rect', { class: `grant ${kind}`, x: begin.toFixed(1), y: laneOf(one.owner) * LANE + 4, width: Math.max(3, x(until) - begin).toFixed(1), height: LANE - 8 }, svg('title', {}, text)),
    );
  }
  const mark = (kind: string, at: number, owner: string, text: string): void => {
    if (at < from) return;
    const y = laneOf(owner) * LANE;
    picture.append(svg('rect', { class: `mark ${kind}`, x: (x(at) - 1.5).toFixed(1), y, width: 3, height: LANE }, svg('title', {}, `${text}, ${exact(at)}`)));
  };
  let refused = 0;
  for (const event of events) {
    if (event.kind === 'write_refused') {
      refused++;
      mark('refused', event.at_ms, event.owner ?? '', `a write of token ${event.token ?? 'none'} was refused (${String(event['cause'] ?? '')})`);
    }
    const slack = event['slack_ms'];
    if (event.kind === 'run_measured' && typeof slack === 'number' && lease && slack < lease.ttl_ms / 4) mark('late', event.at_ms, event.owner ?? '', `a renewal came only ${duration(slack)} before the deadline`);
  }
  for (const at of late) mark('late', at, lease?.owner ?? '', 'a renewal was overdue');
  if (lease?.held && lease.progress_at_ms !== null) mark('progress', lease.progress_at_ms, lease.owner, `progress: ${visible(lease.progress)}`);

  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = from + span * part;
    return h('span', { title: exact(at) }, part === 1 && now === wall ? 'now' : span > 86_400_000 ? short(at) : clock(at));
  });
  const legend = [...new Set(drawn.map((one) => endedKind(one.ended)))].map((kind) => {
    const words = [...new Set(drawn.filter((one) => endedKind(one.ended) === kind).map((one) => one.ended?.replaceAll('_', ' ') ?? (lease?.held ? 'held now' : 'ended')))];
    return h('span', {}, h('i', { class: `swatch ${kind}` }), words.join(', '));
  });
  if (refused > 0) legend.push(h('span', {}, h('i', { class: 'swatch refused' }), 'refused write'));
  if (lease?.held && lease.progress_at_ms !== null && lease.progress_at_ms >= from) legend.push(h('span', {}, h('i', { class: 'swatch progress' }), 'last progress'));
  if (late.length > 0) legend.push(h('span', {}, h('i', { class: 'swatch late' }), 'renewal overdue'));
  const labels = [...lanes.map((owner) => (owner === '' ? h('span', { class: 'dim' }, 'nobody') : name(owner))), ...(crowded ? [h('span', { class: 'dim' }, `${owners.length - lanes.length} others`)] : [])];
  return h(
    'div',
    { class: 'time-box' },
    h('div', { class: 'lanes' }, ...labels),
    h('div', { class: 'time-right' }, picture as unknown as HTMLElement, h('div', { class: 'ticks' }, ...ticks)),
    h('div', { class: 'legend' }, ...legend),
  );
}
