import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [vue()],
  define: {
    __VUE_OPTIONS_API__: "false",
    __VUE_PROD_DEVTOOLS__: "false",
    __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
  },
  build: {
    outDir: "../crates/serve/assets",
    emptyOutDir: true,
    target: "es2022",
    // Inlined data: URLs would require a weaker content security policy than the icon does.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: { proxy: { "/control": { target: "ws://127.0.0.1:8080", ws: true }, "/mcp": "http://127.0.0.1:8080" } },
  test: {
    include: ["test/**/*.test.ts"],
    environment: "node",
    // Browsers support JSON.rawJSON; Node before version 22 needs a flag for it.
    execArgv: "rawJSON" in JSON ? [] : ["--harmony-json-parse-with-source"],
  },
});
