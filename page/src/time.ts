// Times for people: relative, and exact on hover.
import { h } from './dom.ts';

const UNITS: [number, string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
];

// "1h 12m", "42s", "0.4s"
export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  let rest = ms;
  const parts: string[] = [];
  for (const [size, unit] of UNITS) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n}${unit}`);
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

// The grain of what is only glanced at: "now", "12s", "3m", "2h", "5d".
export function rough(ms: number): string {
  if (ms < 1000) return 'now';
  for (const [size, unit] of UNITS) if (ms >= size) return `${Math.floor(ms / size)}${unit}`;
  return 'now';
}

export function relative(at: number, now = Date.now()): string {
  const age = now - at;
  if (age < -1000) return `in ${rough(-age)}`;
  return age < 1000 ? 'now' : `${rough(age)} ago`;
}

const EXACT = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});
export const exact = (at: number): string => EXACT.format(at);
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const SHORT = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
export const clock = (at: number): string => CLOCK.format(at);
export const short = (at: number): string => SHORT.format(at);

// Kept up to date by tick(), for as long as it stands in the page.
export function ago(at: number | null | undefined): HTMLElement {
  if (at === null || at === undefined) return h('span', { class: 'dim' }, '–');
  return h('time', { datetime: new Date(at).toISOString(), 'data-at': at, title: exact(at) }, relative(at));
}

function tick(): void {
  const now = Date.now();
  for (const one of document.querySelectorAll<HTMLElement>('time[data-at]')) {
    const text = relative(Number(one.dataset['at']), now);
    if (one.textContent !== text) one.textContent = text;
  }
}
setInterval(tick, 1000);
