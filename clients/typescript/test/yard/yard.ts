// The yard that the tests of this folder run against, as tests/clients/run describes it.

import { readFileSync } from "node:fs";

import { MCPClient, type ClientOptions, type Execution } from "../../src/index.js";

interface Yard {
  url: string;
  /** A proxy that fails on cue, see tests/clients/proxy.py. */
  proxy: string;
  tokens: Record<"owner" | "plain" | "slow" | "expired", string>;
}

const file = process.env["TOOLYARD_YARD"];
if (file === undefined) throw new Error("these tests run against a real yard: run tests/clients/run");
export const yard = JSON.parse(readFileSync(file, "utf8")) as Yard;

export function client(options: Partial<ClientOptions> = {}): MCPClient {
  return new MCPClient({ baseURL: yard.url, token: yard.tokens.owner, retry: { baseDelay: 10 }, ...options });
}

/** A word that nobody else uses. */
export function fresh(): string {
  return `ts${crypto.randomUUID().replaceAll("-", "")}`;
}

/** A client behind the proxy, and how many requests the proxy got and handed on. */
export function failing(cue: string) {
  const name = `${cue}-${fresh()}`;
  const seen = async () => (await (await fetch(`${yard.proxy}/seen/${name}`)).json()) as unknown;
  return { client: client({ baseURL: `${yard.proxy}/${name}` }), seen };
}

/** The executions of one user, once none of them is running any more. */
export async function settled(userId: string): Promise<Execution[]> {
  for (let tries = 0; ; tries += 1) {
    const all = (await client().executions.list({ limit: 1000 })).filter((one) => one.userId === userId);
    if (tries > 200 || all.every(({ state }) => state !== "running")) return all;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
