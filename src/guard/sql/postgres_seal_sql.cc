#include "guard/sql/postgres_sql.h"

namespace stint::guard {

const char* const kGuardSeals = R"sql(
-- What a seal would be answered; shared by the two below. `locked`: under the lock of the fence.
CREATE OR REPLACE FUNCTION stint.judge_seal(resource text, token bigint, generation text,
  newest bigint, granted boolean, ancestors text[], by_order boolean, adopt boolean,
  store_generation text, locked boolean)
RETURNS text LANGUAGE plpgsql AS $f$
#variable_conflict use_variable
DECLARE
  fence stint.fences;
  word record;
  asked boolean;
  verdict text;
BEGIN
  generation := nullif(generation, '');
  PERFORM stint.checked_input(resource, token, generation);
  IF generation IS NULL THEN
    RAISE EXCEPTION 'a seal names the generation of its token' USING ERRCODE = '22023';
  END IF;
  word := stint.own(resource, generation);
  asked := word.newest IS NOT NULL;
  IF locked THEN
    PERFORM pg_advisory_xact_lock(stint.lock_of(resource));
    SELECT f.* INTO fence FROM stint.fences f WHERE f.resource = resource COLLATE "C"
       FOR NO KEY UPDATE;
  ELSE
    SELECT f.* INTO fence FROM stint.fences f WHERE f.resource = resource COLLATE "C";
  END IF;
  verdict := stint.verdict(false, fence.generation, fence.token, fence.used, fence.key,
    fence.digest, fence.nobodys, generation, token, false, '', '', by_order, adopt,
    CASE WHEN asked THEN word.generation ELSE coalesce(store_generation, generation) END,
    CASE WHEN asked THEN word.ancestors ELSE coalesce(ancestors, '{}') END,
    CASE WHEN asked THEN word.newest ELSE newest END,
    CASE WHEN asked THEN word.granted ELSE granted END);
  IF verdict NOT IN ('admitted', 'raised') THEN
    PERFORM set_config('stint.guard', '', true);
    RETURN stint.refuse(verdict, resource, token,
      stint.standing(fence, CASE WHEN asked THEN word.newest ELSE newest END));
  END IF;
  RETURN CASE WHEN fence.token IS NULL AND verdict = 'raised' THEN 'new' ELSE verdict END;
END $f$;

-- Raises the fence and writes nothing else; waits for the transactions of older tokens. newest,
-- granted (NULL: it is nobody's for ever), ancestors: the word of a store that is not here, asked
-- just now.
CREATE OR REPLACE FUNCTION stint.seal(resource text, token bigint, generation text,
  newest bigint DEFAULT NULL, granted boolean DEFAULT NULL, ancestors text[] DEFAULT '{}',
  by_order boolean DEFAULT false, adopt text DEFAULT '', store_generation text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_variable
DECLARE
  verdict text;
  word record;
  nobodys boolean := false;
BEGIN
  -- What is not said is no.
  by_order := coalesce(by_order, false);
  adopt := coalesce(adopt, '');
  IF by_order THEN
    word := stint.own(resource, generation);
    nobodys := (CASE WHEN word.newest IS NOT NULL THEN word.granted ELSE granted END) IS NULL;
  END IF;
  LOOP
    verdict := stint.judge_seal(resource, token, generation, newest, granted, ancestors, by_order,
      adopt <> '', store_generation, true);
    IF verdict = 'new' THEN
      INSERT INTO stint.fences (resource, generation, token, nobodys)
        VALUES (resource, generation, token, nobodys) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
      CONTINUE;
    ELSIF verdict = 'raised' THEN
      UPDATE stint.fences f SET generation = generation, token = token, used = false, key = '',
             digest = '', nobodys = nobodys, raised_at = clock_timestamp()
       WHERE f.resource = resource COLLATE "C";
    END IF;
    EXIT;
  END LOOP;
  -- A fence is promised outward: it outlives a crash, also where commits do not wait for the disk.
  IF verdict <> 'admitted' AND current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF adopt <> '' AND verdict <> 'admitted' THEN
    INSERT INTO stint.overrides (kind, resource, token, why) VALUES ('adopt', resource, token, adopt);
  END IF;
  DELETE FROM stint.sealing s WHERE s.resource = resource COLLATE "C"
     AND (s.generation <> generation OR s.token <= token);
  RETURN CASE verdict WHEN 'admitted' THEN 'already' ELSE 'sealed' END;
END $f$;

-- In a transaction of its own before a seal: older tokens that are not yet at work are refused from
-- then on. Shared locks pass by a waiting seal; without this, writers who overlap starve it.
CREATE OR REPLACE FUNCTION stint.announce_seal(resource text, token bigint, generation text,
  newest bigint DEFAULT NULL, granted boolean DEFAULT NULL, ancestors text[] DEFAULT '{}',
  by_order boolean DEFAULT false, adopt text DEFAULT '', store_generation text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_variable
DECLARE
  verdict text;
BEGIN
  by_order := coalesce(by_order, false);
  adopt := coalesce(adopt, '');
  verdict := stint.judge_seal(resource, token, generation, newest, granted, ancestors, by_order,
    adopt <> '', store_generation, false);
  IF verdict = 'raised' THEN
    INSERT INTO stint.sealing AS s VALUES (resource, generation, token)
      ON CONFLICT ON CONSTRAINT sealing_pkey DO UPDATE
      SET generation = excluded.generation, token = excluded.token
      WHERE s.generation <> excluded.generation OR s.token < excluded.token;
  END IF;
  RETURN CASE verdict WHEN 'admitted' THEN 'already' ELSE 'announced' END;
END $f$;
)sql";

}  // namespace stint::guard
