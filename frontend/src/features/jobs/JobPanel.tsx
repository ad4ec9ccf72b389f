import type { ReactNode } from "react";

import { JsonBlock } from "../../components/JsonBlock";
import { StateBadge } from "../../components/StateBadge";
import { Time } from "../../components/Time";
import { duration } from "../../lib/time";
import type { JobsApi } from "./api";
import { JobActions } from "./JobActions";
import { JobAttempts, JobErrors } from "./JobHistory";
import { JobProgressView } from "./JobProgressView";
import type { Job, JobSnapshot } from "./types";

interface Props {
  api: Pick<JobsApi, "cancel" | "retry">;
  job: Job;
  closeHref: string;
  onChange: (job: JobSnapshot) => void;
}

/** Everything about one job. */
export function JobPanel({ api, job, closeHref, onChange }: Props) {
  return (
    <article className="panel" aria-labelledby="job-title">
      <header>
        <div className="panel-title">
          <h2 id="job-title">{job.kind}</h2>
          <StateBadge state={job.state} isCancelling={!job.isTerminal && job.cancelRequestedAt !== null} />
          <a className="close" href={closeHref} aria-label="Close this job">
            ×
          </a>
        </div>
        <p className="id">{job.id}</p>
      </header>
      <JobProgressView job={job} />
      <JobActions api={api} job={job} onChange={onChange} />
      <Facts job={job} />
      <JobErrors job={job} />
      <JobAttempts attempts={job.attempts} />
      {job.state === "SUCCEEDED" && <JsonBlock label="Result" value={job.result} />}
      <JsonBlock label="Params" value={job.params} />
    </article>
  );
}

function Facts({ job }: { job: Job }) {
  return (
    <dl className="facts">
      <Fact name="Attempt">
        {job.attempt} of {job.maxAttempts}
      </Fact>
      <Fact name="Queue">
        {job.queue}
        {job.priority !== 0 && `, priority ${job.priority}`}
      </Fact>
      <Fact name="Created">
        <Time at={job.createdAt} /> by {job.actor.name}
      </Fact>
      {job.state === "QUEUED" && (
        <Fact name="Runs">
          <Time at={job.runAt} />
        </Fact>
      )}
      {job.startedAt !== null && (
        <Fact name="Started">
          <Time at={job.startedAt} />
        </Fact>
      )}
      {job.finishedAt !== null && (
        <Fact name="Finished">
          <Time at={job.finishedAt} />
          {job.startedAt !== null && `, after ${duration(job.startedAt, job.finishedAt)}`}
        </Fact>
      )}
      {job.cancelRequestedAt !== null && (
        <Fact name="Cancel asked">
          <Time at={job.cancelRequestedAt} />
        </Fact>
      )}
      {job.lease && <Fact name="Worker">{job.lease.owner}</Fact>}
      {job.idempotencyKey !== null && <Fact name="Key">{job.idempotencyKey}</Fact>}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
