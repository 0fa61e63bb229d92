// Makes the TypeScript library usable where it lies, without the time that its own build takes: the code is translated file by
// file, and its types are those of the sources. `tests/clients` has its real build.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, modules] = process.argv.slice(2);
const ts = createRequire(join(modules, "x.js"))("typescript");
const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
mkdirSync(join(folder, "dist"), { recursive: true });
for (const name of readdirSync(join(folder, "src"))) {
  const { outputText } = ts.transpileModule(readFileSync(join(folder, "src", name), "utf8"), { compilerOptions });
  writeFileSync(join(folder, "dist", name.replace(/ts$/, "js")), outputText);
}
const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
about.exports = { ".": { types: "./src/index.ts", default: "./dist/index.js" } };
writeFileSync(join(folder, "package.json"), JSON.stringify(about));
