import { Time } from "../../components/Time";
import { duration } from "../../lib/time";
import type { Job, JobAttempt } from "./types";

/** Each time that a worker took the job, newest first. */
export function JobAttempts({ attempts }: { attempts: JobAttempt[] }) {
  if (attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <table className="history">
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">Outcome</th>
            <th scope="col">Started</th>
            <th scope="col">Took</th>
            <th scope="col">Worker</th>
          </tr>
        </thead>
        <tbody>
          {attempts.toReversed().map((attempt) => (
            <tr key={attempt.number}>
              <td>{attempt.number}</td>
              <td>
                {attempt.outcome === null ? "Running" : capitalized(attempt.outcome)}
                {!attempt.isCounted && <span className="muted"> · not counted</span>}
                {attempt.error && <span className="cause">{attempt.error.code}</span>}
              </td>
              <td>
                <Time at={attempt.startedAt} />
              </td>
              <td>{attempt.finishedAt === null ? "–" : duration(attempt.startedAt, attempt.finishedAt)}</td>
              <td className="id">{attempt.owner}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The newest errors; says so where there are more than are listed. */
export function JobErrors({ job }: { job: Job }) {
  if (job.errors.length === 0) return null;
  const { length } = job.errors;
  return (
    <section>
      <h3>Errors</h3>
      {job.errorCount > length && (
        <p className="muted">
          The newest {length} of {job.errorCount}.
        </p>
      )}
      <ul className="errors">
        {job.errors.map((error, index) => (
          <li key={`${error.at} ${index}`}>
            <p className="error-head">
              <code>{error.code}</code>
              {error.itemKey !== null && <span className="id">{error.itemKey}</span>}
              <span className="muted">
                attempt {error.attempt}, <Time at={error.at} />
              </span>
            </p>
            <p>{error.message}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function capitalized(word: string): string {
  return word.charAt(0) + word.slice(1).toLowerCase();
}
