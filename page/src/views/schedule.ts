// The jobs of the store.
import { get, Refusal, serves } from '../api.ts';
import { command, empty, h, put } from '../dom.ts';
import type { MakeView } from '../main.ts';
import { JobCard, type Job } from './job.ts';
import { unserved } from './unserved.ts';

export const scheduleView: MakeView = (live) => {
  const jobs = h('div', { class: 'jobs' });
  const root = h('div', { class: 'view' }, h('div', { class: 'title' }, h('h1', {}, 'Schedule')), jobs);
  const cards = new Map<string, JobCard>();
  let over = false;
  let timer = 0;

  const read = async (): Promise<void> => {
    try {
      if (!(await serves('/v1/jobs'))) throw new Refusal(404, 'invalid', '');
      const explains = await serves('/v1/jobs/explain');
      const got = await get<{ jobs: Job[] }>('/v1/jobs');
      if (over) return;
      if (got.jobs.length === 0) {
        cards.clear();
        put(jobs, empty('No job yet', 'Jobs stand in a file, and any number of schedulers may run it:', command('printf \'[job.hello]\\nschedule = "* * * * *"\\ncommand = ["date"]\\n\' > stint.toml'), command('stint cron')));
      } else {
        if (cards.size === 0) put(jobs);
        for (const job of got.jobs) {
          let card = cards.get(job.job);
          if (!card) {
            card = new JobCard(job, live.may('schedule') || live.may('operate'), explains, () => void read());
            cards.set(job.job, card);
            jobs.append(card.root);
          }
          card.show(job);
        }
        await Promise.all(got.jobs.slice(0, 50).map((job) => cards.get(job.job)!.read().catch(() => {})));
      }
      next(5000);
    } catch (error) {
      if (over) return;
      cards.clear();
      put(jobs, unserved(error, 'schedules', 'stint slots JOB'));
      if (!(error instanceof Refusal) || error.status === 0 || error.status >= 500) next(3000);
    }
  };
  const next = (ms: number): void => {
    clearTimeout(timer);
    if (!over) timer = window.setTimeout(() => void read(), ms);
  };
  const KINDS = /^(ran|failed|lost|quarantined|skipped_|job_|schedule_)/;
  const off = live.onEvent((event) => {
    if (KINDS.test(event.kind)) next(200);
  });
  put(jobs, h('p', { class: 'dim loading' }, 'Reading the jobs …'));
  void read();
  return {
    title: 'Schedule',
    body: root,
    end: () => {
      over = true;
      off();
      clearTimeout(timer);
    },
  };
};
