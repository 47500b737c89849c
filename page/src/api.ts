// Asking the server: the key goes in a header, never in an address; it stays in memory or in this
// tab's session storage.

export interface Lease {
  resource: string;
  held: boolean;
  state: 'free' | 'held' | 'reserved' | 'resting';
  owner: string;
  token: number;
  generation: string;
  reason: string | null;
  ttl_ms: number;
  remaining_ms: number | null;
  acquired_at_ms: number | null;
  renewed_at_ms: number | null;
  note: string;
  progress: string;
  progress_at_ms: number | null;
  by?: string;
  why?: string;
}

export interface Past {
  token: number;
  owner: string;
  reason: string;
  by: string | null;
  why: string | null;
  acquired_at_ms: number | null;
  ended_at_ms: number | null;
  ended: string | null;
}

export interface StintEvent {
  at_ms: number;
  kind: string;
  resource: string | null;
  token: number | null;
  owner: string | null;
  number: string;
  [further: string]: string | number | null;
}

export interface StoreFacts {
  generation: string;
  smallest_ttl_ms: number;
  caveat: string;
  trouble?: string; // why the store is refused; empty: it is well
  version: string;
  key: string;
  allow?: string[];
  prefixes?: string[];
  demo?: boolean;
}

// What the server said, or why nothing was heard of it.
export class Refusal extends Error {
  constructor(
    readonly status: number, // 0: the server could not be reached
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const KEPT = 'stint.key';
let key = read();
let signedOut: (why: string) => void = () => {};

function read(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? '';
  } catch {
    return '';
  }
}

export function useKey(next: string, keep: boolean): void {
  key = next;
  try {
    if (keep && next !== '') sessionStorage.setItem(KEPT, next);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // No storage here: the key is in memory, which is enough.
  }
}
export const hasKey = (): boolean => key !== '';
export function onSignedOut(act: (why: string) => void): void {
  signedOut = act;
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  return key === '' ? more : { Authorization: `Bearer ${key}`, ...more };
}

async function refusalOf(answer: Response): Promise<Refusal> {
  let code = 'failed';
  let message = `the server answered ${answer.status}`;
  try {
    const body = (await answer.json()) as { error?: { code?: string; message?: string } };
    code = body.error?.code ?? code;
    message = body.error?.message ?? message;
  } catch {
    // Not ours: something stands between.
  }
  return new Refusal(answer.status, code, message);
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  const used = key;
  let answer: Response;
  try {
    answer = await fetch(path, { cache: 'no-store', credentials: 'omit', redirect: 'error', ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Refusal(0, 'unavailable', 'the server cannot be reached');
  }
  if (answer.ok) return answer;
  const refusal = await refusalOf(answer);
  // Of the key that is used now: an answer to an old one ends nothing.
  if (answer.status === 401 && used === key) signedOut(refusal.message);
  throw refusal;
}

type Query = Record<string, string | number | undefined>;

function address(path: string, query: Query): string {
  const words = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return words.length === 0 ? path : `${path}?${words.join('&')}`;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const answer = await ask(address(path, query), { headers: headers(), signal: signal ?? null });
  return (await answer.json()) as T;
}

// Which paths this server has: a page may be newer than its server, and asking for what is not
// there would only make noise.
let paths: Promise<Set<string>> | null = null;
export async function serves(path: string): Promise<boolean> {
  paths ??= get<{ paths: Record<string, unknown> }>('/v1/openapi.json').then((document) => new Set(Object.keys(document.paths)));
  try {
    return (await paths).has(path);
  } catch (error) {
    paths = null;
    throw error;
  }
}

export async function getText(path: string): Promise<string> {
  return (await ask(path, { headers: headers() })).text();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await ask(path, {
    method: 'POST',
    headers: headers({ 'Content-Type': 'application/json', 'Idempotency-Key': crypto.getRandomValues(new Uint32Array(4)).join('-') }),
    body: JSON.stringify(body),
  });
  return (await answer.json()) as T;
}

// The ledger as it grows. EventSource cannot send a header, so the stream is read by hand.
export async function follow(
  after: string,
  signal: AbortSignal,
  opened: () => void,
  told: (event: StintEvent) => void,
): Promise<void> {
  const more: Record<string, string> = { Accept: 'text/event-stream' };
  if (after !== '') more['Last-Event-ID'] = after;
  const answer = await ask('/v1/events', { headers: headers(more), signal });
  opened();
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), 45_000);
      if (done) return;
      rest += value;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        const event = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event) told(event);
      }
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

// The server is heard at least every 15 s: a silent connection is a dead one.
function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Refusal(0, 'unavailable', 'the stream went silent')), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function parse(block: string): StintEvent | null {
  const data = block
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trimStart())
    .join('\n');
  if (data === '' || data === '{}') return null;
  return JSON.parse(data) as StintEvent;
}
