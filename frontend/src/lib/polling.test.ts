import { beforeEach, expect, test, vi } from "vitest";

import { startPolling } from "./polling";

beforeEach(() => {
  vi.useFakeTimers();
});

function setHidden(isHidden: boolean): void {
  vi.spyOn(document, "hidden", "get").mockReturnValue(isHidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

test("runs at once, then again after the time that the task asks for, until stopped", async () => {
  const task = vi.fn(() => Promise.resolve<number | null>(1_000));
  const polling = startPolling(task);
  expect(task).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(task).toHaveBeenCalledTimes(3);
  polling.stop();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(task).toHaveBeenCalledTimes(3);
});

test("waits while the tab is hidden, and catches up when it is shown", async () => {
  const task = vi.fn(() => Promise.resolve<number | null>(1_000));
  const polling = startPolling(task);
  setHidden(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(task).toHaveBeenCalledTimes(1);
  setHidden(false);
  expect(task).toHaveBeenCalledTimes(2);
  polling.stop();
});

test("calls of runSoon are one run, and one that comes during a run is not lost", async () => {
  let finish = (): void => undefined;
  const task = vi.fn(
    () =>
      new Promise<null>((resolve) => {
        finish = () => {
          resolve(null);
        };
      }),
  );
  const polling = startPolling(task);
  polling.runSoon();
  polling.runSoon();
  expect(task).toHaveBeenCalledTimes(1);
  finish();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(task).toHaveBeenCalledTimes(2);
  finish();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(task).toHaveBeenCalledTimes(2);
  polling.stop();
});
