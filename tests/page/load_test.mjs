// Many leases, renewed all the time. In `make test` a short slice: the list stays virtual and its rows stay true. With
// STINT_PAGE_MINUTES (run.sh --long): no task of the main thread over 50 ms after load, and memory that stays flat.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Server, line, signIn, until } from './harness.mjs';

const minutes = Number(process.env.STINT_PAGE_MINUTES ?? 0);
const LEASES = 5000;
const A_SECOND = 500;
const TTL = 120_000;

let server;
let browser;
const held = [];
const name = (i) => `fleet/${String(Math.floor(i / 100)).padStart(2, '0')}/run-${String(i).padStart(4, '0')}`;

before(async () => {
  // In memory: what is looked at is the page, not a disk.
  server = await new Server({ store: 'memory:' }).start();
  browser = await Browser.open();
  const AT_ONCE = 10;
  await inParallel(LEASES / AT_ONCE, 16, async (i) => {
    const resources = Array.from({ length: AT_ONCE }, (_, k) => name(i * AT_ONCE + k));
    const got = await server.ask('', 'POST', '/v1/acquire', { resources, owner: `worker-${i % 50}`, ttl_ms: TTL, note: `piece ${i}` });
    assert.equal(got.status, 200, got.text);
    got.json.leases.forEach((lease, k) => (held[i * AT_ONCE + k] = { resource: lease.resource, token: lease.token, claim: lease.claim }));
  });
});
after(async () => {
  await browser?.close();
  await server?.end();
});

async function inParallel(count, lanes, work) {
  let next = 0;
  await Promise.all(Array.from({ length: lanes }, async () => {
    while (next < count) await work(next++);
  }));
}

// Renews them in turn, so many a second, until it is told to stop.
function renewing() {
  const state = { done: 0, lost: 0, over: false };
  const STEP = 100;
  state.ended = (async () => {
    const began = Date.now();
    for (let at = 0; !state.over; at = (at + STEP) % LEASES) {
      const got = await server.ask('', 'POST', '/v1/renew', { leases: held.slice(at, at + STEP), ttl_ms: TTL });
      state.lost += got.json.results.filter((one) => one.error).length;
      state.done += STEP;
      const due = began + (state.done / A_SECOND) * 1000;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - Date.now())));
    }
  })();
  return state;
}

test(`${LEASES} leases, ${A_SECOND} renewals a second: the list stays virtual and true`, async (t) => {
  const page = await browser.page();
  await page.addInitScript(() => {
    window.long = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.long.push([entry.startTime, entry.duration]);
    }).observe({ type: 'longtask', buffered: true });
  });
  const load = renewing();
  try {
    await looking(t, page);
  } finally {
    load.over = true;
    await load.ended;
  }
  assert.equal(load.lost, 0);
  assert.deepEqual(page.wrong, []);
  t.diagnostic(`${load.done} renewals, none lost`);
});

async function looking(t, page) {
  await signIn(page, server, '');
  await until(async () => (await page.locator('.chip', { hasText: 'All' }).locator('b').innerText()) === String(LEASES), 'all are there');
  await line(page, name(0)).waitFor();
  const loaded = await page.evaluate(() => performance.now());
  const rows = () => page.evaluate(() => document.querySelectorAll('.rows .line').length);
  const grown = () => page.evaluate(() => {
    // A row in sight whose bar is longer than it was when it was looked at last.
    window.before ??= new Map();
    let out = false;
    for (const row of document.querySelectorAll('.rows .line:not([hidden])')) {
      const share = Number(/scaleX\(([\d.]+)\)/.exec(row.querySelector('.fill').style.transform)?.[1] ?? 0);
      const key = row.querySelector('a').href;
      if (share > (window.before.get(key) ?? 2) + 0.01) out = true;
      window.before.set(key, share);
    }
    return out;
  });
  await until(grown, 'a renewal is seen');
  // All the way down and up again, and a filter.
  await page.locator('.rows').evaluate((one) => (one.scrollTop = one.scrollHeight));
  await line(page, name(LEASES - 1)).waitFor();
  assert.ok((await rows()) < 100, `${await rows()} rows exist`);
  await page.fill('#filter', 'run-2500');
  await until(async () => (await page.locator('.rows .line:not([hidden])').count()) === 1, 'the filter finds one of them');
  await page.fill('#filter', '');
  await page.locator('.rows').evaluate((one) => (one.scrollTop = 0));
  await line(page, name(0)).waitFor();

  if (minutes > 0) await soak(t, page, loaded);
  t.diagnostic(`${await rows()} rows exist`);
}

// The longest task of the page's main thread while `work` goes on: by the clock, and by the processor's own count, which a
// busy neighbour does not lengthen. In milliseconds.
async function longestTask(page, work) {
  await browser.browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline', 'toplevel'] });
  await work();
  const { traceEvents } = JSON.parse((await browser.browser.stopTracing()).toString());
  const mains = new Set(traceEvents.filter((one) => one.name === 'thread_name' && one.args?.name === 'CrRendererMain').map((one) => `${one.pid} ${one.tid}`));
  const tasks = traceEvents.filter((one) => one.name === 'RunTask' && one.ph === 'X' && mains.has(`${one.pid} ${one.tid}`));
  assert.ok(tasks.length > 100, `only ${tasks.length} tasks were traced`);
  return { tasks: tasks.length, clock: Math.max(...tasks.map((one) => one.dur)) / 1000, processor: Math.max(...tasks.map((one) => one.tdur ?? 0)) / 1000 };
}

async function soak(t, page, loaded) {
  const session = await page.context().newCDPSession(page);
  const memory = async () => {
    await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize / 1e6;
  };
  const collected = []; // when memory was measured: not the page's own tasks
  const used = [await memory()];
  const end = Date.now() + minutes * 60_000;
  let longest = { tasks: 0, clock: 0, processor: 0 };
  for (let i = 0; Date.now() < end; i++) {
    const seen = await longestTask(page, async () => {
      // Somebody looks around meanwhile.
      for (let step = 0; step < 4; step++) {
        await page.locator('.rows').evaluate((one, part) => (one.scrollTop = (one.scrollHeight * part) / 10), (i * 4 + step) % 10);
        await new Promise((resolve) => setTimeout(resolve, 5000));
      }
    });
    longest = { tasks: longest.tasks + seen.tasks, clock: Math.max(longest.clock, seen.clock), processor: Math.max(longest.processor, seen.processor) };
    // After what is watched: the collector runs in a task of its own.
    const before = await page.evaluate(() => performance.now());
    used.push(await memory());
    collected.push([before, await page.evaluate(() => performance.now())]);
  }
  const long = (await page.evaluate(() => window.long)).filter(([at]) => at > loaded && !collected.some(([from, to]) => at >= from - 50 && at <= to));
  const worst = Math.max(0, ...long.map(([, took]) => took));
  t.diagnostic(`${minutes} min: ${long.length} tasks over 50 ms after load, the worst ${worst.toFixed(0)} ms; longest of ${longest.tasks} traced tasks ${longest.clock.toFixed(0)} ms by the clock, ${longest.processor.toFixed(1)} ms of processor time; heap ${used.map((one) => one.toFixed(1)).join(' ')} MB`);
  assert.ok(longest.processor < 50, `a task took ${longest.processor} ms of processor time`);
  assert.equal(long.length, 0, `tasks over 50 ms: ${JSON.stringify(long)}`);
  const early = Math.max(...used.slice(0, Math.ceil(used.length / 3)));
  assert.ok(used.at(-1) < early * 1.25 + 2, `memory grows: ${used.map((one) => one.toFixed(1)).join(' ')}`);
}
