-- Adds p_step (1 or -1) to the counters of each triple, once per occurrence. The caller holds them by tenure_lock_lanes.
-- With p_step 1, p_created also counts them as created.
CREATE FUNCTION tenure_count_pending(p_workspaces uuid[], p_queues text[], p_actors uuid[], p_step int, p_created boolean)
RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  UPDATE lane SET
    pending = lane.pending + p_step * c.n,
    created = lane.created + CASE WHEN p_created AND lane.queue <> '*' THEN c.n ELSE 0 END
  FROM (
    SELECT u.w, u.q, count(*) AS n FROM unnest(p_workspaces, p_queues) AS u(w, q) GROUP BY 1, 2
    UNION ALL SELECT u.w, '*', count(*) FROM unnest(p_workspaces) AS u(w) GROUP BY 1
  ) AS c
  WHERE lane.workspace_id = c.w AND lane.queue = c.q;
  UPDATE lane_actor SET pending = lane_actor.pending + p_step * c.n
  FROM (
    SELECT u.w, u.q, u.a, count(*) AS n FROM unnest(p_workspaces, p_queues, p_actors) AS u(w, q, a) GROUP BY 1, 2, 3
  ) AS c
  WHERE lane_actor.workspace_id = c.w AND lane_actor.queue = c.q AND lane_actor.actor_id = c.a;
END
$$;
