import { formatRoute, type Route } from "../../app/route";
import { ProgressBar } from "../../components/ProgressBar";
import { StateBadge } from "../../components/StateBadge";
import { Time } from "../../components/Time";
import type { JobPage, JobSnapshot } from "./types";

/** One page of jobs, newest first. The whole row is a link to its job. */
export function JobList({ page, route }: { page: JobPage; route: Route }) {
  if (page.jobs.length === 0) {
    return <p className="empty">{route.state === null ? "No jobs here yet." : "No jobs in this state."}</p>;
  }
  return (
    <table className="jobs">
      <caption className="visually-hidden">Jobs, newest first</caption>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Job</th>
          <th scope="col">Progress</th>
          <th scope="col" className="when">
            Created
          </th>
        </tr>
      </thead>
      <tbody>
        {page.jobs.map((job) => (
          <JobRow key={job.id} job={job} route={route} />
        ))}
      </tbody>
    </table>
  );
}

function JobRow({ job, route }: { job: JobSnapshot; route: Route }) {
  const isSelected = job.id === route.jobId;
  return (
    <tr className={isSelected ? "selected" : undefined}>
      <td>
        <StateBadge state={job.state} isCancelling={!job.isTerminal && job.cancelRequestedAt !== null} />
      </td>
      <td>
        <a
          className="row-link"
          href={formatRoute({ ...route, jobId: job.id })}
          aria-current={isSelected ? "true" : undefined}
        >
          {job.kind}
        </a>
        <span className="id" title={job.id}>
          …{job.id.slice(-8)}
        </span>
      </td>
      <td className="progress">
        <RowProgress job={job} />
      </td>
      <td className="when">
        <Time at={job.createdAt} />
      </td>
    </tr>
  );
}

function RowProgress({ job }: { job: JobSnapshot }) {
  const { total, done } = job.progress;
  if (total === null && job.state !== "RUNNING") return <span className="muted">–</span>;
  return (
    <>
      <ProgressBar progress={job.progress} label={`Progress of ${job.kind}`} />
      <span className="figures">{total === null ? done : `${done}/${total}`}</span>
    </>
  );
}
