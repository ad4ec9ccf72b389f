-- Ends the current attempt of running jobs, whose rows the caller has locked and whose right to them it has checked.
-- outcome: SUCCEEDED (result); FAILED (for good); RETRY (after delay seconds, where attempts are left); CANCELLED (stopped at a
-- checkpoint); RELEASED (handed back: the attempt costs nothing, the token stays spent); LOST (the lease ran out).
-- Whatever would requeue a job whose cancel was asked, or fail it for its lost attempts, makes it CANCELLED instead.
CREATE FUNCTION tenure_settle(
  p_jobs uuid[], p_outcomes text[], p_results text[], p_codes text[], p_messages text[], p_delays double precision[]
) RETURNS TABLE (job_id uuid, state text, version int)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_ended uuid[];
BEGIN
  UPDATE job_attempt AS a SET
    finished_at = v_now,
    outcome = CASE u.outcome WHEN 'RETRY' THEN 'FAILED' ELSE u.outcome END,
    error = CASE WHEN u.code IS NOT NULL THEN jsonb_build_object(
      'at', v_now, 'attempt', a.fencing_token, 'code', u.code, 'message', left(u.message, 500), 'itemKey', NULL) END
  FROM unnest(p_jobs, p_outcomes, p_codes, p_messages) AS u(id, outcome, code, message)
  JOIN job AS j ON j.id = u.id
  WHERE a.job_id = u.id AND a.fencing_token = j.fencing_token;

  WITH decided AS (
    SELECT j.id, u.outcome, u.result, u.code, u.message, u.delay,
      CASE
        WHEN u.outcome IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN u.outcome
        WHEN u.outcome = 'RETRY' AND j.attempt >= j.max_attempts THEN 'FAILED'
        WHEN j.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
        WHEN u.outcome = 'LOST' AND j.attempt >= j.max_attempts THEN 'FAILED'
        ELSE 'QUEUED'
      END AS next
    FROM unnest(p_jobs, p_outcomes, p_results, p_codes, p_messages, p_delays) AS u(id, outcome, result, code, message, delay)
    JOIN job AS j ON j.id = u.id
  ), settled AS (
    UPDATE job AS j SET
      state = d.next,
      version = j.version + 1,
      result = CASE WHEN d.outcome = 'SUCCEEDED' THEN d.result::jsonb END,
      errors = CASE WHEN d.code IS NULL THEN j.errors
        ELSE tenure_append_error(j.errors, v_now, j.fencing_token, d.code, d.message, NULL) END,
      error_count = j.error_count + CASE WHEN d.code IS NULL THEN 0 ELSE 1 END,
      attempt = j.attempt - CASE WHEN d.outcome = 'RELEASED' THEN 1 ELSE 0 END,
      run_at = CASE WHEN d.next = 'QUEUED' AND d.outcome = 'RETRY' THEN v_now + d.delay * interval '1 second' ELSE j.run_at END,
      lease_owner = NULL, lease_expires_at = NULL, heartbeat_at = NULL,
      finished_at = CASE WHEN d.next <> 'QUEUED' THEN v_now END
    FROM decided AS d WHERE j.id = d.id
    RETURNING j.id, j.state
  )
  SELECT coalesce(array_agg(id ORDER BY id) FILTER (WHERE settled.state <> 'QUEUED'), '{}') INTO v_ended FROM settled;
  PERFORM tenure_close_jobs(v_ended, NULL);
  RETURN QUERY SELECT j.id, j.state, j.version FROM unnest(p_jobs) AS u(id) JOIN job AS j ON j.id = u.id;
END
$$;
