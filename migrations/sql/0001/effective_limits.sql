-- The limits of one queue of a workspace: those set for the workspace, else the defaults. Null means none.
-- p_queue_limits: {"<queue>": {"PENDING_PER_WORKSPACE": n, "PENDING_PER_ACTOR": n, "CREATED_PER_DAY": n}}.
CREATE FUNCTION tenure_effective_limits(
  p_workspace uuid, p_queue text, p_max_workspace bigint, p_queue_limits jsonb,
  OUT max_workspace bigint, OUT max_queue bigint, OUT max_actor bigint, OUT max_day bigint
)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  SELECT
    nullif(coalesce(max(l.max) FILTER (WHERE l.queue = '*' AND l."limit" = 'PENDING_PER_WORKSPACE'), p_max_workspace), 0),
    nullif(coalesce(max(l.max) FILTER (WHERE l.queue = p_queue AND l."limit" = 'PENDING_PER_WORKSPACE'),
                    (p_queue_limits -> p_queue ->> 'PENDING_PER_WORKSPACE')::bigint), 0),
    nullif(coalesce(max(l.max) FILTER (WHERE l.queue = p_queue AND l."limit" = 'PENDING_PER_ACTOR'),
                    (p_queue_limits -> p_queue ->> 'PENDING_PER_ACTOR')::bigint), 0),
    nullif(coalesce(max(l.max) FILTER (WHERE l.queue = p_queue AND l."limit" = 'CREATED_PER_DAY'),
                    (p_queue_limits -> p_queue ->> 'CREATED_PER_DAY')::bigint), 0)
  INTO max_workspace, max_queue, max_actor, max_day
  FROM workspace_limit AS l
  WHERE l.workspace_id = p_workspace AND l.queue IN ('*', p_queue);
END
$$;
