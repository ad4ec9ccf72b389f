import { beforeEach, expect, test, vi } from "vitest";

import { FakeSocket } from "../test/FakeSocket";
import { operation } from "./graphql";
import { createSubscribe } from "./stream";

const watch = operation<{ tick: number }, { id: string }>("subscription ($id: ID!) { tick(id: $id) }");

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  vi.stubGlobal("WebSocket", FakeSocket);
});

async function subscribed() {
  const sink = { next: vi.fn(), complete: vi.fn(), broken: vi.fn() };
  const stop = createSubscribe("secret")(watch, { id: "1" }, sink);
  await vi.advanceTimersByTimeAsync(0);
  const socket = FakeSocket.last;
  socket.open();
  await vi.advanceTimersByTimeAsync(0);
  socket.receive({ type: "connection_ack" });
  await vi.advanceTimersByTimeAsync(0);
  const id = socket.sent.at(-1)?.id;
  return { sink, stop, socket, id };
}

test("speaks graphql-transport-ws and signs in by connection_init", async () => {
  const { socket, sink, id } = await subscribed();
  expect(socket.protocol).toBe("graphql-transport-ws");
  expect(socket.sent).toEqual([
    { type: "connection_init", payload: { Authorization: "Bearer secret" } },
    { type: "subscribe", id, payload: { query: watch.text, variables: { id: "1" } } },
  ]);
  socket.receive({ type: "next", id, payload: { data: { tick: 1 } } });
  expect(sink.next).toHaveBeenCalledExactlyOnceWith({ tick: 1 });
});

test("the server's complete is no break", async () => {
  const { socket, sink, id } = await subscribed();
  socket.receive({ type: "complete", id });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sink.complete).toHaveBeenCalledOnce();
  expect(sink.broken).not.toHaveBeenCalled();
  expect(socket.readyState).toBe(FakeSocket.CLOSED);
});

test.each([1000, 1006, 1012, 4403])("a close with code %i is reported once, and nothing reconnects", async (code) => {
  const { socket, sink } = await subscribed();
  socket.close(code);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sink.broken).toHaveBeenCalledOnce();
  expect(sink.complete).not.toHaveBeenCalled();
  expect(FakeSocket.all).toHaveLength(1);
});

test("a refused subscription is a break", async () => {
  const { socket, sink, id } = await subscribed();
  socket.receive({ type: "error", id, payload: [{ message: "No." }] });
  await vi.advanceTimersByTimeAsync(0);
  expect(sink.broken).toHaveBeenCalledOnce();
});

test("a connection that answers no ping is a break", async () => {
  const { socket, sink } = await subscribed();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(socket.sentTypes()).toContain("ping");
  socket.receive({ type: "pong" });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sink.broken).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(sink.broken).toHaveBeenCalledOnce();
});

test("after unsubscribing the server is told, the sink is not, and the socket goes", async () => {
  const { socket, sink, stop, id } = await subscribed();
  stop();
  socket.receive({ type: "next", id, payload: { data: { tick: 2 } } });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(socket.sent.at(-1)).toEqual({ type: "complete", id });
  expect(socket.readyState).toBe(FakeSocket.CLOSED);
  expect(sink.next).not.toHaveBeenCalled();
  expect(sink.complete).not.toHaveBeenCalled();
  expect(sink.broken).not.toHaveBeenCalled();
});
