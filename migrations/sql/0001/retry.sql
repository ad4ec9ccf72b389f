-- Queues a failed or cancelled job anew: same id, params, actor, key, errors and attempts; a fresh attempt budget, progress and
-- item snapshot. The pending limits hold, in the name of the job's own actor; the 24-hour one does not.
-- status: RETRIED, NOT_RETRYABLE (other state, or another version than p_expected_version), REFUSED; no row: no such job.
CREATE FUNCTION tenure_retry(
  p_job uuid, p_actor uuid, p_expected_version int, p_max_workspace bigint, p_queue_limits jsonb
) RETURNS TABLE (status text, refused_by text, refused_queue text, used bigint, max bigint, job job, attempts jsonb)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  v_job job;
  v_limits record;
  v_now timestamptz;
  v_by text;
  v_by_queue text;
  v_used bigint;
  v_max bigint;
BEGIN
  SELECT * INTO v_job FROM job AS j WHERE j.id = p_job FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_job.state NOT IN ('FAILED', 'CANCELLED') OR v_job.version <> p_expected_version THEN
    RETURN QUERY SELECT 'NOT_RETRYABLE', NULL::text, NULL::text, NULL::bigint, NULL::bigint, j, tenure_attempts(j.id)
      FROM job AS j WHERE j.id = p_job;
    RETURN;
  END IF;
  PERFORM tenure_lock_lanes(ARRAY[v_job.workspace_id], ARRAY[v_job.queue], ARRAY[v_job.actor_id]);
  v_now := clock_timestamp();
  SELECT * INTO v_limits FROM tenure_effective_limits(v_job.workspace_id, v_job.queue, p_max_workspace, p_queue_limits);
  SELECT la.pending INTO v_used FROM lane_actor AS la
  WHERE la.workspace_id = v_job.workspace_id AND la.queue = v_job.queue AND la.actor_id = v_job.actor_id;
  IF v_used >= v_limits.max_actor THEN
    v_by := 'PENDING_PER_ACTOR'; v_by_queue := v_job.queue; v_max := v_limits.max_actor;
  END IF;
  IF v_by IS NULL THEN
    SELECT l.pending INTO v_used FROM lane AS l WHERE l.workspace_id = v_job.workspace_id AND l.queue = v_job.queue;
    IF v_used >= v_limits.max_queue THEN
      v_by := 'PENDING_PER_WORKSPACE'; v_by_queue := v_job.queue; v_max := v_limits.max_queue;
    END IF;
  END IF;
  IF v_by IS NULL THEN
    SELECT l.pending INTO v_used FROM lane AS l WHERE l.workspace_id = v_job.workspace_id AND l.queue = '*';
    IF v_used >= v_limits.max_workspace THEN
      v_by := 'PENDING_PER_WORKSPACE'; v_max := v_limits.max_workspace;
    END IF;
  END IF;
  IF v_by IS NULL AND tenure_take_capacity(1) = 0 THEN
    SELECT 'PENDING_GLOBAL', i.max_pending, i.max_pending INTO v_by, v_used, v_max FROM installation AS i;
  END IF;
  IF v_by IS NOT NULL THEN
    RETURN QUERY SELECT 'REFUSED', v_by, v_by_queue, v_used, v_max, j, tenure_attempts(j.id) FROM job AS j WHERE j.id = p_job;
    RETURN;
  END IF;
  PERFORM tenure_count_pending(ARRAY[v_job.workspace_id], ARRAY[v_job.queue], ARRAY[v_job.actor_id], 1, false);
  DELETE FROM job_item AS i WHERE i.job_id = p_job;
  UPDATE job AS j SET
    state = 'QUEUED', version = j.version + 1, attempt = 0, run_at = v_now,
    cancel_requested_at = NULL, finished_at = NULL, result = NULL,
    progress_total = NULL, succeeded = 0, skipped = 0, failed = 0, progress_message = NULL, items_total = NULL
  WHERE j.id = p_job;
  INSERT INTO audit_event (id, workspace_id, at, action, actor_id, job_id, details)
  VALUES (tenure_uuid7(v_now), v_job.workspace_id, v_now, 'job.retried', p_actor, p_job,
    jsonb_build_object('from', v_job.state));
  RETURN QUERY SELECT 'RETRIED', NULL::text, NULL::text, NULL::bigint, NULL::bigint, j, tenure_attempts(j.id)
    FROM job AS j WHERE j.id = p_job;
END
$$;
