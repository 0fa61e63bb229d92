// The features of the page and the checks that cover them. A full run fails if a feature is not covered by a passed check.
// The names of the checks are those that the run prints.

export const FLOWS = [
  // Servers
  ["state, transport, era, version, counts, authorization and uptime of a server", "a server shows its state, transport, era, version, counts and authorization"],
  ["the reason why a server failed, and its standard error", "a failed server shows the reason and its standard error"],
  ["reconnect, enable, disable", "a server can be disabled, enabled and reconnected"],
  ["log in to a server", "the user can log in to a server"],
  ["JSON-RPC transcript in both directions", "the transcript shows both directions"],
  // Tools
  ["instant search over 10,000 tools", "each key in the search over 10,000 tools takes less than 50 ms on the main thread"],
  ["tool filters by server, tag and permission", "tools can be filtered by server, tag and permission"],
  ["tool name, full name, description, and parameters with required ones first", "a tool shows name, full name, description and parameters, required ones first"],
  ["the full name can be copied", "the full name can be copied"],
  ["types, enums, ranges and nested parameters; annotations as unverified", "types, enums, ranges and nested parameters are shown, and annotations are marked as unverified"],
  ["output schema and raw definition", "the output schema and the definition have their own URLs"],
  // The form
  ["defaults in forms", "the form starts with the defaults"],
  ["errors at form fields", "invalid arguments are reported at their fields, and valid ones are sent"],
  ["raw JSON and recent arguments", "recent arguments can be reused, and arguments can be edited as JSON"],
  // Calls
  ["progress bar and cancel", "progress is shown, and a call can be canceled"],
  ["streamed chunks", "streamed chunks are shown as they arrive"],
  ["results as a JSON tree and as text", "a result is shown as content, as a tree, and raw"],
  ["tables for lists of objects", "a list of objects is shown as a table"],
  ["images", "an image is shown"],
  ["audio", "audio is played"],
  ["embedded resources", "embedded resources are shown and can be downloaded"],
  ["resource links", "resource links open the resource"],
  ["errors that a tool reports", "an error that a tool reports is shown as its result"],
  ["copy as curl", "the call copied as curl returns the same result"],
  ["copy as CLI", "the call copied as CLI returns the same result"],
  ["copy as TypeScript", "the call copied as TypeScript returns the same result"],
  ["copy as Python", "the call copied as Python returns the same result"],
  ["confirmation for tools that are not annotated as read-only, with the arguments", "a call to a tool that is not read-only must be confirmed, and the arguments are shown"],
  ["answering and declining an elicitation", "an elicitation can be declined"],
  ["an elicitation from an MCP server", "an elicitation is shown as a form with errors at its fields"],
  ["sampling", "a sampling request is shown, and the user can write the completion"],
  // The other views
  ["resources: preview and download", "a resource can be read, previewed and downloaded"],
  ["templates", "a template can be filled in"],
  ["prompts: form and messages", "a prompt can be filled in, with completions, and shows its messages"],
  ["live timeline of all clients with bars, filters, details and repeat", "calls of other clients appear live, and can be filtered, opened and repeated"],
  ["replicas with their state, version and differences", "the replicas of a yard are listed"],
  ["the state of a server at every replica", "the state of a server at every replica is shown"],
  ["a lost store and differing replicas are announced", "a store that is lost and replicas that differ are announced until they recover"],
  ["the replica of a call", "the replica of a call is shown and can be filtered by"],
  ["repeating a call from the page", "a call from the page can be repeated with its arguments"],
  ["writing and running a program, with its calls", "a program runs in the yard, and its calls are shown with its output"],
  ["opening a program from a file", "a program can be opened and run, and its calls are on the timeline"],
  // Everywhere
  ["keyboard only", "a tool can be found, filled in, called and closed with the keyboard only"],
  ["command palette", "the command palette opens views, servers, tools, resources and prompts, and changes the theme"],
  ["deep links for everything", / URLs open their view, also after a reload/],
  ["links that fill in forms", "form values can be copied as a link, and the link restores them"],
  ["light and dark at 360 and 1280 px, axe", /^tool in (light|dark) at (360|1280) px: axe/, 4],
  ["accessibility trees of the views", /^the accessibility tree of the view .* matches its snapshot/, 20],
  ["missing permissions manage and observe are explained", /^ada, without (manage|observe)/, 3],
  ["the token: read from the URL, stored in the tab, requested if missing", "without a token, the page shows the sign-in form and accepts a token"],
  ["no request leaves the origin or violates the content security policy", /^no hidden errors/, 20],
  // Bad input
  ["HTML and script as text", "HTML and scripts in text are shown as text"],
  ["results of 5 MB", "a result of 5 MB is shown in part, and the page stays responsive"],
  ["descriptions of 5 MB", "a description of 5 MB is shown in part, and the page stays responsive"],
  ["forms for recursive, huge and missing schemas", "recursive, huge and missing schemas have forms"],
  ["unusable schemas", "an unusable schema is reported with its tool"],
  ["original digits of numbers", "numbers keep their original digits"],
  ["patterns with catastrophic backtracking", "a pattern with catastrophic backtracking does not block the page"],
  ["lost connections", "after a lost connection, no event is missing or shown twice"],
  ["calls whose connection is lost", "a call whose connection is lost reports an unknown outcome"],
  ["expired tokens", "an expired token shows the sign-in form, and the input is preserved"],
  ["5,000 events per second", /^5,000 events per second/, 2],
  ["two tabs", "two tabs show the same state, and each keeps its own input"],
  ["first view under 300 kB and within a second", /^the first view /, 2],
];

/** Reports whether passed checks cover each feature. */
export async function account(tally, seen) {
  for (const [flow, check, least = 1] of FLOWS) {
    const by = seen.filter((name) => (typeof check === "string" ? name === check : check.test(name)));
    await tally.check(`covered: ${flow}`, async () => {
      if (by.length < least) throw new Error(`${by.length} of ${least} required checks passed: ${check}`);
    });
  }
}
