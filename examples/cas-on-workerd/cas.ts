// A lease as it is often written on a Durable Object: a key-value store with `cas`, and clients
// that keep {holder, until} in it by their own clocks. Two accidents are built in: play.py.
export class Cas {
  constructor(private readonly ctx: DurableObjectState) {}

  async fetch(request: Request): Promise<Response> {
    const { key, expected, next } = (await request.json()) as any;
    const now = (await this.ctx.storage.get<string>(key)) ?? null;
    if (next === undefined) return Response.json({ value: now });
    if (now !== expected) return Response.json({ done: false, value: now });
    await this.ctx.storage.put(key, next);
    return Response.json({ done: true, value: next });
  }
}

export default {
  fetch(request: Request, env: { CAS: DurableObjectNamespace }): Promise<Response> {
    return env.CAS.get(env.CAS.idFromName("leases")).fetch(request);
  },
};
