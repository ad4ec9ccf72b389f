import { existsSync, readFileSync } from "node:fs";

import { buildSchema, parse, validate } from "graphql";
import { expect, test } from "vitest";

import { readViewer } from "../workspaces/api";
import { cancelJob, listJobs, readJob, retryJob, watchJob } from "./api";

// The SDL that the server prints; this folder may also be built alone, without it.
const schemaFile = "../schema/schema.graphql";

test.runIf(existsSync(schemaFile)).each(
  Object.entries({ cancelJob, listJobs, readJob, readViewer, retryJob, watchJob }),
)("%s is valid against the served schema", (_name, { text }) => {
  const schema = buildSchema(readFileSync(schemaFile, "utf8"));
  expect(validate(schema, parse(text))).toEqual([]);
});
