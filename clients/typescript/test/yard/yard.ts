// The yard for the tests in this directory, as described by tests/clients/run.

import { readFileSync } from "node:fs";

import { MCPClient, type ClientOptions, type Execution } from "../../src/index.js";

interface Yard {
  url: string;
  /** A proxy that fails on cue, see tests/clients/proxy.py. */
  proxy: string;
  tokens: Record<"owner" | "plain" | "slow" | "expired", string>;
}

const file = process.env["TOOLYARD_YARD"];
if (file === undefined) throw new Error("these tests require a running yard: run tests/clients/run");
export const yard = JSON.parse(readFileSync(file, "utf8")) as Yard;

export function client(options: Partial<ClientOptions> = {}): MCPClient {
  return new MCPClient({ baseURL: yard.url, token: yard.tokens.owner, retry: { baseDelay: 10 }, ...options });
}

/** Returns a unique word. */
export function fresh(): string {
  return `ts${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Returns a client behind the proxy, and the request counts of the proxy. */
export function failing(cue: string) {
  const name = `${cue}-${fresh()}`;
  const seen = async () => (await (await fetch(`${yard.proxy}/seen/${name}`)).json()) as unknown;
  return { client: client({ baseURL: `${yard.proxy}/${name}` }), seen };
}

/** Returns the executions of a user once none of them is running. */
export async function settled(userId: string): Promise<Execution[]> {
  for (let tries = 0; ; tries += 1) {
    const all = (await client().executions.list({ limit: 1000 })).filter((one) => one.userId === userId);
    if (tries > 200 || all.every(({ state }) => state !== "running")) return all;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
