import { defineConfig } from "vitepress";

const REPOSITORY = "https://github.com/toolyard/toolyard";

export default defineConfig({
  title: "Toolyard",
  description: "One binary that finds, tests, calls, serves and scripts MCP tools.",
  lang: "en-US",
  cleanUrls: true,
  // A link to a page that does not exist fails the build.
  ignoreDeadLinks: false,
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Quick start", link: "/quick-start" },
      { text: "Tasks", link: "/tasks/many-servers-one-url", activeMatch: "^/tasks/" },
      { text: "Concepts", link: "/concepts/yard-and-catalog", activeMatch: "^/concepts/" },
      { text: "Reference", link: "/reference/cli", activeMatch: "^/reference/" },
    ],
    sidebar: [
      {
        text: "Start here",
        items: [
          { text: "What Toolyard is", link: "/" },
          { text: "Install", link: "/install" },
          { text: "Quick start", link: "/quick-start" },
        ],
      },
      {
        text: "Tasks",
        items: [
          { text: "Explore servers and their tools", link: "/tasks/explore-servers" },
          { text: "Test a server in CI", link: "/tasks/test-a-server-in-ci" },
          { text: "Record and replay a session", link: "/tasks/record-and-replay" },
          { text: "Notice when a server changes", link: "/tasks/notice-changes" },
          { text: "Put five servers behind one URL", link: "/tasks/many-servers-one-url" },
          { text: "Turn an API into tools", link: "/tasks/api-to-tools" },
          { text: "Let an assistant script your tools", link: "/tasks/script-your-tools" },
          { text: "Give a team access", link: "/tasks/give-a-team-access" },
          { text: "Call tools from your code", link: "/tasks/call-from-your-code" },
          { text: "Write a tool in Rust", link: "/tasks/write-a-tool-in-rust" },
          { text: "Run several replicas", link: "/tasks/run-several-replicas" },
          { text: "Watch and audit calls", link: "/tasks/watch-and-audit" },
          { text: "Troubleshoot", link: "/tasks/troubleshoot" },
        ],
      },
      {
        text: "Concepts",
        items: [
          { text: "Yard, sources and catalog", link: "/concepts/yard-and-catalog" },
          { text: "Protocol eras", link: "/concepts/protocol-eras" },
          { text: "Sessions with servers", link: "/concepts/sessions" },
          { text: "Access and visibility", link: "/concepts/access" },
          { text: "Programs", link: "/concepts/programs" },
        ],
      },
      {
        text: "Reference",
        items: [
          { text: "Command line", link: "/reference/cli" },
          { text: "Configuration", link: "/reference/configuration" },
          { text: "Test files", link: "/reference/test-files" },
          { text: "Cassettes", link: "/reference/cassettes" },
          { text: "Generic tests", link: "/reference/generic-tests" },
          { text: "Lint rules", link: "/reference/lint" },
          { text: "REST API", link: "/reference/rest" },
          { text: "Control socket", link: "/reference/control" },
          { text: "Errors", link: "/reference/errors" },
          { text: "Metrics", link: "/reference/metrics" },
          { text: "OpenAPI mapping", link: "/reference/openapi" },
          { text: "OpenAPI requests", link: "/reference/openapi-requests" },
          { text: "Audit log and history", link: "/reference/audit" },
          { text: "Tester", link: "/reference/tester" },
          { text: "Programs", link: "/reference/programs" },
          { text: "Rust SDK", link: "/reference/sdk" },
          { text: "Page", link: "/reference/page" },
          { text: "Terminal UI", link: "/reference/ui" },
          { text: "Sandbox", link: "/reference/sandbox" },
        ],
      },
    ],
    socialLinks: [{ icon: "github", link: REPOSITORY }],
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path` },
  },
});
