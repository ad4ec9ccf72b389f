/** Jobs for tests: a running one, and the changes that make others of it. */
import type { Job, JobSnapshot } from "../features/jobs/types";

const at = "2026-01-02T03:04:05Z";

export function snapshot(change: Partial<JobSnapshot> = {}): JobSnapshot {
  return {
    id: "01890000-0000-7000-8000-000000000001",
    kind: "course.tag_pages",
    queue: "admin",
    state: "RUNNING",
    isTerminal: false,
    version: 5,
    attempt: 1,
    maxAttempts: 3,
    errorCount: 0,
    cancelRequestedAt: null,
    runAt: at,
    createdAt: at,
    startedAt: at,
    finishedAt: null,
    progress: { total: 10, done: 4, succeeded: 3, skipped: 1, failed: 0, message: null },
    lease: { owner: "worker-1", fencingToken: "1" },
    ...change,
  };
}

export function job(change: Partial<Job> = {}): Job {
  return {
    ...snapshot(),
    actor: { name: "Ada" },
    priority: 0,
    idempotencyKey: null,
    params: {},
    result: null,
    errors: [],
    attempts: [],
    ...change,
  };
}

export const ended = { state: "SUCCEEDED", isTerminal: true, lease: null, finishedAt: at } as const;
