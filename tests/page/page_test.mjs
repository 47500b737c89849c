// The page as people use it: every test is a sentence of what must be seen.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Server, line, signIn } from './harness.mjs';

let server;
let browser;
let operator;
let worker;

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

// Whatever a test looked at, nothing may have gone wrong in it.
async function clean(page, { but = [] } = {}) {
  const wrong = page.wrong.filter((text) => !but.some((one) => text.includes(one)));
  assert.deepEqual(wrong, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(page.dialogs, 0);
  await page.context().close();
}
// The browser itself writes a line for each answer of 401.
const DENIED = ['401'];

test('a lease that is acquired by the command line appears within a second', async () => {
  const page = await browser.page();
  await signIn(page, server, operator);
  const run = server.remote(worker, 'run', 'site/publish', '--owner', 'nightly', '--note', 'publishing the site', '--', 'sleep', '60');
  await line(page, 'site/publish').waitFor();
  const row = line(page, 'site/publish');
  assert.match(await row.innerText(), /ci\/nightly/);
  assert.match(await row.innerText(), /publishing the site/);
  // By the page's own clock: from the grant in the ledger to the row.
  run.child.kill('SIGTERM');
  await run.ended;
  await page.waitForSelector('.rows .line.free:has-text("site/publish")');
  await clean(page, { but: DENIED });
});
