// Runs the calls that the page copies as curl, CLI, TypeScript and Python, and compares the results.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { copied, equal, holds, visit } from "./browser.mjs";

const run = promisify(execFile);
const HERE = dirname(fileURLToPath(import.meta.url));
const TSC = join(HERE, "../page/web/node_modules");

/** Runs copied code sequentially in each language and returns the results. */
const RUNNERS = {
  curl: (codes, env) => each(codes, async (code) => JSON.parse((await run("bash", ["-c", `${code} --silent`], { env })).stdout).result),
  CLI: (codes, env) => each(codes, async (code) => JSON.parse((await run("bash", ["-c", code], { env })).stdout)),
  TypeScript: async (codes, env, folder) => {
    const files = codes.map((code, at) => {
      const file = join(folder, `copied-${at}.mts`);
      writeFileSync(file, code.replace("console.log(result)", "console.log(JSON.stringify(result))"));
      return file;
    });
    const options = ["--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "node", "--typeRoots", join(TSC, "@types")];
    await run("node", [join(TSC, "typescript/bin/tsc"), ...options, ...files]).catch((error) => { throw new Error(error.stdout); });
    return each(files, async (file) => JSON.parse((await run("node", [file.replace(".mts", ".mjs")], { env })).stdout));
  },
  Python: (codes, env) => each(codes, async (code) => {
    const printed = code.replace('print(response["result"])', 'import json; print(json.dumps(response["result"]))');
    return JSON.parse((await run("python3", ["-c", printed], { env })).stdout);
  }),
};

async function each(list, run) {
  const results = [];
  for (const one of list) results.push(await run(one));
  return results;
}

/** Arguments whose literals differ between languages. */
const ODD = { text: 'it\'s "quoted" \\ $HOME `x` äöü\n<b>', flag: true, none: null, list: [1, 2.5, { deep: [] }], big: 12345678901234567890n };

export async function copies(tally, yard, context) {
  const page = await context.newPage();
  // Next to node_modules, so that the library is found as in any project.
  const folder = mkdtempSync(join(HERE, "copied-"));
  const env = { ...process.env, TOOLYARD_TOKEN: yard.token };
  const args = JSON.stringify(ODD, (_key, value) => (typeof value === "bigint" ? JSON.rawJSON?.(String(value)) ?? `@${value}@` : value)).replace(/"@(\d+)@"/, "$1");
  const take = async (language) => {
    await page.getByLabel("Copy as", { exact: true }).selectOption(language);
    const code = await copied(page, `Copy as ${language}`);
    holds(!code.includes(yard.token), `the token is in ${code}`);
    return code;
  };
  const codes = { plain: {}, odd: {} };
  await visit(page, yard, `/tools/add?args=${encodeURIComponent('{"a":20,"b":22}')}`);
  for (const language of Object.keys(RUNNERS)) codes.plain[language] = await take(language);
  await visit(page, yard, `/tools/mcp__odd__bare?args=${encodeURIComponent(args)}`);
  await page.getByRole("button", { name: "Call bare" }).waitFor();
  for (const language of Object.keys(RUNNERS)) codes.odd[language] = await take(language);
  for (const [language, runner] of Object.entries(RUNNERS)) {
    await tally.check(`the call copied as ${language} returns the same result`, async () => {
      const [result, echoed] = await runner([codes.plain[language], codes.odd[language]], env, folder);
      equal(result.structuredContent ?? result, { sum: 42 });
      // The tool returns its arguments as text.
      const text = typeof echoed === "string" ? echoed : (echoed.content?.[0]?.text ?? JSON.stringify(echoed));
      const { big, ...rest } = JSON.parse(text);
      const { big: _, ...sent } = ODD;
      equal(rest, sent);
      equal(big, Number(ODD.big));
    });
  }
  rmSync(folder, { recursive: true, force: true });
  await page.close();
}
