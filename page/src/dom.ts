// Small tools for the DOM. Whatever came from a server is text, never markup.

export type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

// h('a', {class: 'x', href: '#', onclick: f}, 'text', node)
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const out = document.createElement(tag);
  apply(out, props);
  append(out, children);
  return out;
}

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const out = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(out, props);
  append(out, children);
  return out;
}

function apply(out: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') {
      out.addEventListener(name.slice(2), value as EventListener);
    } else {
      out.setAttribute(name, value === true ? '' : String(value));
    }
  }
}

function append(out: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) out.append(child);
  }
}

export function put(place: Element, ...children: Child[]): void {
  place.replaceChildren();
  append(place, children);
}

// put(), for what somebody may be in the middle of: focus, scrolling and what was opened stay as they
// are, as far as the new contents have the same shape.
export function renew(place: Element, ...children: Child[]): void {
  const path: number[] = [];
  const active = document.activeElement;
  if (active !== null && active !== place && place.contains(active)) {
    for (let one: Element = active; one !== place; one = one.parentElement!) path.unshift([...one.parentElement!.children].indexOf(one));
  }
  const scrolled = [...place.querySelectorAll('.scroll')].map((one) => [one.scrollLeft, one.scrollTop] as const);
  const opened = [...place.querySelectorAll('details')].map((one) => one.open);
  put(place, ...children);
  place.querySelectorAll('details').forEach((one, i) => (one.open = opened[i] ?? one.open));
  place.querySelectorAll('.scroll').forEach((one, i) => one.scrollTo(...(scrolled[i] ?? [0, 0])));
  if (path.length === 0) return;
  // A link is known by where it leads: rows that came or went have moved it.
  const href = active!.getAttribute('href');
  const again = href === null ? path.reduce<Element | undefined>((one, i) => one?.children[i], place) : [...place.querySelectorAll('a')].find((one) => one.getAttribute('href') === href);
  if (again?.tagName === active!.tagName) (again as HTMLElement).focus({ preventScroll: true });
}

// Only when it differs: the browser lays out nothing anew.
export function say(place: Element, text: string): void {
  if (place.textContent !== text) place.textContent = text;
}

// Characters that hide, reorder or control text are shown instead of obeyed: a name that reads
// "evil" and one that reads "live" backwards must not look the same.
const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function visible(text: string): string {
  return text.replace(HIDDEN, (c) => `‹U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`);
}

// A name or a note of others: isolated from the direction of what stands around it.
export function name(text: string, more = ''): HTMLElement {
  const shown = visible(text);
  return h('bdi', { class: `name ${more}`, title: shown }, shown);
}

export function pill(word: string, kind: string): HTMLElement {
  return h('span', { class: `pill ${kind}` }, word);
}

export function button(text: string, act: () => void, more = ''): HTMLButtonElement {
  return h('button', { type: 'button', class: more, onclick: () => act() }, text);
}

// A command to try, with a button that copies it.
export function command(text: string): HTMLElement {
  const copy = h('button', { type: 'button', class: 'copy', 'aria-label': `Copy: ${text}` }, 'Copy');
  copy.addEventListener('click', () => {
    void copyText(text).then((done) => {
      copy.textContent = done ? 'Copied' : 'Select it';
      setTimeout(() => (copy.textContent = 'Copy'), 1500);
    });
  });
  return h('div', { class: 'command' }, h('code', {}, text), copy);
}

// The clipboard is there only on https and on loopback.
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// A word for a shell, that is nothing but a word.
export function quote(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", "'\\''")}'`;
}

export function empty(title: string, text: Child, ...more: Child[]): HTMLElement {
  return h('div', { class: 'empty' }, h('h2', {}, title), h('p', {}, text), ...more);
}
