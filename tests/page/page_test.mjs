// The page as people use it: every test is a sentence of what must be seen.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { AXE, Browser, STINT, Server, line, shoot, signIn, until } from './harness.mjs';

let server;
let browser;
let operator; // may look and order
let worker; // may hold and write
const HOSTILE = '<img src=x onerror=alert(1)>';

before(async () => {
  server = new Server();
  operator = server.key('ops', 'read,operate');
  worker = server.key('ci', 'acquire,admit,read');
  await server.start();
  browser = await Browser.open();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

// Whatever a test looked at, nothing may have gone wrong in it. The browser itself writes a line for each answer that
// is no 2xx, and for a server that is gone: tests that mean it say so.
async function clean(page, { but = ['401'] } = {}) {
  const wrong = page.wrong.filter((text) => !but.some((one) => text.includes(one)));
  assert.deepEqual(wrong, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(page.dialogs, 0);
  await page.context().close();
}

async function accessible(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const bad = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
  assert.deepEqual(bad.map((one) => `${where}: ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`), []);
}

// A run that holds a lease until it is told to end.
async function hold(resource, ...options) {
  const run = server.remote(worker, 'run', resource, ...options, '--', 'sleep', '600');
  await until(async () => (await server.ask(operator, 'GET', `/v1/lease?resource=${encodeURIComponent(resource)}`)).json.held, `${resource} is held`);
  return run;
}
async function letGo(run) {
  run.child.kill('SIGTERM');
  return run.ended;
}

// In the page: the wall time at which a text first stood there.
const firstSeen = (page, text) =>
  page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () => (document.body.innerText.includes(wanted) ? resolve(Date.now()) : setTimeout(look, 10));
        look();
      }),
    text,
  );

async function atOf(kind, resource) {
  const got = await server.ask(operator, 'GET', `/v1/events?newest=true&limit=50&prefix=${encodeURIComponent(resource)}`);
  return got.json.events.findLast((event) => event.kind === kind)?.at_ms;
}

test('the files of the page: types, policy, ETag, packed, and nothing else', async () => {
  const index = await server.ask('', 'GET', '/');
  assert.equal(index.status, 200);
  assert.equal(index.headers.get('content-type'), 'text/html; charset=utf-8');
  for (const where of ['/', '/assets/page.js', '/assets/page.css', '/assets/icon.svg']) {
    const got = await fetch(server.url + where);
    await got.arrayBuffer();
    assert.equal(got.status, 200, where);
    assert.equal(got.headers.get('content-encoding'), 'gzip', where);
    const policy = got.headers.get('content-security-policy');
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    assert.equal(got.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(got.headers.get('referrer-policy'), 'no-referrer');
    const again = await fetch(server.url + where, { headers: { 'If-None-Match': got.headers.get('etag') } });
    assert.equal(again.status, 304, where);
    assert.equal(await again.text(), '');
  }
  const plain = spawnSync('curl', ['-sS', `${server.url}/assets/page.js`]).stdout;
  assert.deepEqual(plain, fs.readFileSync(new URL('../../page/built/assets/page.js', import.meta.url)));
  assert.equal((await fetch(server.url, { method: 'POST', body: '{}' })).status, 405);
  assert.equal((await fetch(`${server.url}/assets/../v1/leases`)).status, 401);
  assert.equal((await fetch(`${server.url}/assets/none.js`)).status, 404);
});

test('without its module the server says so, and serves', async () => {
  const bare = new Server();
  const program = `${bare.dir}/stint`;
  fs.copyFileSync(STINT, program);
  fs.copyFileSync(STINT.replace(/stint$/, 'stint_http.so'), `${bare.dir}/stint_http.so`);
  const child = spawnSync('sh', ['-c', `"${program}" serve --listen 127.0.0.1:0 2>"${bare.dir}/log" & pid=$!
    until grep -q 'listening on' "${bare.dir}/log"; do kill -0 $pid || exit 1; sleep 0.05; done
    url=$(sed -n 's/.*listening on \\([^,]*\\),.*/\\1/p' "${bare.dir}/log"); curl -sS "$url/"; curl -sS "$url/healthz"; kill $pid; wait $pid`], { env: bare.env, encoding: 'utf8', timeout: 60_000 });
  assert.match(child.stdout, /page is not installed: the module stint_page.so is missing.*\n\{"ok":true\}/);
  fs.rmSync(bare.dir, { recursive: true });
});

test('sign-in: a wrong key is told, the right one stays out of addresses and lasting storage', async () => {
  const page = await browser.page();
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(server.url);
  await page.fill('#key', 'stint_wrong');
  await page.click('button[type=submit]');
  await page.getByText('this key is not known here').waitFor();
  await accessible(page, 'sign-in');
  await page.fill('#key', operator);
  await page.click('button[type=submit]');
  await page.waitForSelector('.link.live');
  assert.equal(asked.filter((url) => url.includes(operator)).length, 0);
  assert.equal(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:')).length, 0);
  const kept = await page.evaluate(() => ({ local: JSON.stringify(localStorage), session: JSON.stringify(sessionStorage), cookie: document.cookie }));
  assert.ok(!kept.local.includes('stint_') && kept.cookie === '' && kept.session.includes(operator));
  await page.reload();
  await page.waitForSelector('.link.live');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForSelector('#key');
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  // Not to be kept: in memory alone.
  await page.fill('#key', operator);
  await page.uncheck('#keep');
  await page.click('button[type=submit]');
  await page.waitForSelector('.link.live');
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await clean(page);
});

test('an empty store teaches the first command', async () => {
  const fresh = new Server();
  await fresh.start();
  const page = await browser.page();
  await signIn(page, fresh, '');
  await page.getByText('No lease yet').waitFor();
  assert.match(await page.locator('.command code').first().innerText(), /^stint run --store http:\/\/127\.0\.0\.1:\d+ hello -- sleep 30$/);
  await accessible(page, 'empty');
  await clean(page);
  await fresh.end();
});

test('a lease that the command line acquires appears; so does its end', async (t) => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const seen = firstSeen(page, 'site/publish');
  const run = await hold('site/publish', '--owner', 'nightly', '--note', 'publishing the site');
  const took = (await seen) - (await atOf('granted', 'site/publish'));
  t.diagnostic(`shown ${took} ms after the grant`);
  if (process.env.STINT_PAGE_STRICT) assert.ok(took < 1000);
  await line(page, 'publishing the site').waitFor();
  assert.match(await line(page, 'site/publish').innerText(), /ci\/nightly/);
  await shoot(page, 'test-leases');
  await letGo(run);
  await page.waitForSelector('.rows .line.free:has-text("site/publish")');
  await clean(page);
});

test('a bar shrinks towards expiry and grows at each renewal', async () => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const run = await hold('bar/one', '--ttl', '9s');
  await line(page, 'bar/one').waitFor();
  const share = () => page.evaluate(() => {
    const row = [...document.querySelectorAll('.rows .line:not([hidden])')].find((one) => one.innerText.includes('bar/one'));
    return Number(/scaleX\(([\d.]+)\)/.exec(row?.querySelector('.fill').style.transform ?? '')?.[1] ?? -1);
  });
  let last = await share();
  const steps = new Set();
  await until(async () => {
    const now = await share();
    if (now < last - 0.02) steps.add('shrinks');
    if (now > last + 0.1) steps.add('grows');
    last = now;
    return steps.size === 2;
  }, 'it shrinks and grows');
  await letGo(run);
  await clean(page);
});

test('a lease whose holder dies is shown as expired', async (t) => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const run = await hold('data/load', '--ttl', '2s');
  await line(page, 'data/load').waitFor();
  const { child } = run;
  // The supervisor and its guardian: nobody is left to renew or to release.
  const guardian = spawnSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).map(Number);
  for (const pid of guardian) process.kill(pid, 'SIGSTOP');
  child.kill('SIGKILL');
  await page.waitForFunction(() => /expired|free/.test([...document.querySelectorAll('.rows .line:not([hidden])')].find((one) => one.innerText.includes('data/load'))?.className ?? ''));
  for (const pid of guardian) {
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // Gone already.
    }
  }
  t.diagnostic('seen');
  await clean(page);
});

test('a refused write appears in the feed, with target, token and fence', async (t) => {
  const page = await browser.page();
  await signIn(page, server, operator, '#/refusals');
  await page.getByText('No write was refused').waitFor();
  const seen = firstSeen(page, 'target.txt');
  const file = `${server.dir}/target.txt`;
  // The first holder writes, lets go, and comes back late.
  const script = `set -e; cd ${server.dir}; t=$("$STINT" acquire guarded/file); echo one | "$STINT" write target.txt --resource guarded/file --token $t
    "$STINT" release guarded/file --token $t
    "$STINT" run guarded/file --seal file:target.txt -- sh -c 'echo two | "$STINT" write target.txt'
    set +e; echo late | "$STINT" write target.txt --resource guarded/file --token $t; echo "exit $?"`;
  const done = spawnSync('sh', ['-c', script], { env: { ...server.env, STINT, STINT_STORE: server.url, STINT_KEY: worker }, encoding: 'utf8', timeout: 60_000 });
  assert.match(done.stdout, /exit 13/, done.stderr);
  assert.equal(fs.readFileSync(file, 'utf8'), 'two\n');
  const took = (await seen) - (await atOf('write_refused', 'guarded/file'));
  t.diagnostic(`shown ${took} ms after the refusal`);
  if (process.env.STINT_PAGE_STRICT) assert.ok(took < 1000);
  const row = page.locator('tbody tr', { hasText: 'target.txt' });
  assert.match(await row.innerText(), /stale[\s\S]*1 → 2[\s\S]*guarded\/file/);
  await shoot(page, 'test-refusals');
  await page.goto(`${server.url}/#/lease/guarded%2Ffile`);
  await page.waitForSelector('.mark.refused', { state: 'attached' });
  await clean(page);
});

test('revoke by the page stops a real run', async () => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const run = await hold('deploy/prod', '--ttl', '30s', '--owner', 'release-7');
  await line(page, 'deploy/prod').locator('a').click();
  await page.getByRole('button', { name: 'Revoke …' }).click();
  const send = page.getByRole('button', { name: 'Revoke', exact: true });
  await accessible(page, 'dialog');
  await page.fill('#why', 'wrong branch');
  assert.ok(await send.isDisabled(), 'no token typed');
  await page.fill('#token', '99');
  assert.ok(await send.isDisabled(), 'another token typed');
  await page.fill('#token', '1');
  await page.fill('#why', ' ');
  assert.ok(await send.isDisabled(), 'no reason');
  await page.fill('#why', 'wrong branch');
  await shoot(page, 'test-revoke');
  await send.click();
  assert.equal(await run.ended, 75, run.err);
  await page.locator('td', { hasText: 'wrong branch' }).waitFor();
  await page.locator('.pill', { hasText: 'revoked' }).first().waitFor();
  const told = await server.ask(operator, 'GET', '/v1/history?resource=deploy/prod');
  assert.equal(told.json.history[0].by, 'ops/page');
  await clean(page);
});

test('transfer by the page reserves the lease for another', async () => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const run = await hold('deploy/staging', '--ttl', '30s');
  await page.goto(`${server.url}/#/lease/deploy%2Fstaging`);
  await page.getByRole('button', { name: 'Transfer …' }).click();
  await page.fill('#to', 'ci/heir');
  await page.fill('#why', 'moved by hand');
  await page.fill('#token', '1');
  await page.keyboard.press('Enter');
  assert.equal(await run.ended, 75, run.err);
  await page.locator('.title .pill', { hasText: 'reserved' }).waitFor();
  await page.locator('.holder', { hasText: 'ci/heir' }).waitFor();
  await clean(page);
});

test('a key that may only look gets no orders', async () => {
  const page = await browser.page();
  await signIn(page, server, worker, '#/lease/deploy%2Fprod');
  const revoke = page.getByRole('button', { name: 'Revoke …' });
  await revoke.waitFor();
  assert.ok(await revoke.isDisabled());
  assert.match(await revoke.getAttribute('title'), /operate/);
  await clean(page);
});

test('filter, prefixes and the chips choose what is shown', async () => {
  const page = await browser.page();
  const runs = [await hold('team-a/one', '--note', 'blue'), await hold('team-a/deep/two', '--note', 'red'), await hold('team-b/three', '--note', 'blue')];
  await signIn(page, server, operator);
  await line(page, 'team-b/three').waitFor();
  const names = () => page.locator('.rows .line:not([hidden]) .c-name a').allInnerTexts();
  await page.fill('#filter', 'BLUE');
  await until(async () => (await names()).join() === 'team-a/one,team-b/three', 'two are blue');
  await page.locator('.prefix', { hasText: 'team-a/' }).click();
  await until(async () => (await names()).join() === 'team-a/one', 'one is of team-a');
  await page.fill('#filter', '');
  await until(async () => (await names()).join() === 'team-a/deep/two,team-a/one', 'both of team-a');
  await page.locator('.prefix', { hasText: 'deep/' }).click();
  await until(async () => (await names()).join() === 'team-a/deep/two', 'one is deep');
  await page.locator('.prefix', { hasText: 'All' }).click();
  await page.locator('.chip', { hasText: 'Free' }).click();
  await until(async () => !(await names()).some((name) => name.startsWith('team-')), 'none of them is free');
  await page.fill('#filter', 'no such thing');
  await page.getByText('Nothing matches').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await line(page, 'team-b/three').waitFor();
  await Promise.all(runs.map(letGo));
  await clean(page);
});

test('everything can be reached by keyboard', async () => {
  const page = await browser.page();
  const run = await hold('keys/one', '--ttl', '30s');
  await signIn(page, server, operator);
  await line(page, 'keys/one').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('keys/');
  await until(async () => (await page.locator('.rows .line:not([hidden])').count()) === 1, 'one is left');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'row');
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'keys/one' }).waitFor();
  // From the top of the page to the order, by Tab alone.
  await page.getByRole('button', { name: 'Revoke …' }).waitFor();
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate(() => document.activeElement.textContent)) === 'Revoke …') break;
  }
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'why');
  await page.keyboard.press('Escape');
  await until(async () => (await page.locator('dialog').count()) === 0, 'the dialog is closed');
  await page.keyboard.press('2');
  await page.locator('h1', { hasText: 'Refusals' }).waitFor();
  await letGo(run);
  await clean(page);
});

const VIEWS = [['leases', '#/leases'], ['lease', '#/lease/guarded%2Ffile'], ['refusals', '#/refusals'], ['schedule', '#/schedule'], ['queues', '#/queues'], ['store', '#/store']];
let looked; // one page for all of them: signed in once
for (const [view, hash] of VIEWS) {
  test(`${view}: no error in the console, accessible in light and dark, whole on a phone`, async () => {
    if (!looked) {
      looked = await browser.page();
      looked.run = await hold('view/held', '--note', 'looked at');
      await signIn(looked, server, operator, '#/store');
    }
    const page = looked;
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.evaluate((next) => (location.hash = next), hash);
    await page.waitForSelector(view === 'leases' ? '.rows .line:not([hidden])' : '.view h1');
    await until(async () => (await page.locator('.loading').count()) === 0, 'it is read');
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(ground, scheme === 'dark' ? 'rgb(16, 21, 20)' : 'rgb(246, 247, 246)');
      await accessible(page, `${view} ${scheme}`);
      await shoot(page, `test-${view}-${scheme}`);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${wide} pixels wide on a phone`);
    if (view === 'leases') await line(page, 'view/held').waitFor();
    await accessible(page, `${view} on a phone`);
    await shoot(page, `test-${view}-phone`);
    assert.deepEqual(page.wrong.filter((text) => !text.includes('401')), []);
    if (view !== VIEWS.at(-1)[0]) return;
    await letGo(page.run);
    await clean(page);
  });
}

// What the server answers is played here: how it looks is the page's part. The parts that serve it have tests of their own.
async function played(page, answers) {
  await page.route('**/v1/openapi.json', async (route) => {
    const real = await (await route.fetch()).json();
    for (const path of Object.keys(answers)) real.paths[path] = {};
    await route.fulfill({ json: real });
  });
  for (const [path, answer] of Object.entries(answers)) {
    await page.route(`**${path}*`, (route) => (new URL(route.request().url()).pathname === path ? route.fulfill({ json: typeof answer === 'function' ? answer(route.request()) : answer }) : route.fallback()));
  }
}

test('schedule: slots by state, skips apart from failures, an outage that is dragged, pause', async () => {
  const page = await browser.page();
  const now = Date.now();
  const states = ['ran', 'ran', 'failed', 'ran', 'skipped_overlap', 'ran', 'lost', 'skipped_stale', 'skipped_stale', 'running'];
  const slots = Array.from({ length: 60 }, (_, i) => ({ job: 'nightly', slot: `2026-11-15T${String(Math.floor(i / 6)).padStart(2, '0')}:${i % 6}0:00`, key: `nightly@${i}`, at_ms: now - (60 - i) * 600_000, attempt: 1, state: i === 59 ? 'running' : states[i % 9], owner: 'host-a', resource: 'job/nightly', token: i, started_at_ms: now - (60 - i) * 600_000, ended_at_ms: now - (60 - i) * 600_000 + 95_000, exit_code: states[i % 9] === 'failed' ? 3 : 0, backfill: false, cause: null }));
  const sent = [];
  let paused = false;
  await played(page, {
    '/v1/jobs': () => ({ jobs: [{ job: 'nightly', schedule: '*/10 * * * *', tz: 'Europe/Berlin', paused, next_at_ms: now + 240_000 }, { job: HOSTILE, schedule: '@daily', tz: '', paused: false, next_at_ms: null }] }),
    '/v1/jobs/explain': (request) => {
      const asked = new URL(request.url()).searchParams;
      const [from, to] = [Number(asked.get('from_ms')), Number(asked.get('to_ms'))];
      const missed = slots.filter((slot) => slot.at_ms > from && slot.at_ms <= to);
      return { job: asked.get('job'), from_ms: from, to_ms: to, paused: false, max_backfill: 1, supposed: false, would_run: missed.length ? 1 : 0, would_skip: Math.max(0, missed.length - 1), left_out: 0, slots: missed.map((slot, i) => ({ slot: slot.slot, at_ms: slot.at_ms, key: slot.key, state: i + 1 === missed.length ? 'runs' : 'skipped_stale', backfill: true })) };
    },
    '/v1/jobs/slots': (request) => ({ slots: request.url().includes('nightly') ? slots : [] }),
    '/v1/jobs/pause': (request) => {
      sent.push(request.postDataJSON());
      paused = true;
      return { paused: true };
    },
  });
  const keeper = server.key('keeper', 'read,schedule');
  await signIn(page, server, keeper, '#/schedule');
  await page.waitForSelector('.slot.bad', { state: 'attached' });
  assert.equal(await page.locator('.slot').count(), 60);
  assert.equal(await page.locator('.slot.violet').count(), slots.filter((slot) => slot.state === 'lost').length);
  await page.getByText('next in').waitFor();
  assert.match(await page.locator('h2').nth(1).innerText(), /^<img src=x/);
  const box = await page.locator('.strip').first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 10, { steps: 5 });
  await page.mouse.up();
  await page.getByText(/^stint explain nightly --down 20.*\.\.20/).waitFor();
  // Six of sixty were dragged over, or seven: the band says which.
  const outage = page.locator('.job').first().locator('[aria-label="Slots of the outage"]');
  const chosen = async () => Number(await page.locator('.band').first().getAttribute('width')) / 10;
  assert.ok((await chosen()) >= 6 && (await chosen()) <= 7);
  assert.equal(await outage.locator('tbody tr').count(), await chosen());
  assert.equal(await outage.locator('.pill', { hasText: 'runs' }).count(), 1);
  await outage.getByText('of missed slots only the newest is made up for').first().waitFor();
  // By keys: the newest slot, then two more.
  await page.locator('.strip').first().focus();
  for (const key of ['ArrowLeft', 'Shift+ArrowLeft', 'Shift+ArrowLeft']) await page.keyboard.press(key);
  await until(async () => (await outage.locator('tbody tr').count()) === 3, 'three are chosen by keys');
  await accessible(page, 'schedule with jobs');
  await shoot(page, 'test-schedule-jobs');
  await page.getByRole('button', { name: 'Pause' }).first().click();
  await page.locator('.pill', { hasText: 'paused' }).waitFor();
  assert.deepEqual(sent, [{ job: 'nightly', by: 'page' }]);
  await clean(page);
});

test('an outage is dragged with a finger, too', async () => {
  const page = await browser.page({ width: 390, height: 800, hasTouch: true, isMobile: true });
  const now = Date.now();
  const slots = Array.from({ length: 40 }, (_, i) => ({ job: 'j', slot: `s${i}`, key: `j@${i}`, at_ms: now - (40 - i) * 60_000, attempt: 1, state: 'ran', owner: 'a', started_at_ms: null, ended_at_ms: null, exit_code: 0, backfill: false, cause: null }));
  const asked = [];
  await played(page, {
    '/v1/jobs': { jobs: [{ job: 'j', schedule: '* * * * *', paused: false, next_at_ms: now + 60_000, next_ms: [now + 60_000, now + 120_000] }] },
    '/v1/jobs/slots': { slots },
    '/v1/jobs/explain': (request) => {
      asked.push(request.url());
      return { job: 'j', from_ms: now, to_ms: now, paused: false, max_backfill: 1, supposed: true, would_run: 0, would_skip: 0, left_out: 0, slots: [] };
    },
  });
  await signIn(page, server, operator, '#/schedule');
  await page.waitForSelector('.slot.coming', { state: 'attached' });
  assert.equal(await page.locator('.slot.coming').count(), 2);
  const box = await page.locator('.strip').boundingBox();
  const touch = await page.context().newCDPSession(page);
  const at = (part) => [{ x: box.x + box.width * part, y: box.y + 10 }];
  await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at(0.2) });
  for (const part of [0.25, 0.3, 0.35, 0.4]) await touch.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: at(part) });
  await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await page.getByText('no slot would be missed').waitFor();
  assert.equal(asked.length, 1);
  const width = Number(await page.locator('.band').getAttribute('width')) / 10;
  assert.ok(width >= 8 && width <= 10, `${width} slots`);
  await page.getByText('does not know this job’s limits').waitFor();
  await accessible(page, 'an outage on a phone');
  await shoot(page, 'test-outage-phone');
  await clean(page);
});

test('queues: depth, items by state, and an item with its checkpoint and epoch', async () => {
  const page = await browser.page();
  const now = Date.now();
  const item = (i, state) => ({ id: `mail:${i}`, queue: 'mail', state, epoch: i, live: state === 'claimed', owner: state === 'claimed' ? 'worker-1' : null, reason: i ? 'first' : null, attempt: 1 + (i % 3), started: true, priority: 0, labels: ['eu'], unique: null, payload: `{"to":"<b>${i}</b>"}`, payload_bytes: 16, checkpoint: i === 2 ? 'page 40' : null, result: null, progress: i === 2 ? 'page 40' : null, progress_at_ms: i === 2 ? now - 5000 : null, why: state === 'parked' ? 'poisoned' : null, by: null, reserved_for: null, parent: null, put_by: 'ann', put_at_ms: now - 60_000 * i, not_before_ms: null, claimed_at_ms: null, ended_at_ms: null, ttl_ms: 60_000, remaining_ms: 42_000, limits: { max_attempts: 5 } });
  const items = [item(1, 'waiting'), item(2, 'claimed'), item(3, 'parked'), item(4, 'failed'), item(5, 'done')];
  let depth = 10;
  await played(page, {
    '/v1/queues': () => ({ queues: [{ queue: 'mail', waiting: (depth += 3), ready: 4, claimed: 2, parked: 1, failed: 1, done: 5, finished: 6, oldest_at_ms: now - 90_000, oldest_ms: 90_000, limits: { max_attempts: 5 } }, { queue: 'thumbnails', waiting: 0, ready: 0, claimed: 0, parked: 0, failed: 0, done: 12, finished: 12, oldest_at_ms: null, oldest_ms: null, limits: {} }] }),
    '/v1/queues/items': (request) => ({ items: items.filter((one) => !request.url().includes('state=') || request.url().includes(`state=${one.state}`)) }),
    '/v1/queues/item': items[1],
  });
  await signIn(page, server, operator, '#/queues');
  await page.locator('.queue', { hasText: 'mail' }).click();
  await page.locator('td', { hasText: 'poisoned' }).waitFor();
  await page.waitForSelector('.spark polyline', { state: 'attached' });
  await accessible(page, 'queues');
  await shoot(page, 'test-queues-items');
  await page.locator('.chip', { hasText: 'claimed' }).click();
  await until(async () => (await page.locator('tbody tr').count()) === 1, 'one is claimed');
  await page.getByRole('link', { name: 'mail:2' }).click();
  await page.locator('pre', { hasText: '{"to":"<b>2</b>"}' }).waitFor();
  await page.locator('pre', { hasText: 'page 40' }).waitFor();
  await accessible(page, 'item');
  await shoot(page, 'test-item');
  await clean(page);
});

const served = async (path) => path in (await server.ask('', 'GET', '/v1/openapi.json')).json.paths;

test('a real job: its slots appear, the page runs it and pauses it', async (t) => {
  if (!(await served('/v1/jobs'))) return t.skip('this server does not serve schedules');
  const file = `${server.dir}/stint.toml`;
  fs.writeFileSync(file, '[job.yearly]\nschedule = "0 0 1 1 *"\nmax_backfill = 2\ncommand = ["true"]\n');
  server.stint('cron', file, '--once');
  const page = await browser.page();
  const keeper = server.key('keeper-2', 'read,schedule');
  await signIn(page, server, keeper, '#/schedule');
  await page.locator('.job h2', { hasText: 'yearly' }).waitFor();
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.waitForSelector('.slot.blue', { state: 'attached' });
  server.stint('cron', file, '--once');
  await page.waitForSelector('.slot.good', { state: 'attached' });
  // What an outage would do, by the rule that the scheduler wrote down: two time inputs and a button.
  await page.locator('summary', { hasText: 'What would an outage do?' }).click();
  await page.getByLabel('Down from').fill('2029-06-01T00:00:00');
  await page.getByLabel('to', { exact: true }).fill('2032-06-01T00:00:00');
  await page.getByRole('button', { name: 'Explain', exact: true }).click();
  await page.getByText('2 slots would run, 1 slot would be recorded as skipped').waitFor();
  assert.deepEqual(await page.locator('[aria-label="Slots of the outage"] tbody .pill').allInnerTexts(), ['runs', 'runs', 'skipped stale']);
  await page.getByLabel('to', { exact: true }).fill('2028-06-01T00:00:00');
  await page.getByRole('button', { name: 'Explain', exact: true }).click();
  await page.getByText('The outage ends before it begins').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('.pill', { hasText: 'paused' }).waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await accessible(page, 'a real schedule');
  await clean(page);
});

test('a real queue: items come, are claimed, and show what they carry', async (t) => {
  if (!(await served('/v1/queues'))) return t.skip('this server does not serve queues');
  const page = await browser.page();
  const id = server.stint('queue', 'put', 'post', '<b>parcel</b>', '--create');
  await signIn(page, server, operator, '#/queues');
  await page.locator('.queue', { hasText: 'post' }).waitFor();
  await page.locator('tbody tr', { hasText: id }).waitFor();
  const claimed = JSON.parse(server.stint('queue', 'claim', 'post', '--json'));
  await page.locator('tbody .pill', { hasText: 'claimed' }).waitFor();
  server.stint('queue', 'checkpoint', id, 'half', '--epoch', String(claimed.epoch));
  // The ledger is read once; what comes later is told by the stream.
  let ledgers = 0;
  let looks = 0;
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.pathname === '/v1/events' && asked.searchParams.get('prefix') === id) ledgers++;
    if (asked.pathname === '/v1/queues/item') looks++;
  });
  await page.getByRole('link', { name: id }).click();
  await page.locator('pre', { hasText: '<b>parcel</b>' }).waitFor();
  await page.getByText('half').first().waitFor();
  await until(() => looks >= 3, 'the item is looked at again and again');
  assert.equal(ledgers, 1);
  assert.throws(() => server.stint('queue', 'complete', id, '--epoch', '99'));
  const refused = page.locator('[aria-label="Epochs and orders"] tbody tr', { hasText: 'refused stale' });
  await refused.waitFor();
  assert.match(await refused.innerText(), /\b99\b/);
  assert.equal(await refused.locator('.name').count(), 0, 'who has it now is not who was refused');
  server.stint('queue', 'complete', id, '--epoch', String(claimed.epoch));
  await page.locator('.title .pill', { hasText: 'done' }).waitFor();
  const attempts = page.locator('[aria-label="Attempts"] tbody tr');
  await attempts.locator('.pill', { hasText: 'completed' }).waitFor();
  assert.equal(await attempts.count(), 1);
  assert.equal(ledgers, 1);
  await accessible(page, 'a real item');
  await clean(page);
});

test('store: what doctor finds is told line by line, to who may ask', async () => {
  const page = await browser.page();
  await signIn(page, server, operator, '#/store');
  const findings = page.locator('.doctor tbody tr');
  // Who looks at the page has nothing tried.
  await page.getByText('Nobody has had this store examined').waitFor();
  assert.equal((await server.ask(operator, 'GET', '/v1/doctor')).json.began_at_ms, undefined);
  const ask = page.getByRole('button', { name: 'Examine' });
  await ask.focus();
  await page.keyboard.press('Enter');
  await page.locator('.doctor', { hasText: 'This store can carry leases' }).waitFor();
  for (const check of ['whole', 'visible', 'atomic', 'clock', 'timers', 'round-trip', 'generation']) await findings.filter({ hasText: check }).first().waitFor();
  assert.equal(await findings.locator('.pill.bad').count(), 0);
  await page.getByRole('button', { name: 'Examine again' }).waitFor();
  assert.ok(await ask.evaluate((one) => document.activeElement === one), 'the focus is still there');
  await accessible(page, 'findings');
  await shoot(page, 'test-doctor');
  await clean(page);
  const other = await browser.page();
  await signIn(other, server, server.key('looker', 'read'), '#/store');
  await other.getByText('Your key may not examine the store').waitFor();
  await clean(other);
  const part = await browser.page();
  await signIn(part, server, server.key('part', 'read,operate', '--prefix', 'team-a/'), '#/store');
  await part.getByText('Your key may not examine the store').waitFor();
  await clean(part);
});

test('what has the focus keeps it while queues and items are read anew', async () => {
  const page = await browser.page();
  const first = server.stint('queue', 'put', 'focus', 'x', '--create');
  await signIn(page, server, operator, '#/queues');
  await page.locator('.queue', { hasText: 'focus' }).focus();
  server.stint('queue', 'put', 'focus', 'y');
  await page.locator('.queue', { hasText: 'focus' }).locator('.depth', { hasText: '2' }).waitFor();
  assert.ok(await page.evaluate(() => document.activeElement?.textContent?.includes('focus') && document.activeElement.matches('.queue')));
  // A link, too, when a row comes before it.
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: first }).focus();
  const urgent = server.stint('queue', 'put', 'focus', 'z', '--priority', '9');
  await page.getByRole('link', { name: urgent }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), first);
  await clean(page);
});

test('the colours can be chosen, and the choice is kept', async () => {
  const page = await browser.page({ scheme: 'dark' });
  await signIn(page, server, operator);
  const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor === 'rgb(16, 21, 20)');
  assert.ok(await dark());
  await page.locator('.theme').click(); // light
  assert.ok(!(await dark()));
  await page.reload();
  await page.waitForSelector('.link.live');
  assert.ok(!(await dark()));
  await page.emulateMedia({ colorScheme: 'light' });
  await page.locator('.theme').click(); // dark
  assert.ok(await dark());
  await clean(page);
});

test(`a resource named ${HOSTILE} is shown as text, and what hides or turns text is made visible`, async () => {
  const page = await browser.page();
  const turned = 'pay/\u202efdp.exe';
  const runs = [await hold(HOSTILE, '--note', '<script>alert(2)</script>', '--owner', '<b>bold</b>'), await hold(turned)];
  await signIn(page, server, operator);
  await line(page, HOSTILE).waitFor();
  assert.match(await line(page, HOSTILE).innerText(), /<script>alert\(2\)<\/script>/);
  await line(page, 'pay/‹U+202E›fdp.exe').waitFor();
  await line(page, HOSTILE).locator('a').click();
  await page.locator('h1', { hasText: HOSTILE }).waitFor();
  await page.locator('td', { hasText: '<b>bold</b>' }).first().waitFor();
  assert.equal(await page.title(), `${HOSTILE} · Stint`);
  assert.equal(await page.locator('main img, main script, main b:text("bold")').count(), 0);
  assert.equal(await page.locator('h1 .name').evaluate((one) => getComputedStyle(one).unicodeBidi), 'isolate');
  await Promise.all(runs.map(letGo));
  await clean(page);
});

test('who is alive but stuck stands out', async () => {
  const page = await browser.page();
  await page.addInitScript(() => {
    const real = Date.now;
    window.ahead = 0;
    Date.now = () => real() + window.ahead;
  });
  const run = server.remote(worker, 'run', 'work/stuck', '--', 'sh', '-c', `"${STINT}" progress "page 3 of 9"; exec sleep 600`);
  await signIn(page, server, operator);
  await line(page, 'page 3 of 9').waitFor();
  assert.equal(await page.locator('.rows .line.stuck:not([hidden])').count(), 0);
  await page.evaluate(() => (window.ahead = 600_000));
  await page.waitForSelector('.rows .line.stuck:has-text("stuck 10m")');
  await page.locator('.chip', { hasText: 'Stuck' }).click();
  await until(async () => (await page.locator('.rows .line:not([hidden])').count()) >= 1, 'the chip finds it');
  await letGo(run);
  await clean(page);
});

test('who waits is shown, and who asked and went away', async () => {
  const page = await browser.page();
  const run = await hold('line/one');
  const waiting = server.ask(worker, 'POST', '/v1/acquire', { resource: 'line/one', owner: 'patient', ttl_ms: 5000, wait_ms: 60_000 });
  const away = server.remote(worker, 'run', 'line/one', '--owner', 'hasty', '--', 'true');
  assert.equal(await away.ended, 0);
  await signIn(page, server, operator, '#/lease/line%2Fone');
  await page.getByText('1 waiting:').waitFor();
  await page.getByText('ci/patient').first().waitFor();
  await page.getByText('ci/hasty').first().waitFor();
  await page.goto(`${server.url}/#/leases`);
  await until(async () => (await page.locator('.rows .line:not([hidden])', { hasText: 'line/one' }).locator('.c-waiters').innerText()) === '1', 'the list counts it');
  await letGo(run);
  assert.equal((await waiting).status, 200);
  await clean(page);
});

test('the page comes back by itself after a restart of the server', async () => {
  const page = await browser.page();
  await signIn(page, server, operator);
  await server.stop();
  await page.waitForSelector('.link.lost');
  await page.getByText('The server does not answer').waitFor();
  server.stint('acquire', 'while/away', '--ttl', '5m', '--note', 'meanwhile');
  await server.start();
  await page.waitForSelector('.link.live');
  await line(page, 'while/away').waitFor();
  assert.ok(await page.locator('.banner').isHidden());
  // The stream goes on, too: not only the list.
  const run = await hold('after/restart');
  await line(page, 'after/restart').waitFor();
  await letGo(run);
  await clean(page, { but: ['401', 'ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING', 'ERR_CONNECTION_RESET', 'ERR_EMPTY_RESPONSE', '503'] });
});
