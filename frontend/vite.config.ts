import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const api = "http://127.0.0.1:8000";

export default defineConfig({
  // Relative addresses: the page works at "/" and behind any path prefix.
  base: "",
  plugins: [react()],
  // Nothing is inlined as a data: URL, so that the page runs under `default-src 'self'`.
  build: { assetsInlineLimit: 0 },
  server: { proxy: { "/graphql": { target: api, ws: true } } },
  test: { environment: "happy-dom", setupFiles: "src/test/setup.ts", restoreMocks: true },
});
