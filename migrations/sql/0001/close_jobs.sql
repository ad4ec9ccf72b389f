-- What every job's end has in common, after its row was set to an ended state in this transaction: items that did not
-- fail go (of the failed, the first 1,000 stay), counters fall, the audit event is written.
CREATE FUNCTION tenure_close_jobs(p_jobs uuid[], p_actor uuid) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_shard CONSTANT int := floor(random() * 16)::int;  -- drawn once: in a condition it would be drawn for each row
BEGIN
  IF cardinality(p_jobs) = 0 THEN
    RETURN;
  END IF;
  DELETE FROM job_item AS i USING unnest(p_jobs) AS u(id)
  WHERE i.job_id = u.id AND (i.outcome IS DISTINCT FROM 'FAILED' OR i.code IS NULL);
  INSERT INTO audit_event (id, workspace_id, at, action, actor_id, job_id, details)
  SELECT tenure_uuid7(v_now + u.n * interval '1 microsecond'), j.workspace_id, v_now, 'job.' || lower(j.state), p_actor, j.id,
    jsonb_strip_nulls(jsonb_build_object('kind', j.kind, 'attempts', j.fencing_token, 'errorCode',
      CASE WHEN j.state = 'FAILED' THEN j.errors -> -1 ->> 'code' END))
  FROM unnest(p_jobs) WITH ORDINALITY AS u(id, n) JOIN job AS j ON j.id = u.id;
  PERFORM tenure_lock_lanes(array_agg(j.workspace_id), array_agg(j.queue), array_agg(j.actor_id))
  FROM unnest(p_jobs) AS u(id) JOIN job AS j ON j.id = u.id;
  PERFORM tenure_count_pending(array_agg(j.workspace_id), array_agg(j.queue), array_agg(j.actor_id), -1, false)
  FROM unnest(p_jobs) AS u(id) JOIN job AS j ON j.id = u.id;
  -- Any shard will do: only the sum counts. The last lock.
  UPDATE admission_shard SET remaining = remaining + cardinality(p_jobs) WHERE shard = v_shard;
END
$$;
