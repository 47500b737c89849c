// A real `stint serve` on a store of its own, real runs, and a real Chromium that looks at it.
//
// Nothing here sleeps and hopes: until() waits for a condition, with a deadline that only a fault meets.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const require = createRequire(new URL('../../page/package.json', import.meta.url));
const { chromium } = require('playwright-core');
export const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const STINT = process.env.STINT_BINARY ?? path.resolve(import.meta.dirname, '../../build/stint');
export const PATIENCE = 60_000;
export const SHOTS = process.env.STINT_SCREENSHOTS ?? '';

export async function until(condition, what, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    const got = await condition();
    if (got) return got;
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Server {
  constructor({ options = [], demo = false, store = '' } = {}) {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'stint-page-'));
    this.options = options;
    this.demo = demo;
    this.port = 0;
    this.log = path.join(this.dir, 'serve.log');
    this.env = { ...process.env, XDG_STATE_HOME: `${this.dir}/state`, XDG_CONFIG_HOME: `${this.dir}/config`, STINT_STORE: store || `sqlite:${this.dir}/store.db` };
    for (const name of ['STINT_KEY', 'STINT_KEY_FILE', 'http_proxy', 'https_proxy', 'RUN_ID', 'STINT_OWNER']) delete this.env[name];
    if (demo) delete this.env.STINT_STORE;
    this.runs = [];
  }
  text() {
    return fs.existsSync(this.log) ? fs.readFileSync(this.log, 'utf8') : '';
  }
  async start() {
    const begin = this.text().length;
    const out = fs.openSync(this.log, 'a');
    const words = ['serve', '--listen', `127.0.0.1:${this.port}`, ...(this.demo ? ['--demo'] : []), ...this.options];
    this.process = spawn(STINT, words, { env: this.env, stdio: ['ignore', out, out] });
    this.ended = new Promise((resolve) => this.process.on('exit', resolve));
    fs.closeSync(out);
    this.port = await until(() => {
      if (this.process.exitCode !== null) throw new Error(`the server ended: ${this.text()}`);
      return Number(/listening on https?:\/\/[^ ]*:(\d+)/.exec(this.text().slice(begin))?.[1] ?? 0);
    }, 'the server listens');
    return this;
  }
  async stop() {
    if (this.process.exitCode === null) this.process.kill('SIGTERM');
    await this.ended;
  }
  get url() {
    return `http://127.0.0.1:${this.port}`;
  }
  // On the server's own store.
  stint(...words) {
    const done = spawnSync(STINT, words, { env: this.env, encoding: 'utf8', timeout: PATIENCE });
    if (done.status !== 0) throw new Error(`stint ${words.join(' ')}: ${done.status} ${done.stderr}`);
    return done.stdout.trim();
  }
  key(name, allow, ...more) {
    return this.stint('key', 'create', name, '--allow', allow, '-q', ...more);
  }
  // Over HTTP, in the background.
  remote(key, ...words) {
    const env = { ...this.env, STINT_STORE: this.url };
    if (key) env.STINT_KEY = key;
    const child = spawn(STINT, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const run = { child, out: '', err: '', code: null };
    child.stdout.on('data', (data) => (run.out += data));
    child.stderr.on('data', (data) => (run.err += data));
    run.ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve((run.code = code ?? signal))));
    this.runs.push(run);
    return run;
  }
  async ask(key, method, where, body) {
    const answer = await fetch(this.url + where, {
      method,
      headers: { ...(key ? { Authorization: `Bearer ${key}` } : {}), 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, json: text.startsWith('{') ? JSON.parse(text) : null };
  }
  async end() {
    for (const run of this.runs) {
      if (run.code === null) run.child.kill('SIGTERM');
      await run.ended;
    }
    await this.stop();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

export class Browser {
  static async open() {
    const out = new Browser();
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'stint-chromium-'));
    out.profile = profile;
    out.browser = await chromium.launch({
      executablePath: process.env.STINT_CHROMIUM ?? '/usr/bin/chromium',
      headless: true,
      timeout: PATIENCE,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
    });
    return out;
  }
  // A page of its own, which notes what went wrong in it.
  async page({ width = 1280, height = 800, scheme = 'light', ...more } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...more });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.wrong = [];
    page.dialogs = 0;
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') page.wrong.push(message.text());
    });
    page.on('pageerror', (error) => page.wrong.push(String(error)));
    page.on('dialog', (dialog) => {
      page.dialogs++;
      void dialog.dismiss();
    });
    await page.addInitScript(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    return page;
  }
  async close() {
    await this.browser.close();
    fs.rmSync(this.profile, { recursive: true, force: true });
  }
}

export async function signIn(page, server, key, hash = '#/leases') {
  await page.goto(`${server.url}/${hash}`);
  if (key) {
    await page.fill('#key', key);
    await page.click('button[type=submit]');
  }
  await page.waitForSelector('.link.live');
}

export const line = (page, text) => page.locator('.rows .line:not([hidden])', { hasText: text });

export async function shoot(page, name) {
  if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}
