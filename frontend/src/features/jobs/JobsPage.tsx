import { useEffect, type ReactNode } from "react";

import { formatRoute, type Route } from "../../app/route";
import { ConnectionBadge } from "../../components/ConnectionBadge";
import type { JobsApi } from "./api";
import { JobList } from "./JobList";
import { JobPanel } from "./JobPanel";
import type { Connection, MonitorState } from "./monitor";
import { StateTabs } from "./StateTabs";
import type { JobSnapshot } from "./types";
import { useJob, useJobList, type JobListState } from "./useJobs";

interface Props {
  api: JobsApi;
  route: Route & { workspace: string };
  /** The page's header, around the connection badge. */
  header: (badge: ReactNode) => ReactNode;
  onUnauthenticated: () => void;
}

/** The jobs of one workspace: the list, and beside it the job that the address names. */
export function JobsPage({ api, route, header, onUnauthenticated }: Props) {
  const list = useJobList(api, route);
  const followed = useJob(api, route.jobId);
  const isSignedOut = list.problem?.isUnauthenticated === true || followed.problem?.isUnauthenticated === true;
  useEffect(() => {
    if (isSignedOut) onUnauthenticated();
  }, [isSignedOut, onUnauthenticated]);

  const accept = (job: JobSnapshot): void => {
    followed.accept(job);
    list.refresh();
  };
  const closeHref = formatRoute({ ...route, jobId: null });
  return (
    <>
      {header(<ConnectionBadge connection={connectionOf(list, route.jobId === null ? null : followed)} />)}
      <main className={route.jobId === null ? "columns" : "columns with-panel"}>
        <ListColumn list={withNewest(list, followed.job)} route={route} />
        {route.jobId !== null && (
          <div className="panel-column">
            {followed.job && (
              <JobPanel
                key={followed.job.id}
                api={api}
                job={followed.job}
                closeHref={closeHref}
                onChange={accept}
              />
            )}
            {!followed.job && <PanelNote followed={followed} closeHref={closeHref} />}
          </div>
        )}
      </main>
    </>
  );
}

function ListColumn({ list, route }: { list: JobListState; route: Route & { workspace: string } }) {
  return (
    <section className="list" aria-label="Jobs">
      <StateTabs route={route} counts={list.page?.counts ?? null} />
      {list.problem && !list.problem.isOffline && (
        <p className="note note-error" role="alert">
          <code>{list.problem.code}</code> {list.problem.message}
        </p>
      )}
      {list.isMissing && <p className="empty">There is no workspace “{route.workspace}”, or it is not yours to see.</p>}
      {!list.page && !list.isMissing && !list.problem && <p className="empty">Loading…</p>}
      {list.page && <JobList page={list.page} route={route} />}
      <nav className="pages" aria-label="Pages">
        {route.after !== null && <a href={formatRoute({ ...route, after: null })}>← Newest</a>}
        {list.page?.older && <a href={formatRoute({ ...route, after: list.page.older })}>Older →</a>}
      </nav>
    </section>
  );
}

function PanelNote({ followed, closeHref }: { followed: MonitorState; closeHref: string }) {
  const { isMissing, problem } = followed;
  return (
    <div className="panel">
      <p>
        {isMissing && "There is no such job, or it is not yours to see."}
        {!isMissing && (problem ? problem.message : "Loading…")}
      </p>
      <a href={closeHref}>Back to the list</a>
    </div>
  );
}

/** The list with the followed job as it is known by now, so that its row does not lag behind its panel. */
function withNewest(list: JobListState, followed: JobSnapshot | null): JobListState {
  if (list.page === null || followed === null) return list;
  const jobs = list.page.jobs.map((job) => (job.id === followed.id && job.version < followed.version ? followed : job));
  return { ...list, page: { ...list.page, jobs } };
}

/** The worst of what is on the page, but for an open stream: then its job is fresh, whatever the list does. */
function connectionOf(list: JobListState, followed: MonitorState | null): Connection {
  if (followed?.connection === "live") return "live";
  if (list.problem?.isOffline === true || followed?.connection === "offline") return "offline";
  if (list.page === null && !list.isMissing && list.problem === null) return "connecting";
  return followed?.connection ?? "idle";
}
