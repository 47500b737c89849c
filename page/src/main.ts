// The frame: sign-in, navigation by the address's fragment, light and dark, and who is connected.
import './style.css';
import { get, hasKey, onSignedOut, Refusal, useKey, type StoreFacts } from './api.ts';
import { button, command, h, put, say, type Child } from './dom.ts';
import { Live } from './live.ts';
import { leaseView } from './views/lease.ts';
import { leasesView } from './views/leases.ts';
import { itemView } from './views/item.ts';
import { queuesView } from './views/queues.ts';
import { refusalsView } from './views/refusals.ts';
import { scheduleView } from './views/schedule.ts';
import { storeView } from './views/store.ts';

// A view: what it shows, and how to end it.
export interface View {
  title: string;
  body: HTMLElement;
  end?: () => void;
}
export type MakeView = (live: Live, rest: string) => View;

const PLACES: { path: string; title: string; icon: string; make: MakeView }[] = [
  { path: 'leases', title: 'Leases', icon: '▤', make: leasesView },
  { path: 'refusals', title: 'Refusals', icon: '⊘', make: refusalsView },
  { path: 'schedule', title: 'Schedule', icon: '◷', make: scheduleView },
  { path: 'queues', title: 'Queues', icon: '≡', make: queuesView },
  { path: 'store', title: 'Store', icon: '◫', make: storeView },
];
const HIDDEN_PLACES: { path: string; under: string; make: MakeView }[] = [
  { path: 'lease', under: 'leases', make: leaseView },
  { path: 'item', under: 'queues', make: itemView },
];

let live: Live | null = null;
let view: View | null = null;

// ---- light and dark

type Theme = 'auto' | 'light' | 'dark';
const THEMES: Theme[] = ['auto', 'light', 'dark'];

function theme(): Theme {
  try {
    const kept = localStorage.getItem('stint.theme');
    return THEMES.includes(kept as Theme) ? (kept as Theme) : 'auto';
  } catch {
    return 'auto';
  }
}

function wear(next: Theme): void {
  if (next === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = next;
  try {
    localStorage.setItem('stint.theme', next);
  } catch {
    // It lasts until the page is closed.
  }
}

function themeButton(): HTMLElement {
  const words = { auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark' };
  const out = button(words[theme()], () => {
    const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]!;
    wear(next);
    out.textContent = words[next];
    out.setAttribute('aria-label', `Colours: ${next}. Change`);
  }, 'quiet theme');
  out.setAttribute('aria-label', `Colours: ${theme()}. Change`);
  return out;
}

// ---- the frame

const main = h('main', { id: 'main', tabindex: -1 });
const nav = h('nav', { 'aria-label': 'Views' });
const link = h('span', { class: 'link', role: 'status' });
const who = h('span', { class: 'who' });
const banner = h('div', { class: 'banner', role: 'alert', hidden: true });

function frame(): void {
  put(
    nav,
    ...PLACES.map((place) =>
      h('a', { href: `#/${place.path}`, 'data-path': place.path }, h('i', { 'aria-hidden': 'true' }, place.icon), h('span', {}, place.title)),
    ),
  );
  const out = hasKey() ? button('Sign out', () => leave(), 'quiet') : null;
  const facts = live?.facts;
  put(who, facts?.demo ? 'demo' : facts?.key ? `key ${facts.key}` : 'no key asked for');
  document.body.replaceChildren(
    h('a', { class: 'skip', href: '#main', onclick: (event: Event) => { event.preventDefault(); main.focus(); } }, 'To the contents'),
    h(
      'header',
      {},
      h('a', { class: 'brand', href: '#/leases' }, h('img', { src: '/assets/icon.svg', alt: '', width: 22, height: 22 }), 'Stint'),
      nav,
      h('div', { class: 'right' }, link, who, themeButton(), ...(out ? [out] : [])),
    ),
    banner,
    main,
  );
}

function showLink(): void {
  if (!live) return;
  const words = { connecting: 'connecting', live: 'live', lost: 'reconnecting' };
  say(link, words[live.link]);
  link.className = `link ${live.link}`;
  link.title = live.link === 'live' ? 'Every change is shown as it happens' : 'What you see may be out of date';
  const gone = 'The server does not answer. What you see is as of the last word from it; the page reconnects by itself.';
  const warning = live.link === 'lost' ? gone : (live.facts?.trouble ?? '');
  if (banner.textContent !== warning) {
    banner.hidden = warning === '';
    say(banner, warning);
  }
}

function navigate(): void {
  if (!live) return;
  const [, path = '', ...rest] = location.hash.split('/');
  const place = PLACES.find((one) => one.path === path);
  const hidden = HIDDEN_PLACES.find((one) => one.path === path);
  if (!place && !hidden) {
    location.replace('#/leases');
    return;
  }
  view?.end?.();
  let words = '';
  try {
    words = decodeURIComponent(rest.join('/'));
  } catch {
    words = rest.join('/');
  }
  view = (place ?? hidden)!.make(live, words);
  document.title = `${view.title} · Stint`;
  put(main, view.body);
  for (const one of nav.querySelectorAll('a')) {
    const here = one.dataset['path'] === (place?.path ?? hidden?.under);
    if (here) one.setAttribute('aria-current', 'page');
    else one.removeAttribute('aria-current');
  }
  window.scrollTo(0, 0);
}

// ---- sign-in

function leave(why = ''): void {
  useKey('', false);
  live?.stop();
  view?.end?.();
  live = null;
  view = null;
  signIn(why);
}

function signIn(why: string): void {
  useKey('', false);
  const field = h('input', { id: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, placeholder: 'stint_…' });
  const keep = h('input', { id: 'keep', type: 'checkbox', checked: true });
  const told = h('p', { class: 'told', role: 'alert' }, why);
  const form = h(
    'form',
    { class: 'sign-in' },
    h('h1', {}, h('img', { src: '/assets/icon.svg', alt: '', width: 28, height: 28 }), 'Stint'),
    h('label', { for: 'key' }, 'Key'),
    field,
    h('label', { class: 'check', for: 'keep' }, keep, 'keep it until this tab is closed'),
    h('button', { type: 'submit', class: 'primary' }, 'Sign in'),
    told,
    h('p', { class: 'dim' }, 'A key that may look, and one that may also act, are made on the server’s machine:'),
    command('stint key create me --allow read'),
    command('stint key create me --allow read,operate,queue,schedule'),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    useKey(field.value.trim(), keep.checked);
    say(told, '');
    void enter();
  });
  document.title = 'Sign in · Stint';
  document.body.replaceChildren(h('main', { class: 'alone' }, form));
  field.focus();
}

function unreachable(refusal: Refusal): void {
  const texts: Child[] = [
    h('h1', {}, refusal.status === 0 ? 'The server does not answer' : 'The server refused'),
    h('p', {}, refusal.status === 0 ? 'The page tries again by itself. On the server’s machine:' : refusal.message),
  ];
  if (refusal.status === 0) texts.push(command('systemctl status stint'));
  document.body.replaceChildren(h('main', { class: 'alone' }, h('div', { class: 'sign-in' }, ...texts)));
  setTimeout(() => void enter(), 2000);
}

async function enter(): Promise<void> {
  let facts: StoreFacts;
  try {
    facts = await get<StoreFacts>('/v1/store');
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) {
      signIn(hasKey() ? error.message : '');
      return;
    }
    unreachable(error instanceof Refusal ? error : new Refusal(0, 'failed', String(error)));
    return;
  }
  live = new Live();
  live.start(facts);
  live.onChange(showLink);
  frame();
  showLink();
  navigate();
}

wear(theme());
onSignedOut((why) => {
  if (live) leave(why);
});
window.addEventListener('hashchange', navigate);
document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !live) return;
  // 1 to 6: the views.
  const place = PLACES[Number(event.key) - 1];
  if (place) location.hash = `#/${place.path}`;
});
void enter();
