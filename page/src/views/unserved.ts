// A part that this server does not have, or that this key may not see.
import { Refusal } from '../api.ts';
import { command, empty } from '../dom.ts';

export function unserved(error: unknown, what: string, hint: string): HTMLElement {
  if (error instanceof Refusal && error.status === 404) return empty(`This server does not serve ${what}`, 'It is older than its page, or its store has none. On the store itself:', command(hint));
  if (error instanceof Refusal && error.status === 403) return empty(`Your key may not see ${what}`, error.message);
  if (error instanceof Refusal && error.status === 0) return empty('The server does not answer', 'The page tries again by itself.');
  return empty('It cannot be read', error instanceof Refusal ? error.message : String(error));
}
