// Logins, questions to the user, and users with fewer permissions than the owner.
import { connected, equal, holds, rest, visit, visitor } from "./browser.mjs";

/** Logs in to a server, with the consent page of its authorization server in a new tab. */
export async function logIn(tally, yard, browser) {
  const { context, wrong, elsewhere } = await visitor(browser, yard.url);
  const page = await context.newPage();
  await tally.check("the user can log in to a server", async () => {
    await visit(page, yard, "/servers/guarded");
    const state = page.locator(".detail .state").first();
    await state.filter({ hasText: "needs authorization" }).waitFor();
    holds((await page.locator(".detail").innerText()).includes("not logged in"), "`not logged in` is missing");
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    const link = page.locator(".notice a");
    const address = new URL(await link.getAttribute("href"));
    elsewhere.add(address.origin).add(new URL(address.searchParams.get("redirect_uri")).origin);
    const [consent] = await Promise.all([context.waitForEvent("page"), link.click()]);
    await consent.getByRole("button", { name: "Allow" }).click();
    await state.filter({ hasText: "ready" }).waitFor();
    await page.locator(".facts", { hasText: "OAuth" }).waitFor();
    equal(await page.getByRole("button", { name: "Log in", exact: true }).count(), 0, "login buttons after the login");
    await visit(page, yard, "/tools/mcp__guarded__whoami");
    await page.getByRole("button", { name: "Call whoami" }).click();
    await page.getByText("whoami: authorized user").first().waitFor();
  });
  await tally.check("no hidden errors during the login", async () => equal(wrong, []));
  await context.close();
}

/** Tests questions of a legacy-era server during a call: sampling and elicitation. */
export async function asked(tally, yard, context) {
  const page = await context.newPage();
  const open = async (tool) => {
    await visit(page, yard, `/tools/mcp__odd__${tool}`);
    await page.getByRole("button", { name: `Call ${tool}` }).click();
    await question.waitFor();
  };
  const question = page.getByRole("region", { name: "Input requested by the server" });
  const result = page.getByRole("region", { name: "Call result" });
  const answer = () => question.getByRole("button", { name: "Submit", exact: true }).click();

  await tally.check("a sampling request is shown, and the user can write the completion", async () => {
    await open("ask_model");
    await question.getByText("Request details").click();
    holds((await question.innerText()).includes("the capital of <b>France</b>"), await question.innerText());
    const field = question.getByLabel("Answer");
    await field.fill((await field.inputValue()).replace('"text": ""', '"text": "Paris"'));
    await answer();
    await result.getByText(/the answer was .*Paris/).first().waitFor();
  });

  await tally.check("an elicitation is shown as a form with errors at its fields", async () => {
    await open("ask_person");
    holds((await question.innerText()).includes("Which <i>size</i>?"), await question.innerText());
    await answer();
    await question.locator(".field.faulty").waitFor();
    await question.getByLabel(/^size/).selectOption("large");
    await answer();
    await result.getByText(/the answer was .*"action":"accept"/).first().waitFor();
    const output = await result.innerText();
    holds(output.includes('"size":"large"') && output.includes('"wrapped":true'), output);
  });

  await tally.check("the user can dismiss an elicitation", async () => {
    await open("ask_person");
    await question.getByRole("button", { name: "Dismiss", exact: true }).click();
    await result.getByText(/the answer was .*"action":"cancel"/).first().waitFor();
  });
  await page.close();
}

/** Tests users with fewer permissions: what they see, and how missing permissions are explained. */
export async function strangers(tally, yard, browser) {
  const of = (name) => ({ url: yard.url, token: `the token of ${name}` });
  const needs = (permission) => new RegExp(`needs the permission ${permission}`);
  for (const [name, manage, observe] of [["ada", false, false], ["watcher", false, true], ["keeper", true, false]]) {
    const who = of(name);
    const { context, wrong } = await visitor(browser, yard.url);
    const page = await context.newPage();
    const open = async (place) => {
      await visit(page, who, place);
      await connected(page);
    };
    await tally.check(`${name}, ${manage ? "with" : "without"} manage: server actions are enabled, or the missing permission is named`, async () => {
      await open("/servers/spare");
      equal(await page.locator(".who").innerText(), name);
      const buttons = page.locator(".detail .tools button");
      await buttons.first().waitFor();
      for (const button of await buttons.all()) {
        equal([await button.isDisabled(), (await button.getAttribute("aria-describedby")) !== null], [!manage, !manage], await button.innerText());
      }
      equal(await page.getByText(needs("manage")).count(), manage ? 0 : 1, "notices about manage");
    });
    await tally.check(`${name}, ${observe ? "with" : "without"} observe: standard error and transcript are shown, or the missing permission is named`, async () => {
      for (const [part, shown] of [["stderr", page.getByLabel("Standard error")], ["transcript", page.getByText("newest first")]]) {
        await open(`/servers/spare/${part}`);
        await (observe ? shown : page.getByText(needs("observe"))).waitFor();
      }
    });
    await tally.check(`${name}, ${observe ? "with" : "without"} observe: ${observe ? "all" : "only their own"} calls are on the timeline`, async () => {
      const session = `of-${name}`;
      await open(`/calls?session=${session}`);
      await rest(yard, "add", { a: 1, b: 1 }, { sessionId: session });
      await rest(who, "add", { a: 2, b: 2 }, { sessionId: session });
      await page.locator("a.row").nth(observe ? 1 : 0).waitFor();
      const makers = await page.locator("a.row .call > span:nth-child(3)").allInnerTexts();
      const owners = makers.filter((one) => !one.includes(name)).length;
      equal([makers.length, owners], observe ? [2, 1] : [1, 0], `number of calls, and of the owner's calls: ${makers}`);
      equal(await page.getByText(/only your own, other calls need/).count(), observe ? 0 : 1, "notices about observe");
    });
    await tally.check(`${name}: a tool that requires a permission is hidden`, async () => {
      await open("/tools/admin_report");
      await page.getByText("No tool named").waitFor();
      await open("/tools?q=add");
      await page.locator("a.row").first().waitFor();
    });
    await tally.check(`no hidden errors for ${name}`, async () => equal(wrong, []));
    await context.close();
  }
}
