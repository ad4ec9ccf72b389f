import { expect, test } from "vitest";

import { formatRoute, parseRoute, type Route } from "./route";

const routes: Route[] = [
  { workspace: null, jobId: null, state: null, after: null },
  { workspace: "demo", jobId: null, state: null, after: null },
  { workspace: "a/b c", jobId: "0189-1", state: "FAILED", after: "cur+sor==" },
];

test.each(routes)("$workspace survives the way through the address", (route) => {
  expect(parseRoute(formatRoute(route))).toEqual(route);
});

test.each(["", "#/", "#/elsewhere/demo", "#/workspaces/", "#token=x", "#/%"])("%s names no workspace", (hash) => {
  expect(parseRoute(hash)).toEqual(routes[0]);
});

test("an unknown state is no filter", () => {
  expect(parseRoute("#/workspaces/demo/jobs?state=weird").state).toBeNull();
});
