/** What the page shows, kept in the address's fragment: it needs nothing of the server, and every state is a link. */
import { useMemo, useSyncExternalStore } from "react";

import { jobStates, type JobState } from "../features/jobs/types";

export interface Route {
  readonly workspace: string | null;
  readonly jobId: string | null;
  /** The list's filter; null shows all. */
  readonly state: JobState | null;
  /** The list's cursor; null is its newest page. */
  readonly after: string | null;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [, root, workspace, section, jobId] = path.split("/").map(decodePart);
  const search = new URLSearchParams(query);
  const state = search.get("state")?.toUpperCase();
  return {
    workspace: root === "workspaces" && workspace ? workspace : null,
    jobId: root === "workspaces" && section === "jobs" && jobId ? jobId : null,
    state: jobStates.find((known) => known === state) ?? null,
    after: search.get("after"),
  };
}

export function formatRoute({ workspace, jobId, state, after }: Route): string {
  if (workspace === null) return "#/";
  const search = new URLSearchParams();
  if (state !== null) search.set("state", state.toLowerCase());
  if (after !== null) search.set("after", after);
  const job = jobId === null ? "" : `/${encodeURIComponent(jobId)}`;
  const query = search.size > 0 ? `?${search.toString()}` : "";
  return `#/workspaces/${encodeURIComponent(workspace)}/jobs${job}${query}`;
}

/** Goes to a route without a step in the history, for corrections that "back" should not come to. */
export function replaceRoute(route: Route): void {
  history.replaceState(null, "", formatRoute(route));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(onHashChange, () => window.location.hash);
  return useMemo(() => parseRoute(hash), [hash]);
}

function onHashChange(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => {
    window.removeEventListener("hashchange", listener);
  };
}

/** Percent-decodes what can be decoded, and leaves the rest as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
