import { expect, test, vi } from "vitest";

import { forgetToken, onTokenInAddress, readToken } from "./session";

test("a token in the address is taken out of it and kept for the tab", () => {
  window.location.hash = "#token=abc%2F1";
  expect(readToken()).toBe("abc/1");
  expect(window.location.href).not.toContain("token");
  expect(readToken()).toBe("abc/1");
  forgetToken();
  expect(readToken()).toBeNull();
});

test("a link that is opened later signs in too", () => {
  const listener = vi.fn();
  const stop = onTokenInAddress(listener);
  history.replaceState(null, "", "#token=later");
  window.dispatchEvent(new HashChangeEvent("hashchange"));
  stop();
  expect(listener).toHaveBeenCalledExactlyOnceWith("later");
});
