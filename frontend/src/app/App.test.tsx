import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { StrictMode } from "react";
import { beforeEach, expect, test, vi } from "vitest";

import { FakeSocket } from "../test/FakeSocket";
import { job, snapshot } from "../test/factories";
import { App } from "./App";

const { id } = snapshot();
const workspaces = ["demo", "other"].map((slug) => ({ id: slug, slug, name: `The ${slug}` }));
const viewer = {
  actor: { name: "Ada" },
  memberships: workspaces.map((workspace) => ({ role: "ADMIN", isEnabled: true, workspace })),
};
const counts = { queued: 0, running: 1, succeeded: 10_000, failed: 2, cancelled: 0, isCapped: true };

interface Request {
  query: string;
  variables: { slug?: string; filter?: { states: string[] } | null };
}

let requests: Request[];

function answerTo({ query, variables }: Request): unknown {
  if (query.includes("ReadViewer")) return { viewer };
  if (query.includes("ReadJob")) return { job: job() };
  const nodes = variables.slug === "demo" ? [snapshot()] : [];
  return { workspace: { jobs: { nodes, pageInfo: { hasNextPage: false, endCursor: null } }, jobCounts: counts } };
}

beforeEach(() => {
  requests = [];
  FakeSocket.all = [];
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", (_url: URL, init: { body: string; headers: Record<string, string> }) => {
    if (init.headers.Authorization !== "Bearer good") {
      return Promise.resolve(new Response(JSON.stringify({ data: { viewer: null } })));
    }
    const request = JSON.parse(init.body) as Request;
    requests.push(request);
    return Promise.resolve(new Response(JSON.stringify({ data: answerTo(request) })));
  });
});

function open(hash: string): void {
  history.replaceState(null, "", hash);
  render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

function badge(): string | null {
  return screen.getByRole("status").textContent;
}

test("a pasted token that is no good is refused and forgotten", async () => {
  open("#/");
  fireEvent.change(screen.getByLabelText("Access token"), { target: { value: " bad " } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  expect((await screen.findByRole("alert")).textContent).toContain("does not accept");
  expect(sessionStorage.length).toBe(0);
});

test("a link with a token opens the first workspace", async () => {
  open("#token=good");
  expect(await screen.findByRole("link", { name: "course.tag_pages" })).toBeTruthy();
  expect(window.location.hash).toBe("#/workspaces/demo/jobs");
  expect(screen.getByRole("link", { name: "Succeeded 10,000+" })).toBeTruthy();
  expect(screen.getByRole("link", { name: "Running 1" })).toBeTruthy();
});

test("the workspace is chosen by name, the filter by link", async () => {
  sessionStorage.setItem("tenure.token", "good");
  open("#/workspaces/demo/jobs?state=failed");
  await screen.findByRole("link", { name: "course.tag_pages" });
  expect(requests.at(-1)?.variables.filter).toEqual({ states: ["FAILED"] });
  fireEvent.change(screen.getByLabelText("Workspace"), { target: { value: "other" } });
  expect(await screen.findByText("No jobs here yet.")).toBeTruthy();
  expect(window.location.hash).toBe("#/workspaces/other/jobs");
});

test("an open job is live over one stream, and the badge tells when that breaks", async () => {
  sessionStorage.setItem("tenure.token", "good");
  open(`#/workspaces/demo/jobs/${id}`);
  expect(await screen.findByRole("heading", { name: "course.tag_pages" })).toBeTruthy();
  await waitFor(() => {
    expect(FakeSocket.all).toHaveLength(1);
  });
  const socket = FakeSocket.last;
  socket.open();
  await waitFor(() => {
    expect(socket.sentTypes()).toEqual(["connection_init"]);
  });
  socket.receive({ type: "connection_ack" });
  await waitFor(() => {
    expect(socket.sentTypes()).toEqual(["connection_init", "subscribe"]);
  });
  const progress = { ...snapshot().progress, done: 9, succeeded: 8 };
  const payload = { data: { jobProgress: snapshot({ version: 6, progress }) } };
  socket.receive({ type: "next", id: socket.sent.at(-1)?.id, payload });
  expect(await screen.findByText("90 %")).toBeTruthy();
  expect(badge()).toBe("Connection: Live");
  socket.close(1006);
  await waitFor(() => {
    expect(badge()).toBe("Connection: Polling");
  });
});

test("the badge tells when nothing answers", async () => {
  sessionStorage.setItem("tenure.token", "good");
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  open("#/");
  await waitFor(() => {
    expect(badge()).toBe("Connection: Offline");
  });
});
