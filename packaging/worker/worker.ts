// A store for Stint on Cloudflare: one Durable Object a store, one row a record.
//
// It compares and commits, as docs/reference/store-protocol.md says, and knows nothing of leases.
// Between two events the object keeps nothing but the streams of those who watch. Every event
// reads or writes its storage before it answers: an instance that was replaced cannot.

const PROTOCOL = 1;
const VERSION = "0.1.0";
const LAYOUT = 1;

const MOST_STEPS = 64;
const MOST_KEYS = 1000;
const MOST_KEY_BYTES = 1024;
const MOST_VALUE_BYTES = 6144; // 4096 bytes as the client writes them
const MOST_BODY_BYTES = 4 << 20;
const MOST_ENTRIES = 1000;
const MOST_PAGE_CHARS = 2 << 20;
const MOST_WAITING = 64; // words that a watcher has not taken
const MARK_EVERY_MS = 1000;
const BEAT_MS = 25_000;

interface Env {
  STORES: DurableObjectNamespace;
  STINT_KEY?: string;
  STINT_KEY_NEXT?: string; // accepted too, so that the secret can be changed
  LOCATION_HINT?: DurableObjectLocationHint;
}

// Nothing was changed. 507 says so too; any other 5xx leaves it open.
class Refused extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}
const invalid = (message: string) => new Refused(400, "invalid", message);

function answer(status: number, body: object): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
  });
}

function told(error: unknown): Response {
  if (error instanceof Refused) {
    return answer(error.status, { code: error.code, message: error.message, protocol: PROTOCOL });
  }
  return answer(500, { code: "unsure", message: String(error) });
}

// ---- The front: who may ask, and which object.

async function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

async function check_secret(request: Request, env: Env): Promise<void> {
  const secrets = [env.STINT_KEY, env.STINT_KEY_NEXT].filter((one) => one);
  if (secrets.length === 0) {
    throw new Refused(403, "denied", "this Worker has no secret: wrangler secret put STINT_KEY");
  }
  const given = await digest((request.headers.get("authorization") ?? "").replace(/^Bearer /, ""));
  for (const secret of secrets) {
    if (crypto.subtle.timingSafeEqual(given, await digest(secret!))) return;
  }
  throw new Refused(401, "denied", "this is not the secret of this Worker (STINT_KEY)");
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      const [, version, name, route, ...rest] = new URL(request.url).pathname.split("/");
      if (version !== `v${PROTOCOL}`) {
        throw new Refused(400, "protocol", `this Worker speaks protocol ${PROTOCOL}`);
      }
      await check_secret(request, env);
      const known = ["read", "scan", "commit", "watch"].includes(route) && rest.length === 0;
      if (!known || request.method !== "POST") throw new Refused(404, "absent", "no such route");
      const length = Number(request.headers.get("content-length") ?? MOST_BODY_BYTES + 1);
      if (!(length <= MOST_BODY_BYTES)) throw new Refused(413, "invalid", "the request is too long");
      const options = env.LOCATION_HINT ? { locationHint: env.LOCATION_HINT } : {};
      const stub = env.STORES.get(env.STORES.idFromName(decodeURIComponent(name)), options);
      return await stub.fetch(request);
    } catch (error) {
      return told(error);
    }
  },
};

// ---- The store.

interface Head {
  revision: number; // counts the commits that changed a record
  version: number; // the last one given
  mark: number; // a time that nobody may see again
  ahead: number; // of the machine's clock, which was set back
}
type Row = { key: string; value: string; version: number; fires_at: number | null; ttl: number | null };
interface Step {
  kind: "check" | "set" | "touch" | "remove" | "append";
  key: string;
  version?: string; // "0": absent; left out: any
  demand?: "none" | "running" | "fired";
  value?: string;
  timer?: "stop" | "start" | "extend";
  ttl_ms?: number;
}

const KINDS = ["check", "set", "touch", "remove", "append"];
const DEMANDS = [undefined, "none", "running", "fired"];
const TIMERS = [undefined, "stop", "start", "extend"];

const bytes = (text: string) => new TextEncoder().encode(text);

function check_text(text: unknown, most: number, what: string): void {
  if (typeof text !== "string") throw invalid(`${what} is not a text`);
  if (text.length > most || bytes(text).length > most) {
    throw invalid(`${what} is longer than ${most} bytes: ${text.slice(0, 80)}`);
  }
}

function check_steps(steps: unknown): asserts steps is Step[] {
  if (!Array.isArray(steps) || steps.length > MOST_STEPS) {
    throw invalid(`a commit has at most ${MOST_STEPS} steps`);
  }
  for (const step of steps) {
    check_text(step.key, MOST_KEY_BYTES, "a key");
    const writes = step.kind === "set" || step.kind === "append";
    if (writes) check_text(step.value, MOST_VALUE_BYTES, `the value of ${step.key}`);
    const times = step.timer === "start" || step.timer === "extend";
    const good =
      KINDS.includes(step.kind) &&
      DEMANDS.includes(step.demand) &&
      TIMERS.includes(step.timer) &&
      (step.version === undefined || /^[0-9]{1,16}$/.test(step.version)) &&
      (!times || (Number.isSafeInteger(step.ttl_ms) && step.ttl_ms! >= 0)) &&
      (step.timer !== "extend" || step.demand === "running");
    if (!good) throw invalid(`a step that is none: ${JSON.stringify(step).slice(0, 200)}`);
  }
}

export class StintStore {
  private readonly sql: SqlStorage;
  private readonly watchers = new Map<ReadableStreamDefaultController, string>();
  private beat: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly ctx: DurableObjectState) {
    this.sql = ctx.storage.sql;
  }

  async fetch(request: Request): Promise<Response> {
    try {
      const route = new URL(request.url).pathname.split("/")[3];
      const asked = (await request.json().catch(() => null)) as any;
      if (asked === null || typeof asked !== "object") throw invalid("the body is not JSON");
      // No `await` from here on: what follows is one transaction.
      const changed: string[] = [];
      const body = this.ctx.storage.transactionSync(() => {
        const head = this.head(asked.create === true);
        const event = new Moment(this.sql, head);
        switch (route) {
          case "read":
            return event.done(this.read(event, asked, request));
          case "scan":
            return event.done(this.scan(event, asked));
          case "commit":
            return event.done(this.commit(event, asked, changed));
          default:
            check_text(asked.key, MOST_KEY_BYTES, "a key");
            return null;
        }
      });
      if (body === null) return this.watch(asked.key);
      if (changed.length > 0) this.ctx.waitUntil(this.wake(changed));
      return answer(200, body);
    } catch (error) {
      const text = String(error);
      // The transaction was rolled back.
      if (/SQLITE_FULL|storage limit/i.test(text)) return told(new Refused(507, "full", text));
      if (/SQLITE_TOOBIG|too big/i.test(text)) return told(new Refused(413, "invalid", text));
      return told(error);
    }
  }

  private head(create: boolean): Head {
    const made = "SELECT 1 FROM sqlite_master WHERE name = 'head'";
    if (this.sql.exec(made).toArray().length === 0) {
      if (!create) throw new Refused(404, "absent", "there is no Stint store of this name");
      this.sql.exec(
        `CREATE TABLE head (layout INTEGER, revision INTEGER, version INTEGER, mark INTEGER,
                            ahead INTEGER);
         INSERT INTO head VALUES (${LAYOUT}, 0, 0, 0, 0);
         CREATE TABLE record (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL,
                              fires_at INTEGER, ttl INTEGER) WITHOUT ROWID;`,
      );
    }
    const row = this.sql.exec("SELECT * FROM head").one() as any;
    if (row.layout !== LAYOUT) {
      throw new Refused(400, "protocol", `a store of layout ${row.layout}; this Worker knows ${LAYOUT}`);
    }
    return row;
  }

  private read(event: Moment, asked: any, request: Request): object {
    if (!Array.isArray(asked.keys) || asked.keys.length > MOST_KEYS) {
      throw invalid(`a read has at most ${MOST_KEYS} keys`);
    }
    for (const key of asked.keys) check_text(key, MOST_KEY_BYTES, "a key");
    const rows = event.rows(asked.keys);
    const entries = asked.keys.map((key: string) => {
      const row = rows.get(key);
      return row ? event.shown(row) : null;
    });
    if (entries.length > 0) return { entries };
    const colo = (request as any).cf?.colo ?? "";
    return { entries, about: { worker: `Worker ${VERSION}`, colo, ahead_ms: event.head.ahead } };
  }

  private scan(event: Moment, asked: any): object {
    const { prefix, after = "", limit = MOST_ENTRIES, backwards = false, count = false } = asked;
    check_text(prefix, MOST_KEY_BYTES, "a prefix");
    check_text(after, MOST_KEY_BYTES, "a key");
    // 0xFF is in no text: above all that begins with the prefix. Compared byte by byte.
    const end = new Uint8Array([...bytes(prefix), 0xff]);
    const within = "key >= ? AND key < CAST(? AS TEXT)";
    if (count) {
      const one = this.sql.exec(`SELECT count(*) AS n FROM record WHERE ${within}`, prefix, end).one();
      return { count: one.n };
    }
    const most = Math.min(limit, MOST_ENTRIES);
    const side = after === "" ? "" : backwards ? "AND key < ?" : "AND key > ?";
    const rows = this.sql.exec(
      `SELECT * FROM record WHERE ${within} ${side} ORDER BY key ${backwards ? "DESC" : "ASC"} LIMIT ?`,
      ...[prefix, end, ...(side ? [after] : []), most],
    );
    const entries: object[] = [];
    let chars = 0;
    for (const row of rows as Iterable<any>) {
      entries.push({ key: row.key, ...event.shown(row) });
      chars += row.key.length + row.value.length;
      if (chars > MOST_PAGE_CHARS) break;
    }
    return { entries, more: entries.length === most || chars > MOST_PAGE_CHARS };
  }

  private commit(event: Moment, asked: any, changed: string[]): object {
    const steps: unknown = asked.steps;
    check_steps(steps);
    const failed = steps.findIndex((step) => !event.holds(step));
    if (failed >= 0) return { conflict: failed };
    const writes = steps.some((step) => step.kind !== "check" && step.kind !== "touch");
    if (writes) event.next_version();
    const versions = steps.map((step, i) => {
      if (step.kind !== "check" && step.kind !== "touch") changed.push(step.key);
      return String(event.apply(step, i));
    });
    return { versions };
  }

  // ---- Watching: a stream of words; its end is one too.

  private watch(key: string): Response {
    let own: ReadableStreamDefaultController;
    const stream = new ReadableStream({
      start: (controller) => {
        own = controller;
        this.watchers.set(controller, key);
        this.say(controller, "watching\n");
      },
      cancel: () => this.forget(own),
    });
    this.beat ??= setInterval(() => this.keep_alive(), BEAT_MS);
    return new Response(stream, { headers: { "cache-control": "no-store" } });
  }

  private async wake(keys: string[]): Promise<void> {
    await this.ctx.storage.sync();
    for (const [controller, key] of this.watchers) {
      if (keys.includes(key)) this.say(controller, "changed\n");
    }
  }

  private say(controller: ReadableStreamDefaultController, word: string): void {
    try {
      // Enough words wait for whoever does not read.
      if ((controller.desiredSize ?? 0) > -MOST_WAITING) controller.enqueue(bytes(word));
    } catch {
      this.forget(controller);
    }
  }

  private forget(controller: ReadableStreamDefaultController): void {
    this.watchers.delete(controller);
    if (this.watchers.size > 0 || this.beat === undefined) return;
    clearInterval(this.beat);
    this.beat = undefined;
  }

  // What stands between closes a stream that is silent; an instance that was replaced ends here.
  private keep_alive(): void {
    let replaced = false;
    try {
      this.sql.exec("SELECT mark FROM head").toArray();
    } catch {
      replaced = true;
    }
    for (const controller of [...this.watchers.keys()]) {
      if (!replaced) {
        this.say(controller, "\n");
        continue;
      }
      this.forget(controller);
      controller.error(new Error("this instance was replaced"));
    }
  }
}

// One event at one moment of the store's time.
class Moment {
  readonly now: number;
  private relied: number; // a time that this answer lets somebody rely on

  constructor(private readonly sql: SqlStorage, readonly head: Head) {
    const clock = Date.now() + head.ahead;
    // A clock that was set back goes on from where it was. The distance is kept at once, also by a
    // read: else time would stand still until the clock has come back.
    this.now = Math.max(clock, head.mark);
    this.before = { ...head };
    head.ahead += this.now - clock;
    this.relied = head.mark;
  }
  private readonly before: Head;

  // Writes what must be kept of this event, and adds what every answer says.
  done(body: object): object {
    const { head, before } = this;
    const moved = head.revision !== before.revision || head.ahead !== before.ahead;
    if (moved || this.relied > before.mark || this.now - before.mark >= MARK_EVERY_MS) {
      const set = "UPDATE head SET revision = ?, version = ?, mark = ?, ahead = ?";
      this.sql.exec(set, head.revision, head.version, this.now, head.ahead);
    }
    return { revision: String(head.revision), now_ms: this.now, ...body };
  }

  // Made from the time, so that a store that was restored from a backup gives none twice: a holder
  // from before must not find its own version at another's record.
  next_version(): void {
    this.head.revision += 1;
    this.head.version = Math.max(this.head.version + 1, this.now * 1000);
  }

  // A statement has at most 100 parameters.
  rows(keys: string[]): Map<string, Row> {
    const found = new Map<string, Row>();
    for (let i = 0; i < keys.length; i += 64) {
      const some = keys.slice(i, i + 64);
      const marks = some.map(() => "?").join(",");
      const rows = this.sql.exec(`SELECT * FROM record WHERE key IN (${marks})`, ...some);
      for (const row of rows as unknown as Iterable<Row>) found.set(row.key, row);
    }
    return found;
  }

  row(key: string): Row | undefined {
    return this.sql.exec("SELECT * FROM record WHERE key = ?", key).toArray()[0] as Row | undefined;
  }

  // Once anybody was told that a timer has fired, it has, whatever the clock does later.
  state(row: Row | undefined): "none" | "running" | "fired" {
    if (row === undefined || row.fires_at === null) return "none";
    if (row.fires_at > this.now) return "running";
    this.relied = Math.max(this.relied, row.fires_at);
    return "fired";
  }

  shown(row: Row): object {
    const one = { value: row.value, version: String(row.version) };
    if (this.state(row) === "none") return one;
    return { ...one, ttl_ms: row.ttl, left_ms: Math.min(row.fires_at! - this.now, row.ttl!) };
  }

  holds(step: Step): boolean {
    if (step.kind === "append") return true;
    const row = this.row(step.key);
    if (step.version !== undefined && Number(step.version) !== (row?.version ?? 0)) return false;
    if (step.kind === "touch" && row === undefined) return false;
    return step.demand === undefined || step.demand === this.state(row);
  }

  // What the record's version is now.
  apply(step: Step, index: number): number {
    const { revision, version } = this.head;
    const put = "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?)";
    if (step.kind === "remove") {
      this.sql.exec("DELETE FROM record WHERE key = ?", step.key);
      return 0;
    }
    if (step.kind === "append") {
      const number = String(revision * MOST_STEPS + index).padStart(16, "0");
      this.sql.exec(put, step.key + number, step.value!, version, null, null);
      return 0;
    }
    const row = this.row(step.key);
    if (step.kind === "check" || (step.kind === "touch" && step.timer === undefined)) {
      return row?.version ?? 0;
    }
    const { fires_at, ttl } = this.timer(step, row);
    if (step.kind === "touch") {
      this.sql.exec("UPDATE record SET fires_at = ?, ttl = ? WHERE key = ?", fires_at, ttl, step.key);
      return row!.version;
    }
    this.sql.exec(put, step.key, step.value!, version, fires_at, ttl);
    return version;
  }

  private timer(step: Step, row: Row | undefined): { fires_at: number | null; ttl: number | null } {
    const kept = { fires_at: row?.fires_at ?? null, ttl: row?.ttl ?? null };
    if (step.timer === undefined) return kept;
    if (step.timer === "stop") return { fires_at: null, ttl: null };
    const asked = { fires_at: this.now + step.ttl_ms!, ttl: step.ttl_ms! };
    // An end that is later stays, with the length that it came from.
    const later = step.timer === "extend" && kept.fires_at !== null && kept.fires_at > asked.fires_at;
    return later ? kept : asked;
  }
}
