// Orders of an operator: a reason is required, and the token is typed by hand, so that nobody ends
// another lease than the one that they looked at.
import { post, Refusal, type Lease } from './api.ts';
import { h, name, say } from './dom.ts';

interface Order {
  what: 'revoke' | 'transfer';
  lease: Lease;
  done: () => void;
}

export function ask(order: Order): void {
  const { lease, what } = order;
  const revoking = what === 'revoke';
  const why = h('input', { id: 'why', required: true, maxlength: 400, autocomplete: 'off' });
  const to = h('input', { id: 'to', required: !revoking, maxlength: 256, autocomplete: 'off', spellcheck: 'false' });
  const by = h('input', { id: 'by', required: true, maxlength: 200, autocomplete: 'off', value: 'page' });
  const token = h('input', { id: 'token', required: true, inputmode: 'numeric', autocomplete: 'off' });
  const told = h('p', { class: 'told', role: 'alert' });
  const send = h('button', { type: 'submit', class: revoking ? 'danger' : 'primary', disabled: true }, revoking ? 'Revoke' : 'Transfer');
  const cancel = h('button', { type: 'button' }, 'Cancel');
  const text = revoking
    ? 'The token moves, and a run is stopped at its next renewal. The page cannot seal: targets that this holder has sealed take its writes until the next holder seals them. To shut them at once use "stint revoke" where they can be reached.'
    : 'The lease is reserved for another owner and the token moves; a run is stopped at its next renewal. The page cannot seal: targets that this holder has sealed take its writes until the next holder seals them. To shut them at once use "stint transfer" where they can be reached.';
  const form = h(
    'form',
    {},
    h('h2', { id: 'order-title' }, revoking ? 'Revoke ' : 'Transfer ', name(lease.resource, 'whole')),
    h('p', { class: 'dim' }, 'Held by ', name(lease.owner, 'whole'), '. ', text),
    ...(revoking ? [] : [h('label', { for: 'to' }, 'To which owner'), to]),
    h('label', { for: 'why' }, 'Why (kept on record)'),
    why,
    h('label', { for: 'by' }, 'Your name'),
    by,
    h('label', { for: 'token' }, 'Type the token ', h('b', { class: 'number' }, String(lease.token)), ' to confirm'),
    token,
    told,
    h('div', { class: 'actions' }, cancel, send),
  );
  const box = h('dialog', { 'aria-labelledby': 'order-title' }, form);
  const ready = (): void => {
    send.disabled = token.value.trim() !== String(lease.token) || why.value.trim() === '' || by.value.trim() === '' || (!revoking && to.value.trim() === '');
  };
  form.addEventListener('input', ready);
  cancel.addEventListener('click', () => box.close());
  box.addEventListener('close', () => box.remove());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send.disabled = true;
    const body = { resource: lease.resource, token: lease.token, why: why.value.trim(), by: by.value.trim(), ...(revoking ? {} : { to: to.value.trim() }) };
    post(`/v1/${what}`, body).then(
      () => {
        box.close();
        order.done();
      },
      (error: unknown) => {
        ready();
        say(told, explain(error));
        order.done();
      },
    );
  });
  document.body.append(box);
  box.showModal();
  (revoking ? why : to).focus();
}

function explain(error: unknown): string {
  if (!(error instanceof Refusal)) return String(error);
  if (error.status === 0) return 'The server did not answer: it is not known whether the order was carried out. Look at the history before you try again.';
  if (error.code === 'lost') return `Nothing was done: ${error.message}`;
  return error.message;
}
