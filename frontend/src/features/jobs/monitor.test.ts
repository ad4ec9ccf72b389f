import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { RequestError } from "../../lib/graphql";
import type { Sink } from "../../lib/stream";
import { ended, job, snapshot } from "../../test/factories";
import { startMonitor, type Monitor, type MonitorState } from "./monitor";
import type { Job, JobSnapshot } from "./types";

let stored: Job | null;
let monitor: Monitor | undefined;
let state: MonitorState | undefined;
let sinks: Sink<JobSnapshot>[];
const get = vi.fn(() => Promise.resolve(stored));
const close = vi.fn();

async function start(): Promise<void> {
  const watch = (_id: string, sink: Sink<JobSnapshot>) => {
    sinks.push(sink);
    return close;
  };
  monitor = startMonitor({ get, watch }, "1", (reported) => {
    state = reported;
  });
  await vi.advanceTimersByTimeAsync(0);
}

function sink(): Sink<JobSnapshot> {
  const last = sinks.at(-1);
  if (!last) throw new Error("no stream was opened");
  return last;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  get.mockImplementation(() => Promise.resolve(stored));
  sinks = [];
  stored = job({ params: { n: 1 } });
});

afterEach(() => {
  monitor?.stop();
});

test("reads once, then lives by the stream", async () => {
  await start();
  expect(state).toMatchObject({ job: { params: { n: 1 } }, connection: "connecting" });
  sink().next(snapshot({ version: 6 }));
  await vi.advanceTimersByTimeAsync(2_000);
  const reads = get.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(get).toHaveBeenCalledTimes(reads);
  expect(state).toMatchObject({ job: { version: 6, params: { n: 1 } }, connection: "live" });
});

test("falls back to polling when the stream breaks, and takes it up again", async () => {
  await start();
  sink().next(snapshot());
  sink().broken();
  expect(state?.connection).toBe("polling");
  stored = job({ version: 7 });
  await vi.advanceTimersByTimeAsync(500);
  expect(state).toMatchObject({ job: { version: 7 }, connection: "polling" });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(sinks).toHaveLength(2);
  sink().next(snapshot({ version: 8 }));
  expect(state?.connection).toBe("live");
});

test("streams that keep breaking are tried ever more rarely", async () => {
  await start();
  for (let second = 0; second < 120; second += 1) {
    if (close.mock.calls.length < sinks.length) sink().broken();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(sinks.length).toBeGreaterThan(4);
  expect(sinks.length).toBeLessThan(12);
});

test("a version never goes back", async () => {
  await start();
  sink().next(snapshot({ version: 9 }));
  sink().next(snapshot({ version: 8, state: "QUEUED" }));
  expect(state?.job).toMatchObject({ version: 9, state: "RUNNING" });
});

test("the end comes by the stream, the result by the read that follows", async () => {
  await start();
  sink().next(snapshot({ version: 9, ...ended }));
  stored = job({ version: 9, ...ended, result: { tagged: 3 } });
  sink().complete();
  await vi.advanceTimersByTimeAsync(500);
  expect(state).toMatchObject({ job: { result: { tagged: 3 } }, connection: "idle" });
  expect(sinks).toHaveLength(1);
});

test("a job that is retried is followed again", async () => {
  stored = job({ version: 9, ...ended, state: "FAILED" });
  await start();
  expect(sinks).toHaveLength(0);
  stored = job({ version: 10, state: "QUEUED" });
  monitor?.accept(snapshot({ version: 10, state: "QUEUED" }));
  await vi.advanceTimersByTimeAsync(500);
  expect(sinks).toHaveLength(1);
});

test("is offline while nothing answers, keeps what it knows, and comes back", async () => {
  await start();
  sink().broken();
  get.mockImplementation(() => Promise.reject(new RequestError("OFFLINE", "The server does not answer.")));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(state).toMatchObject({ connection: "offline", job: { version: 5 } });
  get.mockImplementation(() => Promise.resolve(stored));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(state).toMatchObject({ connection: "polling", problem: null });
});

test("says so when there is no such job", async () => {
  stored = null;
  await start();
  expect(state).toMatchObject({ isMissing: true, job: null });
});

test("closes its stream when stopped, and reports no more", async () => {
  await start();
  const before = state;
  monitor?.stop();
  expect(close).toHaveBeenCalledOnce();
  sink().next(snapshot({ version: 99 }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(state).toBe(before);
});
