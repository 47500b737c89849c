// How states and reasons look: the word always stands beside the colour.

export type Kind = 'good' | 'low' | 'bad' | 'blue' | 'violet' | 'plain' | 'now';

const ENDED: Record<string, Kind> = {
  released: 'good',
  expired: 'bad',
  retaken: 'low',
  stalled: 'low',
  transferred: 'blue',
  taken_up: 'blue',
  revoked: 'violet',
  cancelled: 'violet',
  recovered: 'violet',
};
export const endedKind = (reason: string | null): Kind => (reason === null ? 'now' : (ENDED[reason] ?? 'plain'));

const ENDED_TEXT: Record<string, string> = {
  released: 'released by its holder',
  expired: 'ran out: nobody renewed it',
  retaken: 'taken again by the same run',
  stalled: 'ended for lack of progress',
  transferred: 'transferred by an order',
  taken_up: 'a reservation was taken up',
  revoked: 'revoked by an order',
  cancelled: 'cancelled by an order',
  recovered: 'the store was recovered',
};
export const reasonText = (reason: string): string => ENDED_TEXT[reason] ?? reason;

const CAME: Record<string, string> = {
  first: 'the first grant',
  released: 'after a release',
  expired: 'after the last holder ran out',
  retaken: 'taken again by its own run',
  stalled: 'after the last holder stalled',
  transferred: 'reserved by an order',
  taken_up: 'a reservation, taken up',
  revoked: 'revoked by an order',
  cancelled: 'cancelled by an order',
  recovered: 'after the store was recovered',
};
export const cameBy = (reason: string): string => CAME[reason] ?? reason;

const CAUSES: Record<string, [Kind, string]> = {
  stale: ['bad', 'stale'],
  never_issued: ['violet', 'never issued'],
  never_granted: ['violet', 'never granted'],
  foreign: ['violet', 'foreign'],
  no_token: ['low', 'no token'],
  used: ['blue', 'used already'],
};
export const causeOf = (cause: string): [Kind, string] => CAUSES[cause] ?? ['plain', cause.replaceAll('_', ' ')];

export function slotKind(state: string): Kind {
  if (state === 'ran') return 'good';
  if (state === 'failed') return 'bad';
  if (state === 'lost' || state === 'quarantined') return 'violet';
  if (state.startsWith('skipped')) return 'plain';
  return 'blue';
}

export function itemKind(state: string): Kind {
  const kinds: Record<string, Kind> = { waiting: 'plain', ready: 'plain', claimed: 'blue', parked: 'low', failed: 'bad', done: 'good', cancelled: 'violet' };
  return kinds[state] ?? 'plain';
}
