// The prefixes of all names, with how many stand under each: "site/", "site/a/".
import { h, put, visible } from '../dom.ts';
import type { Live } from '../live.ts';

interface Node {
  prefix: string;
  text: string;
  count: number;
  held: number;
  below: Map<string, Node>;
}

const MOST = 100; // of one level

export class PrefixTree {
  readonly root = h('nav', { class: 'tree', 'aria-label': 'Prefixes' });
  private readonly open = new Set<string>();
  private drawn = '';
  private at = 0;

  constructor(
    private readonly live: Live,
    private readonly choose: (prefix: string) => void,
  ) {}

  show(prefix: string): void {
    const key = `${prefix}\n${this.live.membership}\n${[...this.open].join('\n')}`;
    if (key === this.drawn) return;
    // Names that come and go do not make the tree flicker.
    const chosen = this.drawn.split('\n', 1)[0] !== prefix;
    if (!chosen && performance.now() - this.at < 1000 && this.drawn !== '') return;
    this.drawn = key;
    this.at = performance.now();
    const top = this.build();
    const none = top.below.size === 0;
    this.root.classList.toggle('none', none);
    const lines: HTMLElement[] = [];
    lines.push(this.line(top, prefix, 0, false));
    this.list(top, prefix, 1, lines);
    put(this.root, ...lines);
  }

  private build(): Node {
    const top: Node = { prefix: '', text: 'All', count: 0, held: 0, below: new Map() };
    for (const { lease } of this.live.sorted) {
      const held = lease.held ? 1 : 0;
      let node = top;
      node.count++;
      node.held += held;
      let from = 0;
      for (let end = lease.resource.indexOf('/'); end >= 0; end = lease.resource.indexOf('/', from)) {
        const text = lease.resource.slice(from, end + 1);
        from = end + 1;
        let next = node.below.get(text);
        if (!next) {
          next = { prefix: lease.resource.slice(0, from), text, count: 0, held: 0, below: new Map() };
          node.below.set(text, next);
        }
        next.count++;
        next.held += held;
        node = next;
      }
    }
    return top;
  }

  private list(node: Node, chosen: string, depth: number, lines: HTMLElement[]): void {
    let shown = 0;
    for (const one of node.below.values()) {
      if (shown++ >= MOST) {
        lines.push(h('p', { class: 'dim more' }, `and ${node.below.size - MOST} more: use the filter`));
        return;
      }
      const open = this.open.has(one.prefix) || (chosen !== '' && chosen.startsWith(one.prefix));
      lines.push(this.line(one, chosen, depth, open));
      if (open) this.list(one, chosen, depth + 1, lines);
    }
  }

  private line(node: Node, chosen: string, depth: number, open: boolean): HTMLElement {
    const here = node.prefix === chosen;
    const choose = h(
      'button',
      { type: 'button', class: `prefix d${Math.min(depth, 6)}`, 'aria-current': here ? 'true' : undefined, title: visible(node.prefix) || 'All leases' },
      h('bdi', { class: 'name' }, visible(node.text)),
      h('b', {}, String(node.count)),
    );
    choose.addEventListener('click', () => {
      if (node.prefix !== '' && here) this.open.delete(node.prefix);
      else if (node.prefix !== '') this.open.add(node.prefix);
      this.choose(here && node.prefix !== '' ? '' : node.prefix);
    });
    if (node.below.size > 0 && node.prefix !== '') choose.setAttribute('aria-expanded', String(open));
    return choose;
  }
}
