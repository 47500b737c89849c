// What the page knows, kept up to date: leases by sweeping over their pages, and the ledger by its
// stream. Renewals are not in the ledger, so what is in sight is read anew each second.
import { follow, get, Refusal, serves, type Lease, type StintEvent, type StoreFacts } from './api.ts';

export interface Row {
  lease: Lease;
  until: number; // performance.now() at which it runs out; 0: unknown or nothing runs
  words: string; // what a filter looks through, in lower case
  seen: number; // the sweep that saw it last
  late: number[]; // wall times at which a renewal was seen to be overdue
  lateFor: number; // the renewal that was last counted as late
}

export type Link = 'connecting' | 'live' | 'lost';

const PAGE = 250;
const EVENTS_KEPT = 3000;
const PACE = 200; // between two pages of a sweep

export class Live {
  readonly rows = new Map<string, Row>();
  sorted: Row[] = [];
  events: StintEvent[] = []; // oldest first
  waiters = new Map<string, { owner: string; waiting_ms: number }[]>();
  facts: StoreFacts | null = null;
  link: Link = 'connecting';
  fault: Refusal | null = null; // why leases cannot be listed
  loaded = false;
  membership = 0; // grows when a lease comes or goes
  changes = 0; // grows whenever anything changed
  inSight: () => string[] = () => [];
  private after = '';
  private sweepNumber = 0;
  private readonly dirty = new Set<string>();
  private fetching = 0;
  private listeners = new Set<() => void>();
  private eventListeners = new Set<(event: StintEvent) => void>();
  private ending = new AbortController();
  private scheduled = false;
  private servesWaiters = true;

  onChange(act: () => void): () => void {
    this.listeners.add(act);
    return () => this.listeners.delete(act);
  }
  onEvent(act: (event: StintEvent) => void): () => void {
    this.eventListeners.add(act);
    return () => this.eventListeners.delete(act);
  }

  may(right: string): boolean {
    return this.facts?.allow === undefined || this.facts.allow.length === 0 || this.facts.allow.includes(right);
  }

  start(facts: StoreFacts): void {
    this.facts = facts;
    void this.followForEver();
    void this.sweepForEver();
    void this.lookForEver();
    const timers = [setInterval(() => this.expire(), 250), setInterval(() => void this.askServer(), 5000)];
    this.ending.signal.addEventListener('abort', () => timers.forEach(clearInterval));
  }
  stop(): void {
    this.ending.abort();
  }
  get ended(): boolean {
    return this.ending.signal.aborted;
  }

  // The server tells it of what it has seen: its store is not asked.
  private async askServer(): Promise<void> {
    try {
      this.facts = { ...this.facts!, ...(await get<StoreFacts>('/v1/store', {}, this.ending.signal)) };
      this.changed();
    } catch {
      // Told by `link`.
    }
  }

  // At most once a frame, whatever came.
  private changed(): void {
    this.changes++;
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      for (const act of this.listeners) act();
    }, 30);
  }

  private async pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  // ---- the ledger

  private async followForEver(): Promise<void> {
    let wait = 300;
    while (!this.ending.signal.aborted) {
      try {
        if (this.after === '') await this.recent();
        await follow(
          this.after,
          this.ending.signal,
          () => {
            wait = 300;
            if (this.link === 'lost') this.resume();
            this.link = 'live';
            this.changed();
          },
          (event) => this.told(event),
        );
      } catch {
        // Told by `link`; sign-out is told by the api.
      }
      if (this.ending.signal.aborted) return;
      if (this.link !== 'lost') {
        this.link = 'lost';
        this.changed();
      }
      await this.pause(wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 5000);
    }
  }

  private async recent(): Promise<void> {
    // A key with several prefixes must name the one that it asks for.
    const prefixes = this.facts?.prefixes?.length ? this.facts.prefixes : [''];
    const lists = await Promise.all(
      prefixes.map((prefix) => get<{ events: StintEvent[] }>('/v1/events', { prefix, newest: 'true', limit: 1000 }, this.ending.signal)),
    );
    const all = lists.flatMap((one) => one.events).sort((a, b) => (a.number < b.number ? -1 : 1));
    this.events = all.filter((one, i) => i === 0 || all[i - 1]!.number !== one.number);
    this.after = this.events.at(-1)?.number ?? '';
    this.changed();
  }

  private told(event: StintEvent): void {
    if (event.number <= this.after) return;
    this.after = event.number;
    this.events.push(event);
    if (this.events.length > EVENTS_KEPT) this.events.splice(0, this.events.length - EVENTS_KEPT + 500);
    if (event.resource) this.dirty.add(event.resource);
    for (const act of this.eventListeners) act(event);
    void this.freshen();
    this.changed();
  }

  // After a pause nothing that is shown is known to be true.
  private resume(): void {
    for (const resource of this.inSight()) this.dirty.add(resource);
    void this.freshen();
  }

  // What events named is read anew, a few at a time; a flood is left to the sweep.
  private async freshen(): Promise<void> {
    const MOST = 4;
    if (this.dirty.size > 200) {
      this.dirty.clear();
      return;
    }
    while (this.fetching < MOST && this.dirty.size > 0) {
      const resource = this.dirty.values().next().value as string;
      this.dirty.delete(resource);
      this.fetching++;
      get<Lease>('/v1/lease', { resource }, this.ending.signal)
        .then((lease) => {
          if (lease.token === 0 && !lease.held) this.forget(resource);
          else this.learn(lease);
        })
        .catch(() => {})
        .finally(() => {
          this.fetching--;
          void this.freshen();
        });
    }
  }
  refresh(resource: string): void {
    this.dirty.add(resource);
    void this.freshen();
  }

  // ---- the leases

  private learn(lease: Lease): Row {
    const now = performance.now();
    const until = lease.remaining_ms !== null && lease.state !== 'free' ? now + lease.remaining_ms : 0;
    const words = `${lease.resource}\n${lease.owner}\n${lease.note}\n${lease.progress}`;
    const old = this.rows.get(lease.resource);
    if (old) {
      // An answer that was overtaken by a newer one.
      if (lease.token < old.lease.token) return old;
      if (old.lease.token !== lease.token) old.late = [];
      if (old.words.length !== words.length || old.lease.owner !== lease.owner || old.lease.note !== lease.note || old.lease.progress !== lease.progress)
        old.words = words.toLowerCase();
      if (old.lease.state !== lease.state) this.membership++;
      old.lease = lease;
      old.until = until;
      old.seen = this.sweepNumber;
      this.changed();
      return old;
    }
    const row: Row = { lease, until, words: words.toLowerCase(), seen: this.sweepNumber, late: [], lateFor: 0 };
    this.rows.set(lease.resource, row);
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.sorted[middle]!.lease.resource < lease.resource) low = middle + 1;
      else high = middle;
    }
    if (low === this.sorted.length) this.sorted.push(row);
    else this.sorted.splice(low, 0, row);
    this.membership++;
    this.changed();
    return row;
  }

  private forget(resource: string): void {
    const row = this.rows.get(resource);
    if (!row) return;
    this.rows.delete(resource);
    this.sorted = this.sorted.filter((one) => one !== row);
    this.membership++;
    this.changed();
  }

  // Expiry writes nothing into the ledger: the page counts down by itself, then asks.
  private expire(): void {
    const now = performance.now();
    const wall = Date.now();
    let asked = 0;
    for (const row of this.sorted) {
      if (row.until === 0) continue;
      const left = row.until - now;
      const { lease } = row;
      // Holders renew at a third of the ttl: past a half, one was missed.
      if (lease.held && left < lease.ttl_ms / 2 && left > 0 && row.lateFor !== (lease.renewed_at_ms ?? 0)) {
        row.lateFor = lease.renewed_at_ms ?? 0;
        row.late.push(wall);
        if (row.late.length > 50) row.late.shift();
      }
      if (left > -300 || this.link !== 'live' || asked >= 20) continue;
      asked++;
      row.until = 0;
      this.refresh(lease.resource);
    }
  }

  private async sweepForEver(): Promise<void> {
    while (!this.ending.signal.aborted) {
      const began = performance.now();
      try {
        await this.sweep();
        if (this.fault) this.changed();
        this.fault = null;
      } catch (error) {
        if (this.ending.signal.aborted) return;
        if (error instanceof Refusal && error.status !== 0 && error.status < 500) {
          this.fault = error;
          this.loaded = true;
          this.changed();
        }
        await this.pause(1000);
      }
      // Hidden: nobody looks.
      while (document.hidden && !this.ending.signal.aborted) await this.pause(500);
      await this.pause(Math.max(PACE, 1000 - (performance.now() - began)));
    }
  }

  private async sweep(): Promise<void> {
    const number = ++this.sweepNumber;
    const prefixes = this.facts?.prefixes?.length ? this.facts.prefixes : [''];
    for (const prefix of prefixes) {
      let after = '';
      for (;;) {
        const page = await get<{ leases: Lease[]; next?: string }>('/v1/leases', { prefix, after, limit: PAGE }, this.ending.signal);
        for (const lease of page.leases) this.learn(lease);
        if (page.next === undefined) break;
        after = page.next;
        await this.pause(this.loaded ? PACE : 0);
      }
    }
    // Not there any more; what came meanwhile has this number too.
    const gone = this.sorted.filter((row) => row.seen < number);
    if (gone.length > 0) {
      for (const row of gone) this.rows.delete(row.lease.resource);
      this.sorted = this.sorted.filter((row) => row.seen >= number);
      this.membership++;
    }
    this.loaded = true;
    this.changed();
  }

  // What is in sight, each second; and who waits.
  private async lookForEver(): Promise<void> {
    while (!this.ending.signal.aborted) {
      await this.pause(1000);
      if (document.hidden || this.link !== 'live') continue;
      try {
        await this.lookAt(this.inSight());
        await this.lookAtWaiters();
      } catch {
        // The next turn, or the stream, tells.
      }
    }
  }

  private async lookAt(names: string[]): Promise<void> {
    // A short list is swept as a whole each second anyway.
    if (names.length === 0 || this.sorted.length <= PAGE) return;
    const wanted = new Set(names);
    const places = this.sorted.flatMap((row, i) => (wanted.has(row.lease.resource) ? [i] : []));
    const first = places[0];
    const last = places.at(-1);
    if (first === undefined || last === undefined || last - first >= PAGE) return;
    const page = await get<{ leases: Lease[] }>('/v1/leases', {
      after: first > 0 ? this.sorted[first - 1]!.lease.resource : undefined,
      limit: last - first + 1,
    }, this.ending.signal);
    for (const lease of page.leases) this.learn(lease);
  }

  private async lookAtWaiters(): Promise<void> {
    if (!this.servesWaiters) return;
    try {
      if (!(await serves('/v1/waiters'))) this.servesWaiters = false;
      if (!this.servesWaiters || this.ending.signal.aborted) return;
      const got = await get<{ waiters: { resource: string; owner: string; waiting_ms: number }[] }>('/v1/waiters', {}, this.ending.signal);
      const before = this.waiters;
      this.waiters = new Map();
      for (const one of got.waiters) {
        const line = this.waiters.get(one.resource) ?? [];
        line.push(one);
        this.waiters.set(one.resource, line);
      }
      if (before.size > 0 || this.waiters.size > 0) this.changed();
    } catch (error) {
      if (error instanceof Refusal && (error.status === 404 || error.status === 403)) this.servesWaiters = false;
    }
  }
}

// Alive but stuck: it renews, and what it last reported is old. Who never reported cannot be told.
export function stuckFor(lease: Lease, now = Date.now()): number {
  if (!lease.held || lease.progress_at_ms === null) return 0;
  const age = now - lease.progress_at_ms;
  return age > Math.max(3 * lease.ttl_ms, 30_000) ? age : 0;
}
