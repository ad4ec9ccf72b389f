-- The job's errors with one more, the newest 50 kept, oldest first. Shape: {at, attempt, code, message, itemKey}.
CREATE FUNCTION tenure_append_error(
  p_errors jsonb, p_at timestamptz, p_attempt bigint, p_code text, p_message text, p_item_key text
) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN jsonb_array_length(p_errors) >= 50 THEN p_errors - 0 ELSE p_errors END
    || jsonb_build_array(jsonb_build_object(
         'at', p_at, 'attempt', p_attempt, 'code', p_code, 'message', left(p_message, 500), 'itemKey', p_item_key))
$$;
