// Drives the page in a real browser. Everything that it needs to know is in the environment; see `run`.
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
import { speak } from "./snapshots.mjs";
import { firstView } from "./start.mjs";
import { storms } from "./storms.mjs";
import { keysOnly, lookAround } from "./views.mjs";

const { YARD_URL, YARD_TOKEN, YARD_CONFIG, YARD_FILES, CROWD_URL, CROWD_TOKEN, ASSETS, SHOTS, ONLY } = process.env;
const yard = { url: YARD_URL, token: YARD_TOKEN };
const crowd = { url: CROWD_URL, token: CROWD_TOKEN };
const tally = new Tally();
const browser = await launch();

/** Runs a part with a window that is watched. */
async function watched(label, of, part) {
  const { context, wrong } = await visitor(browser, of.url);
  await part(context);
  await tally.check(`nothing went wrong unseen while ${label}`, async () => equal(wrong, []));
  await context.close();
}

/** What measures, or needs a yard in which nothing has happened yet: one after the other, with nothing beside it. */
const alone = {
  speak: () => speak(tally, yard, browser),
  start: () => firstView(tally, yard, browser),
  typing: () => watched("there were very many tools", crowd, (context) => typing(tally, crowd, context)),
  flood: () => watched("there were very many events", yard, (context) => flood(tally, yard, context)),
  storms: () => storms(tally, browser, ASSETS),
};
/** What mostly waits: two at a time. Each is one list, because what is in it is done in order. */
const lanes = {
  calls: () => watched("tools were tried", yard, (context) => tryTools(tally, yard, context, YARD_FILES)),
  views: () => watched("views were looked at", yard, async (context) => {
    await lookAround(tally, yard, context);
    await tabs(tally, yard, context);
  }),
  keys: () => watched("keys were used", yard, (context) => keysOnly(tally, yard, context)),
  copies: () => watched("calls were copied", yard, (context) => copies(tally, yard, context)),
  links: () => watched("links were followed", yard, (context) => deepLinks(tally, yard, context)),
  login: () => logIn(tally, yard, browser),
  asked: () => watched("questions were answered", yard, (context) => asked(tally, yard, context)),
  strangers: () => strangers(tally, yard, browser),
  crowd: () => watched("tools were odd", crowd, (context) => crowded(tally, crowd, context)),
  broken: () => brokenConnections(tally, yard, browser),
  expiry: () => watched("a token expired", yard, (context) => expiry(tally, yard, context, YARD_CONFIG)),
  ...Object.fromEntries(["light", "dark"].flatMap((scheme) => [WIDE, NARROW].map((size) => [`every-${scheme}-${size.width}`, () => everyView(tally, yard, browser, scheme, size)]))),
};

async function run(name, part) {
  const began = Date.now();
  try {
    await part();
  } catch (error) {
    await tally.check(`the part ${name} ran to its end`, async () => { throw error; });
  }
  console.log(`the part ${name} took ${((Date.now() - began) / 1_000).toFixed(1)} s`);
}
const wanted = (parts) => Object.entries(parts).filter(([name]) => !ONLY || ONLY.split(",").includes(name));
if (SHOTS) await tally.check("pictures of every view are kept", () => gallery(yard, browser, SHOTS));
else {
  for (const [name, part] of wanted(alone)) await run(name, part);
  console.log("nothing is measured any more");
  const waiting = wanted(lanes);
  await Promise.all([1, 2].map(async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await run(...next);
  }));
  if (!ONLY) await account(tally, [...tally.seen]);
}
await browser.close();
console.log(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed || !tally.passed ? 1 : 0;
