-- Leases up to p_limit due jobs of the given kinds to p_owner: token + 1, attempt + 1, attempt row, lease.
-- Walks the ring of lanes (workspace, queue) that have waiting jobs, from the worker's cursor, and takes from each in
-- turn: 1, then 2, 4 … a round, until it has enough or a whole round gave nothing. Within a lane by priority, runAt, id.
-- Rows that another claims at the same time are passed over, so that claims wait for nobody. The plan is fixed here: lane
-- after lane by index descents; the planner's choice for a whole claim flips with the table's size.
-- It looks at 1,000 lanes at most. Where those held nothing for this worker, one row without a job carries the cursor, so
-- that the next call goes on behind them.
CREATE FUNCTION tenure_claim(
  p_owner text, p_kinds text[], p_limit int, p_lease_seconds double precision, p_cursor_workspace uuid, p_cursor_queue text
) RETURNS TABLE (job job, cursor_workspace uuid, cursor_queue text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
#variable_conflict use_column
DECLARE
  v_zero CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  v_workspace uuid := coalesce(p_cursor_workspace, v_zero);
  v_queue text := coalesce(p_cursor_queue, '');
  v_left int := p_limit;
  v_quota int := 1;
  v_round_taken int := 0;
  v_whole_round boolean := p_cursor_workspace IS NULL;
  v_visits int := 0;
  v_now timestamptz := clock_timestamp();
  v_ids uuid[];
  v_all uuid[] := '{}';
BEGIN
  WHILE v_left > 0 AND v_visits < 1000 LOOP
    v_visits := v_visits + 1;
    SELECT j.workspace_id, j.queue INTO v_workspace, v_queue
    FROM job AS j
    WHERE j.state = 'QUEUED' AND (j.workspace_id, j.queue) > (v_workspace, v_queue)
    ORDER BY j.workspace_id, j.queue LIMIT 1;
    IF NOT FOUND THEN  -- the end of the ring
      EXIT WHEN v_whole_round AND v_round_taken = 0;
      IF v_whole_round THEN
        v_quota := v_quota * 2;
      END IF;
      v_workspace := v_zero; v_queue := ''; v_whole_round := true; v_round_taken := 0;
      CONTINUE;
    END IF;
    CONTINUE WHEN (SELECT l.is_paused FROM lane AS l WHERE l.workspace_id = v_workspace AND l.queue = v_queue);

    v_ids := ARRAY(
      SELECT c.id
      FROM unnest(p_kinds) AS k(kind)
      CROSS JOIN LATERAL (
        WITH RECURSIVE level AS (  -- the priorities in use, by one index descent each, so that delayed jobs cost nothing
          (SELECT j.priority FROM job AS j
           WHERE j.state = 'QUEUED' AND j.workspace_id = v_workspace AND j.queue = v_queue AND j.kind = k.kind
           ORDER BY j.priority DESC LIMIT 1)
          UNION ALL
          SELECT (SELECT j.priority FROM job AS j
                  WHERE j.state = 'QUEUED' AND j.workspace_id = v_workspace AND j.queue = v_queue AND j.kind = k.kind
                    AND j.priority < level.priority
                  ORDER BY j.priority DESC LIMIT 1)
          FROM level WHERE level.priority IS NOT NULL
        )
        SELECT due.* FROM level
        CROSS JOIN LATERAL (
          SELECT j.id, j.priority, j.run_at FROM job AS j
          WHERE j.state = 'QUEUED' AND j.workspace_id = v_workspace AND j.queue = v_queue AND j.kind = k.kind
            AND j.priority = level.priority AND j.run_at <= v_now
          ORDER BY j.run_at, j.id LIMIT least(v_quota, v_left) FOR UPDATE SKIP LOCKED
        ) AS due
        LIMIT least(v_quota, v_left)
      ) AS c
      ORDER BY c.priority DESC, c.run_at, c.id LIMIT least(v_quota, v_left)
    );
    v_left := v_left - cardinality(v_ids);
    v_round_taken := v_round_taken + cardinality(v_ids);
    -- At once, so that the next round does not find them again.
    UPDATE job AS j SET
      state = 'RUNNING', fencing_token = j.fencing_token + 1, attempt = j.attempt + 1, version = j.version + 1,
      lease_owner = p_owner, heartbeat_at = clock_timestamp(),
      lease_expires_at = clock_timestamp() + p_lease_seconds * interval '1 second',
      started_at = coalesce(j.started_at, clock_timestamp())
    FROM unnest(v_ids) AS u(id) WHERE j.id = u.id;
    v_all := v_all || v_ids;
  END LOOP;

  INSERT INTO job_attempt (job_id, fencing_token, owner, started_at)
  SELECT j.id, j.fencing_token, p_owner, j.heartbeat_at FROM unnest(v_all) AS u(id) JOIN job AS j ON j.id = u.id;
  IF cardinality(v_all) = 0 AND v_visits >= 1000 THEN
    RETURN QUERY SELECT NULL::job, v_workspace, v_queue;
  END IF;
  RETURN QUERY
  SELECT j, v_workspace, v_queue FROM unnest(v_all) WITH ORDINALITY AS u(id, n) JOIN job AS j ON j.id = u.id ORDER BY u.n;
END
$$;
