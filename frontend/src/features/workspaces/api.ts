/** Who is calling, and where they may look. */
import { operation, type Execute } from "../../lib/graphql";

export interface Membership {
  role: "VIEWER" | "OPERATOR" | "ADMIN";
  isEnabled: boolean;
  workspace: { id: string; slug: string; name: string };
}

export interface Viewer {
  actor: { name: string };
  memberships: Membership[];
}

export const readViewer = operation<{ viewer: Viewer | null }, Record<string, never>>(/* GraphQL */ `
  query ReadViewer {
    viewer {
      actor { name }
      memberships { role isEnabled workspace { id slug name } }
    }
  }
`);

/** Null where the token is no good. */
export async function fetchViewer(execute: Execute, signal: AbortSignal): Promise<Viewer | null> {
  return (await execute(readViewer, {}, signal)).viewer;
}
