-- Locks the counters of the given (workspace, queue, actor) triples and of their workspaces, making those that are
-- missing: lanes in order, then the actors' rows in order. From here on the workspaces' admission is serialized.
CREATE FUNCTION tenure_lock_lanes(p_workspaces uuid[], p_queues text[], p_actors uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_wanted bigint;
  v_locked bigint;
BEGIN
  LOOP
    WITH wanted AS (
      SELECT u.w, u.q FROM unnest(p_workspaces, p_queues) AS u(w, q)
      UNION SELECT u.w, '*' FROM unnest(p_workspaces) AS u(w)
    ), locked AS (
      SELECT 1 FROM wanted JOIN lane ON lane.workspace_id = wanted.w AND lane.queue = wanted.q
      ORDER BY lane.workspace_id, lane.queue FOR UPDATE OF lane
    )
    SELECT (SELECT count(*) FROM wanted), (SELECT count(*) FROM locked) INTO v_wanted, v_locked;
    EXIT WHEN v_locked = v_wanted;
    INSERT INTO lane (workspace_id, queue)
    SELECT u.w, u.q FROM unnest(p_workspaces, p_queues) AS u(w, q)
    UNION SELECT u.w, '*' FROM unnest(p_workspaces) AS u(w)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
  END LOOP;
  LOOP
    WITH wanted AS (
      SELECT DISTINCT u.w, u.q, u.a FROM unnest(p_workspaces, p_queues, p_actors) AS u(w, q, a)
    ), locked AS (
      SELECT 1 FROM wanted JOIN lane_actor AS la ON la.workspace_id = wanted.w AND la.queue = wanted.q AND la.actor_id = wanted.a
      ORDER BY la.workspace_id, la.queue, la.actor_id FOR UPDATE OF la
    )
    SELECT (SELECT count(*) FROM wanted), (SELECT count(*) FROM locked) INTO v_wanted, v_locked;
    EXIT WHEN v_locked = v_wanted;
    INSERT INTO lane_actor (workspace_id, queue, actor_id)
    SELECT DISTINCT u.w, u.q, u.a FROM unnest(p_workspaces, p_queues, p_actors) AS u(w, q, a)
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
