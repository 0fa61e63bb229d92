// Checks the built manual: `node check.mjs DOCS PASSED`. DOCS is the folder `docs/` after `vitepress build`, PASSED the
// number of checks that have passed before. See `run`.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [docs, before] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const root = join(docs, "..");
const dist = join(docs, ".vitepress/dist");
const REPOSITORY = "https://github.com/toolyard/toolyard/";
/** A page counts as found if it is among this many results. */
const TOP = 3;

let passed = Number(before);
let failed = 0;

function report(problems, name) {
  if (problems.length === 0) {
    passed += 1;
    console.log(`ok ${name}`);
  } else {
    failed += 1;
    console.log(`FAIL ${name}: ${problems.join("\n  ")}`);
  }
}

function htmlFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "assets" ? [] : htmlFiles(path);
    return entry.name.endsWith(".html") && entry.name !== "404.html" ? [path] : [];
  });
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", ZeroWidthSpace: "" };
const decode = (text) => text.replace(/&([#\w]+);/g, (whole, name) => ENTITIES[name] ?? whole);
const matches = (text, pattern) => [...text.matchAll(pattern)].map((match) => decode(match[1]));

/** The text that a reader sees in the content of a page, on one line. */
function visibleText(html) {
  const main = html.slice(html.indexOf("<main"), html.lastIndexOf("</main>"));
  const blocks = main.replace(/<(script|style)[\s\S]*?<\/\1>/g, "").replace(/<\/(td|th|p|li|h\d|div|pre)>/g, " ");
  const text = blocks.replace(/<[^>]*>/g, "");
  return decode(text).replace(/\u200b/g, "").replace(/\s+/g, " ");
}

/** The pages by their address in the site, such as `/tasks/troubleshoot`. */
const pages = new Map(
  htmlFiles(dist).map((file) => {
    const path = relative(dist, file).replace(/\.html$/, "").replace(/(^|\/)index$/, "$1");
    const html = readFileSync(file, "utf8");
    return [`/${path}`, { html, ids: new Set(matches(html, /\sid="([^"]*)"/g)), text: visibleText(html) }];
  }),
);

/** Returns why a link of a page leads nowhere, or null. */
function linkProblem(from, link) {
  if (link.startsWith(REPOSITORY)) return repositoryProblem(link);
  if (/^[a-z]+:/i.test(link)) return null;
  const [address, anchor] = link.split("#");
  const path = decodeURIComponent(address === "" ? from : posix.resolve(posix.dirname(from), address));
  const page = pages.get(path);
  if (!page) return existsSync(join(dist, path)) && path !== "/" ? null : `${from}: ${link}: no such page`;
  if (anchor && !page.ids.has(decodeURIComponent(anchor))) return `${from}: ${link}: no such heading`;
  return null;
}

/** Links to files of the repository are checked against the checkout. */
function repositoryProblem(link) {
  const path = link.slice(REPOSITORY.length).match(/^(?:blob|tree)\/main\/([^#?]*)/)?.[1];
  return path && !existsSync(join(root, path)) ? `${link}: no such file in the repository` : null;
}

function checkLinks() {
  let links = 0;
  for (const [from, { html }] of pages) {
    // A link "edit this page" leads to the source of the page, which exists.
    const found = matches(html, /<a\s[^>]*?href="([^"]*)"/g).filter((link) => !link.includes("/edit/main/"));
    links += found.length;
    const problems = found.map((link) => linkProblem(from, link)).filter(Boolean);
    report([...new Set(problems)], `links of ${from}`);
  }
  report(links > 500 ? [] : [`only ${links} found`], "links are found");
}

function checkImages() {
  const problems = [];
  let images = 0;
  for (const [from, { html }] of pages) {
    for (const source of matches(html, /<img\s[^>]*?src="([^"]*)"/g)) {
      images += 1;
      const path = source.startsWith("/") ? source : posix.resolve(posix.dirname(from), source);
      if (!existsSync(join(dist, path))) problems.push(`${from}: ${source}: no such file`);
    }
    for (const tag of html.match(/<img\s[^>]*>/g) ?? []) {
      if (!/\salt="[^"]+"/.test(tag)) problems.push(`${from}: an image has no alternative text: ${tag}`);
    }
  }
  report(images > 0 ? problems : ["no image found"], "images exist and have alternative texts");
}

/** The site loads nothing from other hosts. */
function checkSelfContained() {
  const external = /<(?:script|link|img|iframe)\s[^>]*?(?:src|href)="((?:https?:)?\/\/[^"]*)"/g;
  const problems = [...pages].flatMap(([from, { html }]) => matches(html, external).map((url) => `${from}: ${url}`));
  report(problems, "the site loads nothing from the network");
}

/** Every page is in the table of contents, which each page of the site contains. */
function checkContents() {
  const { html } = pages.get("/quick-start");
  const sidebar = html.slice(html.indexOf('class="VPSidebar"'), html.indexOf('id="VPContent"'));
  const listed = new Set(matches(sidebar, /<a\s[^>]*?href="([^"]*)"/g));
  report([...pages.keys()].filter((page) => !listed.has(page)), "every page is in the table of contents");
}

/** Loads the index of the site with the options of the search box, see VPLocalSearchBox.vue of VitePress. */
async function loadSearch() {
  const chunks = join(dist, "assets/chunks");
  const file = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndex"));
  // The built file is an ES module; the folder `docs/` has `"type": "module"`.
  const { default: json } = await import(pathToFileURL(join(chunks, file)).href);
  const { default: MiniSearch } = await import(
    pathToFileURL(createRequire(join(docs, "package.json")).resolve("minisearch")).href
  );
  return MiniSearch.loadJSON(json, {
    fields: ["title", "titles", "text"],
    storeFields: ["title", "titles"],
    searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } },
  });
}

async function checkQuestions() {
  const questions = JSON.parse(readFileSync(join(here, "questions.json"), "utf8"));
  report(questions.length >= 10 ? [] : [`only ${questions.length}`], "there are ten questions or more");
  const search = await loadSearch();
  for (const { question, page, answer } of questions) {
    const problems = [];
    const results = search.search(question).slice(0, TOP).map(({ id }) => id);
    // With an anchor, the reader must land on that very section.
    const isExpected = (id) => id === page || id.split("#")[0] === page;
    if (!results.some(isExpected)) problems.push(`the search finds ${results.join(", ") || "nothing"} instead of ${page}`);
    const text = pages.get(page.split("#")[0])?.text;
    if (text === undefined) problems.push(`${page} does not exist`);
    else if (!text.includes(answer)) problems.push(`${page} does not say "${answer}"`);
    report(problems, `question "${question}"`);
  }
}

checkLinks();
checkImages();
checkSelfContained();
checkContents();
await checkQuestions();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
