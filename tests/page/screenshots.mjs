// Pictures of the demo for the README; run by tools/screenshots.sh.
import path from 'node:path';
import { Browser, Server, signIn, until } from './harness.mjs';

const folder = process.argv[2];
const server = await new Server({ demo: true }).start();
const browser = await Browser.open();
const shoot = (page, name) => page.screenshot({ path: path.join(folder, `${name}.png`) });
try {
  const page = await browser.page({ width: 1200, height: 720 });
  await signIn(page, server, '');
  // Until there is something to tell: a stuck run, and a few holders of one lease.
  await page.waitForSelector('.rows .line.stuck', { timeout: 120_000 });
  await until(async () => (await page.locator('.rows .line.held').count()) >= 11, 'many are held', 120_000);
  await shoot(page, 'page-leases');
  await page.evaluate(() => (location.hash = '#/lease/site%2Fblog%2Fpublish'));
  await page.waitForSelector('.lease-view.held');
  await until(async () => (await page.locator('.grant').count()) >= 12, 'a history', 180_000);
  await page.emulateMedia({ colorScheme: 'dark' });
  await shoot(page, 'page-lease');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.evaluate(() => (location.hash = '#/schedule'));
  await until(async () => (await page.locator('.job', { hasText: 'feed-poll' }).locator('.slot.good').count()) >= 12, 'a job that ran', 120_000);
  const strip = page.locator('.job', { hasText: 'nightly-backup' }).locator('.strip');
  const box = await strip.boundingBox();
  await page.mouse.move(box.x + box.width * 0.91, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.97, box.y + 10, { steps: 5 });
  await page.mouse.up();
  await page.getByText('would be recorded as skipped').waitFor();
  await shoot(page, 'page-schedule');
  const phone = await browser.page({ width: 390, height: 720, scheme: 'light' });
  await signIn(phone, server, '');
  await phone.waitForSelector('.rows .line.stuck');
  await shoot(phone, 'page-phone');
} finally {
  await browser.close();
  await server.end();
}
