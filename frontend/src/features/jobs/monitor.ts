/**
 * Follows one job: reads it over HTTP, then streams its changes, and polls whenever the stream is broken. Versions only
 * rise in what it reports. Knows nothing of React.
 */
import { RequestError } from "../../lib/graphql";
import { startPolling } from "../../lib/polling";
import type { JobsApi } from "./api";
import type { Job, JobSnapshot } from "./types";

/** How news of the job arrive; `idle` once it has ended and there are none to expect. */
export type Connection = "connecting" | "live" | "polling" | "offline" | "idle";

export interface MonitorState {
  job: Job | null;
  isMissing: boolean;
  connection: Connection;
  problem: RequestError | null;
}

export interface Monitor {
  /** Takes in what a command answered. */
  accept(snapshot: JobSnapshot): void;
  stop(): void;
}

export const initialState: MonitorState = { job: null, isMissing: false, connection: "connecting", problem: null };

const pollMs = 2_000;
// An ended job moves only if somebody retries it.
const idlePollMs = 10_000;
const longestBackoffMs = 30_000;

export function startMonitor(
  api: Pick<JobsApi, "get" | "watch">,
  id: string,
  report: (state: MonitorState) => void,
): Monitor {
  let state = initialState;
  let isStopped = false;
  let closeStream: (() => void) | null = null;
  let isLive = false;
  let reads = 0;
  let breaks = 0;
  let openAgainAt = 0;

  const update = (change: Partial<MonitorState>): void => {
    if (isStopped) return;
    state = { ...state, ...change };
    report(state);
  };

  const polling = startPolling(async (signal) => {
    try {
      return loaded(await api.get(id, signal));
    } catch (error) {
      if (!signal.aborted) failed(error);
      return pollMs;
    }
  });

  function loaded(job: Job | null): number | null {
    if (isStopped) return null;
    reads += 1;
    if (job === null) {
      dropStream();
      update({ job: null, isMissing: true, connection: "idle", problem: null });
      return idlePollMs;
    }
    if (!job.isTerminal) openStream();
    update({ job: newest(state.job, job), isMissing: false, problem: null, connection: connectionFor(job) });
    if (isLive) return null;
    return job.isTerminal ? idlePollMs : pollMs;
  }

  function connectionFor(job: JobSnapshot): Connection {
    if (isLive) return "live";
    if (job.isTerminal) return "idle";
    return breaks === 0 && reads <= 1 ? "connecting" : "polling";
  }

  function failed(error: unknown): void {
    const problem =
      error instanceof RequestError ? error : new RequestError("INTERNAL", "The page failed to read the job.");
    if (isLive) update({ problem });
    else update({ problem, connection: problem.isOffline ? "offline" : "polling" });
  }

  function openStream(): void {
    if (closeStream !== null || Date.now() < openAgainAt) return;
    closeStream = api.watch(id, {
      next: (snapshot) => {
        isLive = true;
        breaks = 0;
        accept(snapshot);
      },
      complete: () => {
        dropStream();
        // Not at the job's end, it is the server that goes away.
        if (state.job?.isTerminal !== true) countBreak();
        polling.runSoon();
      },
      broken: () => {
        dropStream();
        countBreak();
        update({ connection: "polling" });
        polling.runSoon();
      },
    });
  }

  function dropStream(): void {
    closeStream?.();
    closeStream = null;
    isLive = false;
  }

  function countBreak(): void {
    const waitMs = Math.min(longestBackoffMs, 1_000 * 2 ** breaks);
    openAgainAt = Date.now() + waitMs * (0.75 + Math.random() / 2);
    breaks += 1;
  }

  function accept(snapshot: JobSnapshot): void {
    const known = state.job;
    if (known === null || snapshot.version < known.version) return;
    const job = { ...known, ...snapshot };
    update({ job, connection: connectionFor(job), problem: null });
    if (hasMoreToRead(known, snapshot)) polling.runSoon();
  }

  return {
    accept,
    stop() {
      isStopped = true;
      polling.stop();
      dropStream();
    },
  };
}

/** A full read may have been overtaken by a snapshot; what it alone has is still the best there is. */
function newest(known: Job | null, read: Job): Job {
  if (known === null || known.version <= read.version) return read;
  return { ...known, params: read.params, errors: read.errors, attempts: read.attempts };
}

/** Errors, attempts and result are not in a snapshot; it only shows that they have changed. */
function hasMoreToRead(known: JobSnapshot, snapshot: JobSnapshot): boolean {
  return (
    known.state !== snapshot.state ||
    known.attempt !== snapshot.attempt ||
    known.errorCount !== snapshot.errorCount ||
    known.lease?.fencingToken !== snapshot.lease?.fencingToken
  );
}
