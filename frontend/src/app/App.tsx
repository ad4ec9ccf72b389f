/** Wires the page: who is signed in, which workspace the address names, and what talks to the server. */
import { useCallback, useEffect, useState } from "react";

import { ConnectionBadge } from "../components/ConnectionBadge";
import { createJobsApi, type JobsApi } from "../features/jobs/api";
import { JobsPage } from "../features/jobs/JobsPage";
import { fetchViewer, type Viewer } from "../features/workspaces/api";
import { createExecute, RequestError, type Execute } from "../lib/graphql";
import { startPolling } from "../lib/polling";
import { createSubscribe } from "../lib/stream";
import { Header } from "./Header";
import { replaceRoute, useRoute } from "./route";
import { forgetToken, hasTokenInAddress, onTokenInAddress, readToken, saveToken } from "./session";
import { SignIn } from "./SignIn";

interface Session {
  execute: Execute;
  jobs: JobsApi;
}

const refused = "The server does not accept this token. It may have ended or been taken back.";

function openSession(token: string): Session {
  const execute = createExecute(token);
  return { execute, jobs: createJobsApi(execute, createSubscribe(token)) };
}

export function App() {
  const [session, setSession] = useState<Session | null>(() => {
    const token = readToken();
    return token === null ? null : openSession(token);
  });
  const [reason, setReason] = useState<string | null>(null);

  const signIn = useCallback((token: string) => {
    saveToken(token);
    setReason(null);
    setSession(openSession(token));
  }, []);
  const signOut = useCallback((why: string | null) => {
    forgetToken();
    setReason(why);
    setSession(null);
  }, []);
  useEffect(() => onTokenInAddress(signIn), [signIn]);

  if (session === null) return <SignIn reason={reason} onToken={signIn} />;
  return <SignedIn session={session} onSignOut={signOut} />;
}

function SignedIn({ session, onSignOut }: { session: Session; onSignOut: (why: string | null) => void }) {
  const refuse = useCallback(() => {
    onSignOut(refused);
  }, [onSignOut]);
  const { viewer, problem } = useViewer(session.execute, refuse);
  const route = useRoute();
  const { workspace } = route;
  const home = viewer?.memberships.find(({ isEnabled }) => isEnabled)?.workspace.slug;
  useEffect(() => {
    if (workspace === null && home !== undefined && !hasTokenInAddress()) {
      replaceRoute({ workspace: home, jobId: null, state: null, after: null });
    }
  }, [workspace, home]);

  const leave = (): void => {
    onSignOut(null);
  };
  if (viewer === null) return <Waiting problem={problem} onSignOut={leave} />;
  if (workspace === null) {
    return (
      <>
        <Header viewer={viewer} workspace={null} badge={null} onSignOut={leave} />
        <main>{home === undefined && <p className="empty">You are a member of no workspace yet.</p>}</main>
      </>
    );
  }
  return (
    <JobsPage
      api={session.jobs}
      route={{ ...route, workspace }}
      header={(badge) => <Header viewer={viewer} workspace={workspace} badge={badge} onSignOut={leave} />}
      onUnauthenticated={refuse}
    />
  );
}

function Waiting({ problem, onSignOut }: { problem: RequestError | null; onSignOut: () => void }) {
  return (
    <main className="sign-in">
      <h1>Tenure</h1>
      <ConnectionBadge connection={problem ? "offline" : "connecting"} />
      {problem && (
        <>
          <p role="alert">{problem.message} Trying again…</p>
          <button type="button" onClick={onSignOut}>
            Use another token
          </button>
        </>
      )}
    </main>
  );
}

interface ViewerState {
  viewer: Viewer | null;
  problem: RequestError | null;
}

/** Asks who the token stands for, until there is an answer; `onRefused` where it stands for nobody. */
function useViewer(execute: Execute, onRefused: () => void): ViewerState {
  const [held, setHeld] = useState<ViewerState & { execute: Execute }>({ execute, viewer: null, problem: null });
  useEffect(() => {
    const polling = startPolling(async (signal) => {
      try {
        const viewer = await fetchViewer(execute, signal);
        if (signal.aborted) return null;
        if (viewer === null) onRefused();
        else setHeld({ execute, viewer, problem: null });
        return null;
      } catch (error) {
        if (signal.aborted) return null;
        const problem = error instanceof RequestError ? error : new RequestError("INTERNAL", String(error));
        if (problem.isUnauthenticated) onRefused();
        else setHeld((before) => ({ execute, viewer: before.execute === execute ? before.viewer : null, problem }));
        return 3_000;
      }
    });
    return () => {
      polling.stop();
    };
  }, [execute, onRefused]);
  return held.execute === execute ? held : { viewer: null, problem: null };
}
