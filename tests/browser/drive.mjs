// Tests the page in a real browser. Started by `run`, which passes all settings in the environment.
import { equal, launch, NARROW, Tally, visitor, WIDE } from "./browser.mjs";
import { tryTools } from "./calls.mjs";
import { copies } from "./copies.mjs";
import { crowded, typing } from "./crowded.mjs";
import { everyView } from "./every.mjs";
import { account } from "./flows.mjs";
import { gallery } from "./gallery.mjs";
import { deepLinks } from "./links.mjs";
import { asked, logIn, strangers } from "./people.mjs";
import { brokenConnections, expiry, flood, tabs } from "./resume.mjs";
import { clusters } from "./replicas.mjs";
import { speak } from "./snapshots.mjs";
import { firstView } from "./start.mjs";
import { storms } from "./storms.mjs";
import { keysOnly, lookAround } from "./views.mjs";

const { YARD_URL, YARD_TOKEN, YARD_CONFIG, YARD_FILES, CROWD_URL, CROWD_TOKEN, ASSETS, SHOTS, ONLY } = process.env;
const yard = { url: YARD_URL, token: YARD_TOKEN };
const crowd = { url: CROWD_URL, token: CROWD_TOKEN };
const tally = new Tally();
const browser = await launch();

/** Runs a part in its own browser context and checks that it causes no hidden errors. */
async function watched(label, of, part) {
  const { context, wrong } = await visitor(browser, of.url);
  await part(context);
  await tally.check(`no hidden errors while ${label}`, async () => equal(wrong, []));
  await context.close();
}

/** Parts that measure time, or need a yard without previous calls. They run one at a time. */
const alone = {
  speak: () => speak(tally, yard, browser),
  start: () => firstView(tally, yard, browser),
  typing: () => watched("using very many tools", crowd, (context) => typing(tally, crowd, context)),
  flood: () => watched("receiving very many events", yard, (context) => flood(tally, yard, context)),
  storms: () => storms(tally, browser, ASSETS),
};
/** Parts that mostly wait. They run two at a time; the checks of a part run in order. */
const lanes = {
  calls: () => watched("trying tools", yard, (context) => tryTools(tally, yard, context, YARD_FILES)),
  views: () => watched("opening views", yard, async (context) => {
    await lookAround(tally, yard, context);
    await tabs(tally, yard, context);
  }),
  keys: () => watched("using the keyboard", yard, (context) => keysOnly(tally, yard, context)),
  copies: () => watched("copying calls", yard, (context) => copies(tally, yard, context)),
  links: () => watched("opening links", yard, (context) => deepLinks(tally, yard, context)),
  login: () => logIn(tally, yard, browser),
  asked: () => watched("answering questions", yard, (context) => asked(tally, yard, context)),
  strangers: () => strangers(tally, yard, browser),
  crowd: () => watched("using malformed tools", crowd, (context) => crowded(tally, crowd, context)),
  replicas: () => clusters(tally, browser, ASSETS),
  broken: () => brokenConnections(tally, yard, browser),
  expiry: () => watched("a token expires", yard, (context) => expiry(tally, yard, context, YARD_CONFIG)),
  ...Object.fromEntries(["light", "dark"].flatMap((scheme) => [WIDE, NARROW].map((size) => [`every-${scheme}-${size.width}`, () => everyView(tally, yard, browser, scheme, size)]))),
};

async function run(name, part) {
  const began = Date.now();
  try {
    await part();
  } catch (error) {
    await tally.check(`${name}: finished`, async () => { throw error; });
  }
  console.log(`${name}: ${((Date.now() - began) / 1_000).toFixed(1)} s`);
}
const wanted = (parts) => Object.entries(parts).filter(([name]) => !ONLY || ONLY.split(",").includes(name));
if (SHOTS) await tally.check("screenshots of every view are written", () => gallery(yard, browser, SHOTS));
else {
  for (const [name, part] of wanted(alone)) await run(name, part);
  console.log("measurements are done");
  const waiting = wanted(lanes);
  await Promise.all([1, 2].map(async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await run(...next);
  }));
  if (!ONLY) await account(tally, [...tally.seen]);
}
await browser.close();
console.log(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed || !tally.passed ? 1 : 0;
