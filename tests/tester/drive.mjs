// Lets `run` use the tester through an official client: a line of JSON in, one out.
import { createInterface } from "node:readline";

const { TOOLYARD_BIN: _, ...rest } = process.env;

/** The environment of Toolyard: ours, without what is only meant for this script. */
export const env = Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("PEER_")));
export const args = ["stdio", "--expose", "tester"];
export const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

const answers = JSON.parse(process.env.PEER_ANSWERS);
let asked = [];

/** What this client answers when it is asked; `run` wants to know afterwards what that was. */
export function answer({ method, params }) {
  asked.push({ method, params });
  return answers[params?.mode === "url" ? `${method} url` : method];
}

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** `connect()` gives `{client, call, version}`. */
export async function drive(connect) {
  const { client, call, version } = await connect();
  const { tools } = await client.listTools();
  say({ server: client.getServerVersion(), version: version(), tools });
  for await (const line of createInterface({ input: process.stdin })) {
    const { name, arguments: given } = JSON.parse(line);
    asked = [];
    let said;
    try {
      const { content, structuredContent, isError } = await call(name, given);
      said = { content, structured: structuredContent, isError: isError ?? false };
    } catch (error) {
      said = { thrown: String(error) };
    }
    say({ ...said, asked });
  }
  await client.close();
}
