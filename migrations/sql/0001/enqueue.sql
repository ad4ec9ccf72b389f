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
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
#variable_conflict use_column
DECLARE
  v_count CONSTANT int := cardinality(p_workspaces);
  v_now timestamptz := clock_timestamp();
  v_ids uuid[];      -- the new jobs', if they come in
  v_jobs uuid[];     -- those that the requests stand for: the new one's, or the one that the key stands for already
  v_status text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_by text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_by_queue text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_used bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
  v_max bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
  v_retry double precision[] := array_fill(NULL::double precision, ARRAY[v_count]);
  v_number bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);   -- the job's place in its lane
  v_passed int[];    -- the ords that the workspaces' limits let in, in order
  v_taken bigint;
  v_global bigint;
  v_first int;
  r record;
BEGIN
  v_ids := ARRAY(
    SELECT tenure_uuid7(v_now + n * interval '1 microsecond') FROM generate_series(1, v_count) AS n ORDER BY n);

  -- 1. Keys. An insert waits for a racing one with the same key, and goes on by itself where that rolls back.
  LOOP
    INSERT INTO idempotency_record AS i (workspace_id, actor_id, key, algorithm, request_hash, job_id)
    SELECT u.w, u.a, u.k, p_algorithm, u.h, u.id
    FROM unnest(p_workspaces, p_actors, p_keys, p_hashes, v_ids, v_status) WITH ORDINALITY AS u(w, a, k, h, id, s, n)
    WHERE u.k IS NOT NULL AND u.s IS NULL
    ORDER BY u.w, u.a, u.k, u.n
    ON CONFLICT DO NOTHING;
    SELECT array_agg(coalesce(i.job_id, u.id) ORDER BY u.n), array_agg(
      CASE
        WHEN u.k IS NULL OR i.job_id = u.id THEN 'CREATED'
        WHEN i.job_id IS NULL THEN NULL  -- its holder was refused and took its record away: ask again
        WHEN i.request_hash = u.h AND i.algorithm = p_algorithm THEN 'EXISTING'
        ELSE 'CONFLICT'
      END ORDER BY u.n)
    INTO v_jobs, v_status
    FROM unnest(p_workspaces, p_actors, p_keys, p_hashes, v_ids) WITH ORDINALITY AS u(w, a, k, h, id, n)
    LEFT JOIN idempotency_record AS i ON i.workspace_id = u.w AND i.actor_id = u.a AND i.key = u.k;
    EXIT WHEN array_position(v_status, NULL) IS NULL;
  END LOOP;

  -- 2. The workspaces' limits, from the narrowest to the widest, under the counters' locks. What a wider limit refuses,
  -- it also refuses for all that follow in the batch; so the admitted of each lane are numbered without a gap.
  IF 'CREATED' = ANY (v_status) THEN
    PERFORM tenure_lock_lanes(array_agg(u.w), array_agg(u.q), array_agg(u.a))
    FROM unnest(p_workspaces, p_queues, p_actors, v_status) AS u(w, q, a, s) WHERE u.s = 'CREATED';
    v_now := clock_timestamp();
    FOR r IN
      WITH lanes AS MATERIALIZED (
        SELECT d.w, d.q, lane.pending AS queue_pending, lane.created, whole.pending AS workspace_pending, l.*
        FROM (
          SELECT DISTINCT u.w, u.q FROM unnest(p_workspaces, p_queues, v_status) AS u(w, q, s) WHERE u.s = 'CREATED'
        ) AS d
        JOIN lane ON lane.workspace_id = d.w AND lane.queue = d.q
        JOIN lane AS whole ON whole.workspace_id = d.w AND whole.queue = '*'
        CROSS JOIN LATERAL tenure_effective_limits(d.w, d.q, p_max_workspace, p_queue_limits) AS l
      ), by_actor AS (
        SELECT u.n, x.*,
          CASE WHEN x.max_actor IS NOT NULL THEN (
            SELECT la.pending FROM lane_actor AS la WHERE la.workspace_id = u.w AND la.queue = u.q AND la.actor_id = u.a
          ) END AS actor_pending,
          row_number() OVER (PARTITION BY u.w, u.q, u.a ORDER BY u.n) AS actor_place
        FROM unnest(p_workspaces, p_queues, p_actors, v_status) WITH ORDINALITY AS u(w, q, a, s, n)
        JOIN lanes AS x ON x.w = u.w AND x.q = u.q
        WHERE u.s = 'CREATED'
      ), numbered AS (
        SELECT b.*, b.actor_pending + b.actor_place > b.max_actor AS refused_actor,
          count(*) FILTER (WHERE (b.actor_pending + b.actor_place > b.max_actor) IS NOT TRUE)
            OVER (PARTITION BY b.w, b.q ORDER BY b.n) AS place
        FROM by_actor AS b
      ), by_queue AS MATERIALIZED (
        SELECT b.*, b.created + b.place AS number,
          b.queue_pending + b.place > b.max_queue AS refused_queue,
          CASE WHEN b.max_day IS NOT NULL THEN (
            -- The job that must be older than 24 hours for this one to come in.
            SELECT extract(epoch FROM o.created_at + interval '24 hours' - v_now)::double precision FROM job AS o
            WHERE o.workspace_id = b.w AND o.queue = b.q AND o.lane_number = b.created + b.place - b.max_day
              AND o.created_at > v_now - interval '24 hours'
          ) END AS day_wait,
          b.max_day IS NOT NULL AND b.place > b.max_day AS day_full
        FROM numbered AS b
      )
      SELECT b.*,
        b.workspace_pending + count(*) FILTER (
          WHERE b.refused_actor IS NOT TRUE AND b.refused_queue IS NOT TRUE AND b.day_wait IS NULL AND NOT b.day_full
        ) OVER (PARTITION BY b.w ORDER BY b.n) > b.max_workspace AS refused_workspace
      FROM by_queue AS b
    LOOP
      IF r.refused_actor THEN
        v_by[r.n] := 'PENDING_PER_ACTOR'; v_by_queue[r.n] := r.q; v_used[r.n] := r.actor_pending; v_max[r.n] := r.max_actor;
      ELSIF r.refused_queue THEN
        v_by[r.n] := 'PENDING_PER_WORKSPACE'; v_by_queue[r.n] := r.q; v_used[r.n] := r.queue_pending; v_max[r.n] := r.max_queue;
      ELSIF r.day_wait IS NOT NULL OR r.day_full THEN
        v_by[r.n] := 'CREATED_PER_DAY'; v_by_queue[r.n] := r.q; v_used[r.n] := r.max_day; v_max[r.n] := r.max_day;
        v_retry[r.n] := coalesce(r.day_wait, 86400);
      ELSIF r.refused_workspace THEN
        v_by[r.n] := 'PENDING_PER_WORKSPACE'; v_used[r.n] := r.workspace_pending; v_max[r.n] := r.max_workspace;
      ELSE
        v_number[r.n] := r.number;
        CONTINUE;
      END IF;
      v_status[r.n] := 'REFUSED';
      v_used[r.n] := greatest(v_used[r.n], v_max[r.n]);  -- earlier ones of this batch count
    END LOOP;
  END IF;

  -- 3. The installation's limit: the last lock.
  v_passed := ARRAY(SELECT u.n FROM unnest(v_status) WITH ORDINALITY AS u(s, n) WHERE u.s = 'CREATED' ORDER BY u.n);
  v_taken := tenure_take_capacity(cardinality(v_passed));
  IF v_taken < cardinality(v_passed) THEN
    SELECT max_pending INTO v_global FROM installation;
    FOR i IN v_taken + 1 .. cardinality(v_passed) LOOP
      v_status[v_passed[i]] := 'REFUSED';
      v_by[v_passed[i]] := 'PENDING_GLOBAL';
      v_used[v_passed[i]] := v_global;
      v_max[v_passed[i]] := v_global;
    END LOOP;
  END IF;

  -- 4. Write what came in; a refused request leaves no record.
  IF v_taken > 0 THEN
    INSERT INTO job (id, workspace_id, actor_id, kind, queue, lane_number, priority, state, params, max_attempts,
      idempotency_key, run_at, created_at)
    SELECT u.id, u.w, u.a, u.kind, u.q, u.number, u.priority, 'QUEUED', u.params::jsonb, u.attempts, u.k,
      coalesce(u.run_at, v_now), v_now
    FROM unnest(v_ids, p_workspaces, p_actors, p_kinds, p_queues, v_number, p_priorities, p_params, p_max_attempts, p_keys,
      p_run_ats, v_status) AS u(id, w, a, kind, q, number, priority, params, attempts, k, run_at, s)
    WHERE u.s = 'CREATED';
    INSERT INTO audit_event (id, workspace_id, at, action, actor_id, job_id, details)
    SELECT tenure_uuid7(v_now + u.n * interval '1 microsecond'), u.w, v_now, 'job.queued', u.a, u.id,
      jsonb_build_object('kind', u.kind, 'queue', u.q)
    FROM unnest(v_ids, p_workspaces, p_actors, p_kinds, p_queues, v_status) WITH ORDINALITY AS u(id, w, a, kind, q, s, n)
    WHERE u.s = 'CREATED';
    PERFORM tenure_count_pending(array_agg(u.w), array_agg(u.q), array_agg(u.a), 1, true)
    FROM unnest(p_workspaces, p_queues, p_actors, v_status) AS u(w, q, a, s) WHERE u.s = 'CREATED';
  END IF;
  IF 'REFUSED' = ANY (v_status) THEN
    DELETE FROM idempotency_record AS i
    USING unnest(p_workspaces, p_actors, p_keys, v_status, v_ids) AS u(w, a, k, s, id)
    WHERE u.s = 'REFUSED' AND i.workspace_id = u.w AND i.actor_id = u.a AND i.key = u.k AND i.job_id = u.id;
    -- A key that came twice in this batch shares the refusal of its first.
    FOR i IN 1 .. v_count LOOP
      CONTINUE WHEN v_jobs[i] = v_ids[i];
      v_first := array_position(v_ids, v_jobs[i]);
      IF v_status[v_first] = 'REFUSED' THEN
        v_status[i] := 'REFUSED';
        v_by[i] := v_by[v_first];
        v_by_queue[i] := v_by_queue[v_first];
        v_used[i] := v_used[v_first];
        v_max[i] := v_max[v_first];
        v_retry[i] := v_retry[v_first];
      END IF;
    END LOOP;
  END IF;

  RETURN QUERY
  SELECT u.n::int, u.s, u.refused_by, u.refused_queue, u.used, u.max, u.retry, j,
    CASE u.s WHEN 'CREATED' THEN '[]' WHEN 'EXISTING' THEN tenure_attempts(j.id) END
  FROM unnest(v_status, v_by, v_by_queue, v_used, v_max, v_retry, v_jobs)
    WITH ORDINALITY AS u(s, refused_by, refused_queue, used, max, retry, id, n)
  LEFT JOIN job AS j ON u.s IN ('CREATED', 'EXISTING') AND j.id = u.id
  ORDER BY u.n;
END
$$;
