/** All that this page asks the server about jobs. Components never fetch; they get this module's `JobsApi`. */
import { operation, type Execute } from "../../lib/graphql";
import type { Sink, Subscribe } from "../../lib/stream";
import { readOutcome, refusalFields, type CommandResult } from "./refusals";
import type { CommandOutcome, Job, JobCounts, JobPage, JobSnapshot, JobState } from "./types";

export interface JobListQuery {
  workspace: string;
  state: JobState | null;
  after: string | null;
}

export interface JobsApi {
  /** Null where there is no such workspace, or it is not the caller's. */
  list(query: JobListQuery, signal: AbortSignal): Promise<JobPage | null>;
  /** Null where there is no such job, or it is not the caller's. */
  get(id: string, signal: AbortSignal): Promise<Job | null>;
  watch(id: string, sink: Sink<JobSnapshot>): () => void;
  cancel(id: string): Promise<CommandOutcome>;
  /** Refused if the job is no longer at that version, so that two clicks run it once. */
  retry(id: string, expectedVersion: number): Promise<CommandOutcome>;
}

const pageSize = 25;

const snapshotFields = /* GraphQL */ `
  fragment Snapshot on Job {
    id
    kind
    queue
    state
    isTerminal
    version
    attempt
    maxAttempts
    errorCount
    cancelRequestedAt
    runAt
    createdAt
    startedAt
    finishedAt
    progress { total done succeeded skipped failed message }
    lease { owner fencingToken }
  }
`;

interface ListData {
  workspace: {
    jobs: { nodes: JobSnapshot[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
    jobCounts: JobCounts;
  } | null;
}

interface ListVariables {
  slug: string;
  first: number;
  after: string | null;
  filter: { states: JobState[] } | null;
}

export const listJobs = operation<ListData, ListVariables>(/* GraphQL */ `
  query ListJobs($slug: String!, $first: Int!, $after: String, $filter: JobFilter) {
    workspace(slug: $slug) {
      jobs(first: $first, after: $after, filter: $filter, orderBy: CREATED_AT_DESC) {
        nodes { ...Snapshot }
        pageInfo { hasNextPage endCursor }
      }
      jobCounts { queued running succeeded failed cancelled isCapped }
    }
  }
  ${snapshotFields}
`);

export const readJob = operation<{ job: Job | null }, { id: string }>(/* GraphQL */ `
  query ReadJob($id: ID!) {
    job(id: $id) {
      ...Snapshot
      actor { name }
      priority
      idempotencyKey
      params
      result
      errors { at attempt code message itemKey }
      attempts { number isCounted owner startedAt finishedAt outcome error { code message } }
    }
  }
  ${snapshotFields}
`);

// Params and result are left out: they may be large, and only the HTTP answer is read without loss of digits.
export const watchJob = operation<{ jobProgress: JobSnapshot }, { id: string }>(/* GraphQL */ `
  subscription WatchJob($id: ID!) {
    jobProgress(id: $id) { ...Snapshot }
  }
  ${snapshotFields}
`);

export const cancelJob = operation<{ cancelJob: CommandResult }, { input: { id: string } }>(/* GraphQL */ `
  mutation CancelJob($input: CancelJobInput!) {
    cancelJob(input: $input) {
      __typename
      ... on CancelJobPayload { job { ...Snapshot } }
      ${refusalFields("Forbidden")}
    }
  }
  ${snapshotFields}
`);

export const retryJob = operation<
  { retryJob: CommandResult },
  { input: { id: string; expectedVersion: number } }
>(/* GraphQL */ `
  mutation RetryJob($input: RetryJobInput!) {
    retryJob(input: $input) {
      __typename
      ... on RetryJobPayload { job { ...Snapshot } }
      ... on NotRetryable { job { ...Snapshot } }
      ${refusalFields("AdmissionRejected", "RateLimited", "InvalidInput", "Forbidden")}
    }
  }
  ${snapshotFields}
`);

export function createJobsApi(execute: Execute, subscribe: Subscribe): JobsApi {
  return {
    async list({ workspace, state, after }, signal) {
      const filter = state === null ? null : { states: [state] };
      const data = await execute(listJobs, { slug: workspace, first: pageSize, after, filter }, signal);
      if (data.workspace === null) return null;
      const { jobs, jobCounts } = data.workspace;
      const older = jobs.pageInfo.hasNextPage ? jobs.pageInfo.endCursor : null;
      return { jobs: jobs.nodes, counts: jobCounts, older };
    },
    async get(id, signal) {
      return (await execute(readJob, { id }, signal)).job;
    },
    watch(id, sink) {
      return subscribe(watchJob, { id }, {
        ...sink,
        next: ({ jobProgress }) => {
          sink.next(jobProgress);
        },
      });
    },
    async cancel(id) {
      return readOutcome((await execute(cancelJob, { input: { id } })).cancelJob);
    },
    async retry(id, expectedVersion) {
      return readOutcome((await execute(retryJob, { input: { id, expectedVersion } })).retryJob);
    },
  };
}
