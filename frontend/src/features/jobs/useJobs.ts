/** The page's view of the server: a list that is polled, and one job that is followed. */
import { useCallback, useEffect, useRef, useState } from "react";

import { RequestError } from "../../lib/graphql";
import { startPolling, type Polling } from "../../lib/polling";
import type { JobListQuery, JobsApi } from "./api";
import { initialState, startMonitor, type Monitor, type MonitorState } from "./monitor";
import type { JobPage, JobSnapshot } from "./types";

export interface JobListState {
  page: JobPage | null;
  isMissing: boolean;
  problem: RequestError | null;
}

const pollMs = 2_000;
const failingPollMs = 4_000;
const emptyList: JobListState = { page: null, isMissing: false, problem: null };

/** The page that the query names, read again every two seconds; `refresh` reads it now. */
export function useJobList(api: JobsApi, query: JobListQuery): JobListState & { refresh: () => void } {
  const { workspace, state, after } = query;
  const key = JSON.stringify([workspace, state, after]);
  const [held, setHeld] = useState({ key, list: emptyList });
  const polling = useRef<Polling>(null);

  useEffect(() => {
    const current = startPolling(async (signal) => {
      const answer = await readPage(api, { workspace, state, after }, signal);
      if (signal.aborted) return null;
      setHeld((before) => ({ key, list: { ...(before.key === key ? before.list : emptyList), ...answer } }));
      return answer.problem ? failingPollMs : pollMs;
    });
    polling.current = current;
    return () => {
      current.stop();
    };
  }, [api, key, workspace, state, after]);

  const refresh = useCallback(() => {
    polling.current?.runSoon();
  }, []);
  return { ...(held.key === key ? held.list : emptyList), refresh };
}

async function readPage(api: JobsApi, query: JobListQuery, signal: AbortSignal): Promise<Partial<JobListState>> {
  try {
    const page = await api.list(query, signal);
    return { page, isMissing: page === null, problem: null };
  } catch (error) {
    if (error instanceof RequestError) return { problem: error };
    return { problem: new RequestError("INTERNAL", "The page failed to read the list.") };
  }
}

/** Follows the job while the component is mounted; null follows none. */
export function useJob(api: JobsApi, id: string | null): MonitorState & { accept: (job: JobSnapshot) => void } {
  const [held, setHeld] = useState({ id, state: initialState });
  const monitor = useRef<Monitor>(null);

  useEffect(() => {
    if (id === null) return;
    const current = startMonitor(api, id, (state) => {
      setHeld({ id, state });
    });
    monitor.current = current;
    return () => {
      current.stop();
    };
  }, [api, id]);

  const accept = useCallback((job: JobSnapshot) => {
    monitor.current?.accept(job);
  }, []);
  return { ...(held.id === id ? held.state : initialState), accept };
}
