import { expect, test, vi } from "vitest";

import { createExecute, operation, RequestError } from "./graphql";
import { formatJson, type JsonValue } from "./json";

const readParams = operation<{ params: JsonValue }, { id: string }>("query ($id: ID!) { params(id: $id) }");

function answer(body: string, status = 200) {
  const fetchStub = vi.fn<typeof fetch>(() => Promise.resolve(new Response(body, { status })));
  vi.stubGlobal("fetch", fetchStub);
  return fetchStub;
}

async function failure(): Promise<RequestError> {
  const error: unknown = await createExecute("secret")(readParams, { id: "1" }).catch((caught: unknown) => caught);
  if (error instanceof RequestError) return error;
  throw new Error("expected a RequestError");
}

test("sends the token and the variables, and reads large integers", async () => {
  const fetchStub = answer('{"data": {"params": {"n": 9007199254740993}}}');
  const { params } = await createExecute("secret")(readParams, { id: "1" });
  const init = fetchStub.mock.lastCall?.[1];
  expect(new Headers(init?.headers).get("Authorization")).toBe("Bearer secret");
  expect(init?.body).toBe(JSON.stringify({ query: readParams.text, variables: { id: "1" } }));
  expect(formatJson(params)).toContain("9007199254740993");
});

test("an error in the answer rejects with its code, also beside data", async () => {
  answer('{"data": {"params": 1}, "errors": [{"message": "No.", "extensions": {"code": "UNAUTHENTICATED"}}]}');
  expect(await failure()).toMatchObject({ code: "UNAUTHENTICATED", message: "No.", isUnauthenticated: true });
});

test("a proxy's error page is told by its status", async () => {
  answer("<html>Bad gateway</html>", 502);
  expect(await failure()).toMatchObject({ code: "HTTP_502", isOffline: true });
});

test("no answer is offline", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  expect(await failure()).toMatchObject({ code: "OFFLINE", isOffline: true, isUnauthenticated: false });
});
