// Who may do what, as people see it: a server that wants a login, what is asked of the person at the page, and those who may
// less than the owner.
import { connected, equal, holds, rest, visit, visitor } from "./browser.mjs";

/** Logging in to a server from its page, with a consent page of the authorization server in a tab of its own. */
export async function logIn(tally, yard, browser) {
  const { context, wrong, elsewhere } = await visitor(browser, yard.url);
  const page = await context.newPage();
  await tally.check("a server that wants a login is logged in to from its page", async () => {
    await visit(page, yard, "/servers/guarded");
    const state = page.locator(".detail .state").first();
    await state.filter({ hasText: "needs authorization" }).waitFor();
    holds((await page.locator(".detail").innerText()).includes("not logged in"), "it does not say that nobody is logged in");
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    const link = page.locator(".notice a");
    const address = new URL(await link.getAttribute("href"));
    elsewhere.add(address.origin).add(new URL(address.searchParams.get("redirect_uri")).origin);
    const [door] = await Promise.all([context.waitForEvent("page"), link.click()]);
    await door.getByRole("button", { name: "Allow" }).click();
    await state.filter({ hasText: "ready" }).waitFor();
    await page.locator(".facts", { hasText: "OAuth" }).waitFor();
    equal(await page.getByRole("button", { name: "Log in", exact: true }).count(), 0, "buttons to log in once more");
    await visit(page, yard, "/tools/mcp__guarded__whoami");
    await page.getByRole("button", { name: "Call whoami" }).click();
    await page.getByText("whoami: somebody who was let in").first().waitFor();
  });
  await tally.check("nothing went wrong unseen while somebody logged in", async () => equal(wrong, []));
  await context.close();
}

/** What tools of an old server ask while they run: its client's model, and the person. */
export async function asked(tally, yard, context) {
  const page = await context.newPage();
  const open = async (tool) => {
    await visit(page, yard, `/tools/mcp__odd__${tool}`);
    await page.getByRole("button", { name: `Call ${tool}` }).click();
    await question.waitFor();
  };
  const question = page.getByRole("region", { name: "Questions of the server" });
  const result = page.getByRole("region", { name: "Result of the call" });
  const answer = () => question.getByRole("button", { name: "Answer", exact: true }).click();

  await tally.check("what a server asks of a model is shown, and a person writes the answer", async () => {
    await open("ask_model");
    await question.getByText("What it said").click();
    holds((await question.innerText()).includes("the capital of <b>France</b>"), await question.innerText());
    const field = question.getByLabel("The answer");
    await field.fill((await field.inputValue()).replace('"text": ""', '"text": "Paris"'));
    await answer();
    await result.getByText(/the answer was .*Paris/).first().waitFor();
  });

  await tally.check("what a server asks of a person is a form, with its errors at the field", async () => {
    await open("ask_person");
    holds((await question.innerText()).includes("Which <i>size</i>?"), await question.innerText());
    await answer();
    await question.locator(".field.faulty").waitFor();
    await question.getByLabel(/^size/).selectOption("large");
    await answer();
    await result.getByText(/the answer was .*"action":"accept"/).first().waitFor();
    const said = await result.innerText();
    holds(said.includes('"size":"large"') && said.includes('"wrapped":true'), said);
  });

  await tally.check("a person dismisses a question, and the tool hears that", async () => {
    await open("ask_person");
    await question.getByRole("button", { name: "Dismiss", exact: true }).click();
    await result.getByText(/the answer was .*"action":"cancel"/).first().waitFor();
  });
  await page.close();
}

/** What somebody sees who may less: everything that is theirs, and why the rest is not. */
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
    await tally.check(`${name}, ${manage ? "with" : "without"} manage: the buttons of servers say why they are off, or work`, async () => {
      await open("/servers/spare");
      equal(await page.locator(".who").innerText(), name);
      const buttons = page.locator(".detail .tools button");
      await buttons.first().waitFor();
      for (const button of await buttons.all()) {
        equal([await button.isDisabled(), (await button.getAttribute("aria-describedby")) !== null], [!manage, !manage], await button.innerText());
      }
      equal(await page.getByText(needs("manage")).count(), manage ? 0 : 1, "words about manage");
    });
    await tally.check(`${name}, ${observe ? "with" : "without"} observe: standard error and transcript are shown, or why not`, async () => {
      for (const [part, shown] of [["stderr", page.getByLabel("Standard error")], ["transcript", page.getByText("the latest first")]]) {
        await open(`/servers/spare/${part}`);
        await (observe ? shown : page.getByText(needs("observe"))).waitFor();
      }
    });
    await tally.check(`${name}, ${observe ? "with" : "without"} observe: ${observe ? "everybody's" : "only their own"} calls are on the timeline`, async () => {
      const session = `of-${name}`;
      await open(`/calls?session=${session}`);
      await rest(yard, "add", { a: 1, b: 1 }, { sessionId: session });
      await rest(who, "add", { a: 2, b: 2 }, { sessionId: session });
      await page.locator("a.row").nth(observe ? 1 : 0).waitFor();
      const makers = await page.locator("a.row .call > span:nth-child(3)").allInnerTexts();
      const owners = makers.filter((one) => !one.includes(name)).length;
      equal([makers.length, owners], observe ? [2, 1] : [1, 0], `calls and the owner's among them: ${makers}`);
      equal(await page.getByText(/only your own, others' need/).count(), observe ? 0 : 1, "words about observe");
    });
    await tally.check(`${name}: a tool that needs a permission is not there`, async () => {
      await open("/tools/admin_report");
      await page.getByText("There is no tool named").waitFor();
      await open("/tools?q=add");
      await page.locator("a.row").first().waitFor();
    });
    await tally.check(`nothing went wrong unseen for ${name}`, async () => equal(wrong, []));
    await context.close();
  }
}
