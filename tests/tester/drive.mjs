// Lets `run` use the tester through an official client: reads a line of JSON per call and writes one per result.
import { createInterface } from "node:readline";

const { TOOLYARD_BIN: _, ...rest } = process.env;

/** The environment of Toolyard, without the variables of this script. */
export const env = Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("PEER_")));
export const args = ["stdio", "--expose", "tester"];
export const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

const answers = JSON.parse(process.env.PEER_ANSWERS);
let asked = [];

/** Answers a request of the server and records it for `run`. */
export function answer({ method, params }) {
  asked.push({ method, params });
  return answers[params?.mode === "url" ? `${method} url` : method];
}

const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** Runs the client. `connect()` returns `{client, call, version}`. */
export async function drive(connect) {
  const { client, call, version } = await connect();
  const { tools } = await client.listTools();
  write({ server: client.getServerVersion(), version: version(), tools });
  for await (const line of createInterface({ input: process.stdin })) {
    const { name, arguments: given } = JSON.parse(line);
    asked = [];
    let result;
    try {
      const { content, structuredContent, isError } = await call(name, given);
      result = { content, structured: structuredContent, isError: isError ?? false };
    } catch (error) {
      result = { thrown: String(error) };
    }
    write({ ...result, asked });
  }
  await client.close();
}
