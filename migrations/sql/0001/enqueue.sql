-- Enqueues any number of jobs in one call: idempotency, admission, jobs and audit events, all or nothing for each.
-- Each statement here has a snapshot of its own (READ COMMITTED), so that what is looked up after a lock is the newest:
-- one statement with CTEs cannot do this.
-- status: CREATED, EXISTING (replay), CONFLICT, REFUSED (with what, used, max and perhaps retry_after in seconds).
CREATE FUNCTION tenure_enqueue(
  p_workspaces uuid[], p_actors uuid[], p_kinds text[], p_queues text[], p_priorities int[], p_params text[],
  p_run_ats timestamptz[], p_max_attempts int[], p_keys text[], p_hashes bytea[], p_algorithm int,
  p_max_workspace bigint, p_queue_limits jsonb
) RETURNS TABLE (
  ord int, status text, refused_by text, refused_queue text, used bigint, max bigint, retry_after double precision,
  job job, attempts jsonb
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_count CONSTANT int := cardinality(p_workspaces);
  v_now timestamptz := clock_timestamp();
  v_ids uuid[];
  v_known uuid[] := array_fill(NULL::uuid, ARRAY[v_count]);        -- the job that a key already stands for
  v_status text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_by text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_by_queue text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_used bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
  v_max bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
  v_retry double precision[] := array_fill(NULL::double precision, ARRAY[v_count]);
  v_number bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);   -- the job's place in its lane
  v_created uuid[];
  v_new int[];       -- the ords that need a place
  v_passed int[];    -- those that the workspaces' limits let in, in order
  v_taken bigint;
  v_global bigint;
  r record;
BEGIN
  v_ids := ARRAY(
    SELECT tenure_uuid7(v_now + n * interval '1 microsecond') FROM generate_series(1, v_count) AS n ORDER BY n);

  -- 1. Keys. An insert waits for a racing one with the same key, and goes on by itself where that rolls back.
  LOOP
    WITH made AS (
      INSERT INTO idempotency_record AS i (workspace_id, actor_id, key, algorithm, request_hash, job_id)
      SELECT u.w, u.a, u.k, p_algorithm, u.h, u.id
      FROM unnest(p_workspaces, p_actors, p_keys, p_hashes, v_ids, v_status) WITH ORDINALITY AS u(w, a, k, h, id, s, n)
      WHERE u.k IS NOT NULL AND u.s IS NULL
      ORDER BY u.w, u.a, u.k, u.n
      ON CONFLICT DO NOTHING
      RETURNING i.job_id
    )
    SELECT coalesce(array_agg(job_id), '{}') INTO v_created FROM made;
    FOR r IN
      SELECT u.n, u.id, u.k, u.h, i.job_id AS known, i.request_hash, i.algorithm, u.id = ANY (v_created) AS is_made
      FROM unnest(p_workspaces, p_actors, p_keys, p_hashes, v_ids, v_status) WITH ORDINALITY AS u(w, a, k, h, id, s, n)
      LEFT JOIN idempotency_record AS i ON i.workspace_id = u.w AND i.actor_id = u.a AND i.key = u.k
      WHERE u.s IS NULL
    LOOP
      IF r.k IS NULL OR r.is_made THEN
        v_status[r.n] := 'CREATED';
      ELSIF r.known IS NOT NULL THEN
        v_known[r.n] := r.known;
        v_status[r.n] := CASE
          WHEN r.request_hash = r.h AND r.algorithm = p_algorithm THEN 'EXISTING' ELSE 'CONFLICT' END;
      END IF;  -- else the holder was refused and took its record away: ask again
    END LOOP;
    EXIT WHEN array_position(v_status, NULL) IS NULL;
  END LOOP;

  -- 2. The workspaces' limits, from the narrowest to the widest, under the counters' locks. What a wider limit refuses,
  -- it also refuses for all that follow in the batch; so the admitted of each lane are numbered without a gap.
  v_new := ARRAY(SELECT u.n FROM unnest(v_status) WITH ORDINALITY AS u(s, n) WHERE u.s = 'CREATED' ORDER BY u.n);
  v_passed := '{}';
  IF cardinality(v_new) > 0 THEN
    PERFORM tenure_lock_lanes(
      array_agg(p_workspaces[n]), array_agg(p_queues[n]), array_agg(p_actors[n])) FROM unnest(v_new) AS n;
    v_now := clock_timestamp();
    FOR r IN
      WITH asked AS (
        SELECT n, p_workspaces[n] AS w, p_queues[n] AS q, p_actors[n] AS a FROM unnest(v_new) AS n
      ), limits AS (
        SELECT d.w, d.q, l.*
        FROM (SELECT DISTINCT w, q FROM asked) AS d
        CROSS JOIN LATERAL tenure_effective_limits(d.w, d.q, p_max_workspace, p_queue_limits) AS l
      ), by_actor AS (
        SELECT asked.*, l.max_workspace, l.max_queue, l.max_actor, l.max_day, la.pending AS actor_pending,
          la.pending + row_number() OVER (PARTITION BY asked.w, asked.q, asked.a ORDER BY asked.n) > l.max_actor AS refused
        FROM asked
        JOIN limits AS l ON l.w = asked.w AND l.q = asked.q
        JOIN lane_actor AS la ON la.workspace_id = asked.w AND la.queue = asked.q AND la.actor_id = asked.a
      ), numbered AS (
        SELECT b.n, lane.pending AS queue_pending, lane.created,
          row_number() OVER (PARTITION BY b.w, b.q ORDER BY b.n) AS place
        FROM by_actor AS b JOIN lane ON lane.workspace_id = b.w AND lane.queue = b.q
        WHERE b.refused IS NOT TRUE
      ), by_queue AS (
        SELECT b.*, x.queue_pending, x.created + x.place AS number,
          x.queue_pending + x.place > b.max_queue AS refused_queue,
          CASE WHEN b.max_day IS NOT NULL THEN (
            -- The job that must be older than 24 hours for this one to come in.
            SELECT extract(epoch FROM o.created_at + interval '24 hours' - v_now)::double precision FROM job AS o
            WHERE o.workspace_id = b.w AND o.queue = b.q AND o.lane_number = x.created + x.place - b.max_day
              AND o.created_at > v_now - interval '24 hours'
          ) END AS day_wait,
          b.max_day IS NOT NULL AND x.place > b.max_day AS day_full
        FROM by_actor AS b LEFT JOIN numbered AS x ON x.n = b.n
      ), by_workspace AS (
        SELECT b.n, lane.pending AS workspace_pending,
          lane.pending + row_number() OVER (PARTITION BY b.w ORDER BY b.n) > b.max_workspace AS refused_workspace
        FROM by_queue AS b JOIN lane ON lane.workspace_id = b.w AND lane.queue = '*'
        WHERE b.refused IS NOT TRUE AND b.refused_queue IS NOT TRUE AND b.day_wait IS NULL AND NOT b.day_full
      )
      SELECT b.*, w.workspace_pending, w.refused_workspace
      FROM by_queue AS b LEFT JOIN by_workspace AS w ON w.n = b.n ORDER BY b.n
    LOOP
      IF r.refused THEN
        v_by[r.n] := 'PENDING_PER_ACTOR'; v_by_queue[r.n] := r.q; v_used[r.n] := r.actor_pending; v_max[r.n] := r.max_actor;
      ELSIF r.refused_queue THEN
        v_by[r.n] := 'PENDING_PER_WORKSPACE'; v_by_queue[r.n] := r.q; v_used[r.n] := r.queue_pending; v_max[r.n] := r.max_queue;
      ELSIF r.day_wait IS NOT NULL OR r.day_full THEN
        v_by[r.n] := 'CREATED_PER_DAY'; v_by_queue[r.n] := r.q; v_used[r.n] := r.max_day; v_max[r.n] := r.max_day;
        v_retry[r.n] := coalesce(r.day_wait, 86400);
      ELSIF r.refused_workspace THEN
        v_by[r.n] := 'PENDING_PER_WORKSPACE'; v_used[r.n] := r.workspace_pending; v_max[r.n] := r.max_workspace;
      ELSE
        v_passed := v_passed || r.n::int;
        v_number[r.n] := r.number;
        CONTINUE;
      END IF;
      v_status[r.n] := 'REFUSED';
      v_used[r.n] := greatest(v_used[r.n], v_max[r.n]);  -- earlier ones of this batch count
    END LOOP;
  END IF;

  -- 3. The installation's limit: the last lock.
  v_taken := tenure_take_capacity(cardinality(v_passed));
  IF v_taken < cardinality(v_passed) THEN
    SELECT max_pending INTO v_global FROM installation;
    FOR i IN v_taken + 1 .. cardinality(v_passed) LOOP
      v_status[v_passed[i]] := 'REFUSED';
      v_by[v_passed[i]] := 'PENDING_GLOBAL';
      v_used[v_passed[i]] := v_global;
      v_max[v_passed[i]] := v_global;
    END LOOP;
    v_passed := v_passed[1:v_taken];
  END IF;

  -- 4. Write what came in; a refused request leaves no record.
  IF cardinality(v_passed) > 0 THEN
    INSERT INTO job (id, workspace_id, actor_id, kind, queue, lane_number, priority, state, params, max_attempts,
      idempotency_key, run_at, created_at)
    SELECT v_ids[n], p_workspaces[n], p_actors[n], p_kinds[n], p_queues[n], v_number[n], p_priorities[n], 'QUEUED',
      p_params[n]::jsonb, p_max_attempts[n], p_keys[n], coalesce(p_run_ats[n], v_now), v_now
    FROM unnest(v_passed) AS n;
    INSERT INTO audit_event (id, workspace_id, at, action, actor_id, job_id, details)
    SELECT tenure_uuid7(v_now + n * interval '1 microsecond'), p_workspaces[n], v_now, 'job.queued', p_actors[n], v_ids[n],
      jsonb_build_object('kind', p_kinds[n], 'queue', p_queues[n])
    FROM unnest(v_passed) AS n;
    PERFORM tenure_count_pending(
      array_agg(p_workspaces[n]), array_agg(p_queues[n]), array_agg(p_actors[n]), 1, true) FROM unnest(v_passed) AS n;
  END IF;
  IF cardinality(v_passed) < cardinality(v_new) THEN
    DELETE FROM idempotency_record AS i
    USING unnest(v_new) AS n
    WHERE v_status[n] = 'REFUSED'
      AND i.workspace_id = p_workspaces[n] AND i.actor_id = p_actors[n] AND i.key = p_keys[n];
    -- A key that came twice in this batch shares the refusal of its first.
    FOR i IN 1 .. v_count LOOP
      IF v_known[i] = ANY (v_ids) AND v_status[array_position(v_ids, v_known[i])] = 'REFUSED' THEN
        v_status[i] := 'REFUSED';
        v_by[i] := v_by[array_position(v_ids, v_known[i])];
        v_by_queue[i] := v_by_queue[array_position(v_ids, v_known[i])];
        v_used[i] := v_used[array_position(v_ids, v_known[i])];
        v_max[i] := v_max[array_position(v_ids, v_known[i])];
        v_retry[i] := v_retry[array_position(v_ids, v_known[i])];
      END IF;
    END LOOP;
  END IF;

  RETURN QUERY
  SELECT u.n::int, u.s, v_by[u.n], v_by_queue[u.n], v_used[u.n], v_max[u.n], v_retry[u.n], j, tenure_attempts(j.id)
  FROM unnest(v_status) WITH ORDINALITY AS u(s, n)
  LEFT JOIN job AS j ON u.s IN ('CREATED', 'EXISTING') AND j.id = coalesce(v_known[u.n], v_ids[u.n])
  ORDER BY u.n;
END
$$;
