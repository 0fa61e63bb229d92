// Everything that the page promises, and the checks that see it: a promise that no check of a whole run has seen fails the run.
// Names are those that the run prints; see docs/page.md for what each view is for.

export const FLOWS = [
  // Servers
  ["state, transport, era, version, counts, authorisation and uptime of a server", "servers show state, transport, era, version, counts and authorisation"],
  ["why a server failed, and its standard error", "a server that fails says why, and what it wrote"],
  ["reconnect, enable, disable", "a server is disabled, enabled and reconnected"],
  ["log in to a server", "a server that wants a login is logged in to from its page"],
  ["JSON-RPC transcript in both directions", "the transcript shows both directions"],
  // Tools
  ["instant search over 10,000 tools", "no key in the search over ten thousand tools takes 50 ms of the page's thread"],
  ["tools by server, tag and permission", "tools are narrowed by server, tag and permission"],
  ["tool name, full name, description, parameters: required first", "a tool shows name, full name, description and parameters, required ones first"],
  ["the full name is copied", "the full name is copied"],
  ["type, enum, range, nested parameters; hints as untrusted", "types, choices, ranges and what is nested are shown, and hints are said to be unchecked"],
  ["output schema and raw definition", "output schema and definition have addresses of their own"],
  // The form
  ["defaults are filled in", "the form begins with the defaults"],
  ["errors at the field", "what is wrong is said at the field, and what is right is called"],
  ["raw JSON and recent arguments", "arguments that were used before can be used again, and JSON can be written"],
  // Calls
  ["progress bar and cancel", "progress is shown, and a call is cancelled"],
  ["streamed chunks", "pieces are shown as they come"],
  ["results as JSON tree and text", "a result is content, a tree, and the whole as it came"],
  ["a table for lists of objects", "a list of objects is a table"],
  ["pictures", "a picture is shown"],
  ["sounds", "a sound is played"],
  ["embedded resources", "embedded resources are shown and can be downloaded"],
  ["links to resources", "links to resources lead to them"],
  ["a tool that says that it failed", "a tool that says that it failed is told from one that cannot be called"],
  ["copy as curl", "the call as curl does the same where it is run"],
  ["copy as CLI", "the call as CLI does the same where it is run"],
  ["copy as TypeScript", "the call as TypeScript does the same where it is run"],
  ["copy as Python", "the call as Python does the same where it is run"],
  ["confirmation of what is not hinted read-only, with what will be sent", "a call that may change something is confirmed, and shows what will be sent"],
  ["elicitation is answered and declined", "a question can be declined"],
  ["elicitation of an MCP server", "what a server asks of a person is a form, with its errors at the field"],
  ["sampling", "what a server asks of a model is shown, and a person writes the answer"],
  // The other views
  ["resources: preview and download", "a resource is read, previewed and downloaded"],
  ["templates", "a template is filled in"],
  ["prompts: fill in, see the messages", "a prompt is filled in, with completions, and shows its messages"],
  ["live timeline of all fronts with bars, filter, detail, repeat", "calls of other fronts appear as they are made, and are filtered, opened and repeated"],
  ["a call of the page is repeated", "a call of the page is repeated with its arguments"],
  ["a program is written and run, with its calls", "a program runs in the yard, and its calls are shown beside its output"],
  ["a program is opened from a file", "a program is opened, run, and its calls are on the timeline"],
  // Everywhere
  ["keyboard only", "a tool is found, filled in, called and left with keys only"],
  ["command palette", "the palette goes to views, servers, tools, resources and prompts, and changes the theme"],
  ["deep links for everything", / addresses lead to what they name, also after a reload/],
  ["links fill in forms", "what is filled in is copied as a link, and the link fills it in"],
  ["light and dark at 360 and 1280 px, axe", /^tool in (light|dark) at (360|1280) px: axe/, 4],
  ["what views say to assistive technology", /^what the view .* says to assistive technology/, 20],
  ["without manage and without observe: why things are off", /^ada, without (manage|observe)/, 3],
  ["the token: taken from the address, kept in the tab, asked for", "without a token the page asks for one, and takes it"],
  ["nothing leaves the origin or breaks the policy", /^nothing went wrong unseen/, 20],
  // Bad input
  ["HTML and script as text", "text that is HTML or script is text"],
  ["results of 5 MB", "a result of five megabytes is shown in part, and the page goes on"],
  ["descriptions of 5 MB", "a description of five megabytes is shown in part, and everything else goes on"],
  ["recursive, huge and missing schemas", "schemas that contain themselves, are huge, or say nothing have forms"],
  ["schemas that cannot be used", "a schema that cannot be compiled is told with its tool"],
  ["numbers as the server sent them", "numbers are as the server sent them"],
  ["patterns that never end", "a pattern that never ends does not stop the page"],
  ["a connection that breaks", "a connection that breaks comes back, and nothing is missed or shown twice"],
  ["a call whose connection breaks", "a call whose connection breaks says that its end is not known"],
  ["a token that expires", "a token that expires is asked for, and what was filled in is still there"],
  ["5,000 events a second", /^5,000 events a second/, 2],
  ["two tabs", "two tabs see the same at the same time, and each keeps its own"],
  ["first view under 300 kB and within a second", /^the first view /, 2],
];

/** Prints which checks saw each promise; fails for those that none did. */
export async function account(tally, seen) {
  for (const [flow, check, least = 1] of FLOWS) {
    const by = seen.filter((name) => (typeof check === "string" ? name === check : check.test(name)));
    await tally.check(`seen: ${flow}`, async () => {
      if (by.length < least) throw new Error(`${by.length} of ${least} checks passed that see it: ${check}`);
    });
  }
}
