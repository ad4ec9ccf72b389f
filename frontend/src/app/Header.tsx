import type { ReactNode } from "react";

import type { Viewer } from "../features/workspaces/api";
import { formatRoute } from "./route";

interface Props {
  viewer: Viewer;
  workspace: string | null;
  badge: ReactNode;
  onSignOut: () => void;
}

/** Where you are, who you are, and how fresh it is. */
export function Header({ viewer, workspace, badge, onSignOut }: Props) {
  const places = viewer.memberships.filter(({ isEnabled }) => isEnabled);
  const isKnown = places.some((place) => place.workspace.slug === workspace);
  return (
    <header className="top">
      <h1>
        <img src="./favicon.svg" alt="" width="22" height="22" /> Tenure
      </h1>
      <label className="picker">
        <span className="visually-hidden">Workspace</span>
        <select
          value={workspace ?? ""}
          onChange={(event) => {
            const slug = event.target.value;
            window.location.hash = formatRoute({ workspace: slug, jobId: null, state: null, after: null });
          }}
        >
          {!isKnown && <option value={workspace ?? ""}>{workspace ?? "No workspace"}</option>}
          {places.map((place) => (
            <option key={place.workspace.id} value={place.workspace.slug}>
              {place.workspace.name}
            </option>
          ))}
        </select>
      </label>
      {badge}
      <span className="who">{viewer.actor.name}</span>
      <button type="button" onClick={onSignOut}>
        Sign out
      </button>
    </header>
  );
}
