-- Locks the counters of the given (workspace, queue, actor) triples and of their workspaces: lanes in order, then the
-- actors' rows in order. From here on the workspaces' admission is serialized. Missing rows are made before any lock is
-- taken: one that waits for another's uncommitted row while it holds a later lane would deadlock.
CREATE FUNCTION tenure_lock_lanes(p_workspaces uuid[], p_queues text[], p_actors uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_missing bigint;
  v_locked bigint;
BEGIN
  LOOP
    WITH wanted AS MATERIALIZED (
      SELECT u.w, u.q FROM unnest(p_workspaces, p_queues) AS u(w, q)
      UNION SELECT u.w, '*' FROM unnest(p_workspaces) AS u(w)
    ), missing AS MATERIALIZED (
      SELECT count(*) AS n FROM wanted
      WHERE NOT EXISTS (SELECT 1 FROM lane WHERE lane.workspace_id = wanted.w AND lane.queue = wanted.q)
    ), locked AS MATERIALIZED (
      SELECT 1 FROM wanted JOIN lane ON lane.workspace_id = wanted.w AND lane.queue = wanted.q
      WHERE (SELECT n FROM missing) = 0
      ORDER BY lane.workspace_id, lane.queue FOR UPDATE OF lane
    )
    SELECT (SELECT n FROM missing), (SELECT count(*) FROM locked) INTO v_missing, v_locked;
    EXIT WHEN v_missing = 0;
    INSERT INTO lane (workspace_id, queue)
    SELECT u.w, u.q COLLATE "C" FROM unnest(p_workspaces, p_queues) AS u(w, q)
    UNION SELECT u.w, '*' FROM unnest(p_workspaces) AS u(w)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
  END LOOP;
  LOOP  -- these belong to lanes that are locked by now, so that nobody else makes or locks them meanwhile
    WITH wanted AS MATERIALIZED (
      SELECT DISTINCT u.w, u.q, u.a FROM unnest(p_workspaces, p_queues, p_actors) AS u(w, q, a)
    ), locked AS MATERIALIZED (
      SELECT 1 FROM wanted JOIN lane_actor AS la ON la.workspace_id = wanted.w AND la.queue = wanted.q AND la.actor_id = wanted.a
      ORDER BY la.workspace_id, la.queue, la.actor_id FOR UPDATE OF la
    )
    SELECT (SELECT count(*) FROM wanted) - (SELECT count(*) FROM locked) INTO v_missing;
    EXIT WHEN v_missing = 0;
    INSERT INTO lane_actor (workspace_id, queue, actor_id)
    SELECT DISTINCT u.w, u.q, u.a FROM unnest(p_workspaces, p_queues, p_actors) AS u(w, q, a)
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
