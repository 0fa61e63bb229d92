// Lists the built files in a Rust source, with a gzip of each that gains from it: `cargo build` then needs no Node.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const serve = join(dirname(fileURLToPath(import.meta.url)), "../../crates/serve");
const assets = join(serve, "assets");
const KINDS = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };

function walk(folder) {
  return readdirSync(folder).sort().flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });
}

const entries = walk(assets).map((path) => {
  const kind = KINDS[extname(path)];
  if (!kind) throw new Error(`${path}: which content type it has is not written down in embed.mjs`);
  const zipped = gzipSync(readFileSync(path), { level: 9 });
  zipped[9] = 255; // Which system packed it is nobody's business, and not the same everywhere.
  writeFileSync(`${path}.gz`, zipped);
  const name = relative(assets, path);
  const bytes = (file) => `include_bytes!("../../assets/${file}")`;
  return `    File { path: "/${name === "index.html" ? "" : name}", kind: "${kind}", plain: ${bytes(name)}, gzip: ${bytes(`${name}.gz`)} },\n`;
});
const text = `//! The files of the page. Written by \`npm run build\` in \`web\`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; ${entries.length}] = [
${entries.join("")}];
`;
writeFileSync(join(serve, "src/page/files.rs"), text);
