-- May the holder of this lease go on? OK, LOST, CANCELLED (a cancel was asked), or UNAUTHORIZED: the job's actor is no longer an
-- enabled member with one of p_roles. The built-in system actor needs no membership.
CREATE FUNCTION tenure_checkpoint(p_job uuid, p_token bigint, p_roles text[]) RETURNS text
LANGUAGE sql STABLE
AS $$
  SELECT coalesce((
    SELECT CASE
      WHEN j.fencing_token <> p_token OR j.state <> 'RUNNING' THEN 'LOST'
      WHEN j.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
      WHEN a.is_system OR (a.is_enabled AND m.is_enabled AND m.role = ANY (p_roles)) THEN 'OK'
      ELSE 'UNAUTHORIZED'
    END
    FROM job AS j
    LEFT JOIN actor AS a ON a.id = j.actor_id
    LEFT JOIN membership AS m ON m.workspace_id = j.workspace_id AND m.actor_id = j.actor_id
    WHERE j.id = p_job
  ), 'LOST')
$$;
