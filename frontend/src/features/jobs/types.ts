/** Jobs as this page reads them: the parts of the GraphQL types that its operations ask for. */
import type { JsonValue } from "../../lib/json";

export const jobStates = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type JobState = (typeof jobStates)[number];

export interface JobProgress {
  total: number | null;
  done: number;
  succeeded: number;
  skipped: number;
  failed: number;
  message: string | null;
}

/** What changes while a job lives; small enough to be streamed. */
export interface JobSnapshot {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  isTerminal: boolean;
  version: number;
  attempt: number;
  maxAttempts: number;
  errorCount: number;
  cancelRequestedAt: string | null;
  runAt: string;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  progress: JobProgress;
  lease: { owner: string; fencingToken: string } | null;
}

export interface JobError {
  at: string;
  attempt: number;
  code: string;
  message: string;
  itemKey: string | null;
}

export interface JobAttempt {
  number: number;
  isCounted: boolean;
  owner: string;
  startedAt: string;
  finishedAt: string | null;
  outcome: "SUCCEEDED" | "FAILED" | "CANCELLED" | "RELEASED" | "LOST" | null;
  error: { code: string; message: string } | null;
}

export interface Job extends JobSnapshot {
  actor: { name: string };
  priority: number;
  idempotencyKey: string | null;
  params: JsonValue;
  result: JsonValue;
  errors: JobError[];
  attempts: JobAttempt[];
}

export interface JobCounts {
  queued: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  isCapped: boolean;
}

export interface JobPage {
  jobs: JobSnapshot[];
  counts: JobCounts;
  /** Cursor of the next, older page; null on the last. */
  older: string | null;
}

/** Why a command was refused, in words that can be shown. */
export interface Refusal {
  code: string;
  message: string;
  details: string[];
}

/** What a command led to. A refusal may come with the job as it stands. */
export interface CommandOutcome {
  job: JobSnapshot | null;
  refusal: Refusal | null;
}
