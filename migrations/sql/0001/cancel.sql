-- Cancels a waiting job, or asks a running one to stop; asking again changes nothing. Null where there is no such job.
CREATE FUNCTION tenure_cancel(p_job uuid, p_actor uuid) RETURNS TABLE (job job, attempts jsonb)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  v_job job;
  v_now timestamptz;
BEGIN
  SELECT * INTO v_job FROM job AS j WHERE j.id = p_job FOR UPDATE;
  v_now := clock_timestamp();
  IF v_job.state = 'QUEUED' OR (v_job.state = 'RUNNING' AND v_job.cancel_requested_at IS NULL) THEN
    INSERT INTO audit_event (id, workspace_id, at, action, actor_id, job_id)
    VALUES (tenure_uuid7(v_now), v_job.workspace_id, v_now, 'job.cancel_requested', p_actor, p_job);
    UPDATE job AS j SET
      cancel_requested_at = v_now, version = j.version + 1,
      state = CASE j.state WHEN 'QUEUED' THEN 'CANCELLED' ELSE j.state END,
      finished_at = CASE j.state WHEN 'QUEUED' THEN v_now END
    WHERE j.id = p_job;
    IF v_job.state = 'QUEUED' THEN
      PERFORM tenure_close_jobs(ARRAY[p_job], p_actor);
    END IF;
  END IF;
  RETURN QUERY SELECT j, tenure_attempts(j.id) FROM job AS j WHERE j.id = p_job;
END
$$;
