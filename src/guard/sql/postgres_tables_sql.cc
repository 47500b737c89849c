#include "guard/sql/postgres_sql.h"

namespace stint::guard {

const char* const kGuardTriggers = R"sql(
CREATE OR REPLACE FUNCTION stint.require_token() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  resource CONSTANT text := TG_ARGV[0];
  why CONSTANT text := current_setting('stint.override', true);
  given text := current_setting('stint.token', true);
  life text := current_setting('stint.generation', true);
BEGIN
  IF why <> '' THEN
    IF NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID),
                       'MEMBER') THEN
      RAISE EXCEPTION 'refused: only an owner of %.% may override its guard', TG_TABLE_SCHEMA,
        TG_TABLE_NAME USING ERRCODE = '42501';
    END IF;
    INSERT INTO stint.overrides (kind, resource, relation, operation, why)
      VALUES ('override', resource, TG_RELID::regclass::text, TG_OP, why);
    PERFORM set_config('stint.passed', E'\n' || resource, true);
    RETURN NULL;
  END IF;
  IF coalesce(given, '') = ''
      OR coalesce(nullif(current_setting('stint.resource', true), ''), resource) <> resource THEN
    -- What admit() was shown for this resource in this transaction.
    given := split_part(current_setting(stint.place_of(resource), true), ' ', 1);
    life := split_part(current_setting(stint.place_of(resource), true), ' ', 2);
  END IF;
  IF coalesce(given, '0') !~ '^[0-9]{0,16}$' THEN
    RAISE EXCEPTION 'stint.token is no token' USING ERRCODE = '22023',
      HINT = 'set local stint.token = ''7'', as in STINT_TOKEN.';
  END IF;
  IF current_setting('stint.guard', true) = 'warn' THEN
    PERFORM set_config('stint.relation', TG_RELID::regclass::text, true),
            set_config('stint.operation', TG_OP, true);
  END IF;
  -- What was only let through counts no longer than that is said: the newline marks it.
  PERFORM set_config('stint.passed',
    CASE stint.admit(resource, nullif(given, '')::bigint, life) WHEN 'warned' THEN E'\n' ELSE '' END
      || resource, true);
  IF current_setting('stint.guard', true) = 'warn' THEN
    PERFORM set_config('stint.relation', '', true), set_config('stint.operation', '', true);
  END IF;
  RETURN NULL;
END $f$;

-- The table, its partitions and theirs; tables that inherit from it likewise.
CREATE OR REPLACE FUNCTION stint.family(root regclass)
RETURNS TABLE (member regclass, kind "char") LANGUAGE sql STABLE AS $f$
  WITH RECURSIVE tree AS (
    SELECT root::oid AS oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i
      JOIN tree t ON i.inhparent = t.oid)
  SELECT t.oid::regclass, c.relkind FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid
   ORDER BY t.oid
$f$;

-- Of the versions before 5: it told less.
DROP FUNCTION IF EXISTS stint.protections();
-- own: not had from a table above it.
CREATE OR REPLACE FUNCTION stint.protections(OUT relation regclass, OUT resource text,
  OUT name text, OUT statement boolean, OUT enabled "char", OUT own boolean)
RETURNS SETOF record LANGUAGE sql STABLE AS $f$
  SELECT t.tgrelid::regclass,
         pg_catalog.convert_from(pg_catalog.substr(t.tgargs, 1, pg_catalog.length(t.tgargs) - 1),
           pg_catalog.getdatabaseencoding()),
         t.tgname::text, t.tgtype & 1 = 0, t.tgenabled,
         NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = t.oid AND d.deptype = 'P'
           AND d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass)
    FROM pg_catalog.pg_trigger t
   WHERE t.tgfoid = 'stint.require_token'::pg_catalog.regproc AND t.tgnargs = 1
$f$;

CREATE OR REPLACE FUNCTION stint.protect(target regclass, resource text)
RETURNS integer LANGUAGE plpgsql AS $f$
#variable_conflict use_variable
DECLARE
  m record;
  had text;
  made integer := 0;
BEGIN
  PERFORM stint.checked_input(resource, NULL, NULL);
  FOR m IN SELECT f.member, f.kind, n.nspname FROM stint.family(target) f
             JOIN pg_catalog.pg_class c ON c.oid = f.member
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LOOP
    IF m.kind NOT IN ('r', 'p') OR m.nspname IN ('stint', 'pg_catalog') THEN
      RAISE EXCEPTION '% cannot be protected: it is no table of this database, or Stint''s own', m.member
        USING ERRCODE = '42809';
    END IF;
    SELECT p.resource INTO had FROM stint.protections() p WHERE p.relation = m.member AND p.statement;
    IF had <> resource THEN
      RAISE EXCEPTION '% is protected already, for the resource %', m.member, quote_literal(had)
        USING ERRCODE = '55000', HINT = 'Take that protection away first.';
    ELSIF had IS NULL THEN
      EXECUTE format('CREATE TRIGGER stint_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s'
        ' FOR EACH STATEMENT EXECUTE FUNCTION stint.require_token(%L)', m.member, resource);
      made := made + 1;
    END IF;
  END LOOP;
  -- Row triggers go over to partitions that are attached later. They ask only where the statement's
  -- trigger has not. Each has a name of its own: a partition may have been protected by itself.
  IF EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = target AND c.relkind = 'p')
      AND NOT EXISTS (SELECT FROM stint.protections() p WHERE p.relation = target AND NOT p.statement) THEN
    EXECUTE format('CREATE TRIGGER stint_guard_row_%s AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW'
      ' WHEN (pg_catalog.current_setting(''stint.passed'', true) IS DISTINCT FROM %L'
      ' AND (pg_catalog.current_setting(''stint.passed'', true) IS DISTINCT FROM %L'
      ' OR pg_catalog.current_setting(''stint.guard'', true) IS DISTINCT FROM ''warn'''
      ' AND coalesce(pg_catalog.current_setting(''stint.override'', true), '''')'
      ' OPERATOR(pg_catalog.=) ''''))'
      ' EXECUTE FUNCTION stint.require_token(%L)', target::oid, target, resource, E'\n' || resource,
      resource);
  END IF;
  RETURN made;
END $f$;

CREATE OR REPLACE FUNCTION stint.unprotect(target regclass) RETURNS integer LANGUAGE plpgsql AS $f$
DECLARE
  p record;
  gone integer := 0;
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN stint.protections() o ON o.relation = i.inhparent
              WHERE i.inhrelid = target) THEN
    RAISE EXCEPTION '% is protected as a part of another table', target
      USING ERRCODE = '55000', HINT = 'Take the protection of the whole away, or detach it first.';
  END IF;
  -- What a part has from the whole goes with that.
  FOR p IN SELECT o.relation, o.name FROM stint.protections() o
            WHERE o.own AND o.relation IN (SELECT f.member FROM stint.family(target) f) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', p.name, p.relation);
    gone := gone + 1;
  END LOOP;
  RETURN gone;
END $f$;

CREATE OR REPLACE FUNCTION stint.problems() RETURNS SETOF text LANGUAGE sql STABLE AS $f$
  -- Row triggers go over to partitions, and not to tables that inherit.
  SELECT pg_catalog.format('%s is a part of %s, which is protected, and has no guard of '
           'its own: %s; protect %s again', f.member, p.relation,
           CASE WHEN c.relispartition THEN 'TRUNCATE of it is not checked'
                ELSE 'no write that names it is checked' END, p.relation)
    FROM stint.protections() p, LATERAL stint.family(p.relation) f
      JOIN pg_catalog.pg_class c ON c.oid = f.member
   WHERE p.statement AND NOT EXISTS (SELECT FROM stint.protections() o
     WHERE o.relation = f.member AND o.statement)
     -- The topmost speaks for all below it.
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN stint.protections() o
       ON o.relation = i.inhparent WHERE i.inhrelid = p.relation)
  UNION ALL
  SELECT pg_catalog.format('the trigger %I of %s is disabled', p.name, p.relation)
    FROM stint.protections() p WHERE p.enabled NOT IN ('O', 'A')
  UNION ALL
  SELECT pg_catalog.format('a seal of %L with token %s was announced and has not been made: '
           'older tokens are refused; its holder seals again',
           s.resource, s.token) FROM stint.sealing s
  ORDER BY 1
$f$;
)sql";

const char* const kGuardRights = R"sql(
GRANT USAGE ON SCHEMA stint TO PUBLIC;
GRANT SELECT ON stint.fences, stint.guard, stint.sealing TO PUBLIC;
-- Also where the owner's default privileges take new functions away from PUBLIC.
GRANT EXECUTE ON FUNCTION stint.admit(text, bigint, text, interval, text, text, text),
  stint.admit(text, bigint, interval), stint.admit_all(text[], bigint[], text, interval),
  stint.judge_admit(text, bigint, text, interval, text, text, text), stint.store_is_here(),
  stint.limit_default(text), stint.lock_of(text), stint.place_of(text) TO PUBLIC;
-- Who may seal shuts others out: whoever the owner of the guard names.
REVOKE ALL ON FUNCTION stint.seal(text, bigint, text, bigint, boolean, text[], boolean, text, text),
  stint.announce_seal(text, bigint, text, bigint, boolean, text[], boolean, text, text),
  stint.judge_seal(text, bigint, text, bigint, boolean, text[], boolean, boolean, text, boolean),
  stint.own(text, text) FROM PUBLIC;
)sql";

const char* const kGuardRemoval = R"sql(
DROP FUNCTION IF EXISTS stint.store_is_here(), stint.problems(), stint.unprotect(regclass),
  stint.protect(regclass, text),
  stint.protections(), stint.family(regclass), stint.require_token(),
  stint.announce_seal(text, bigint, text, bigint, boolean, text[], boolean, text, text),
  stint.seal(text, bigint, text, bigint, boolean, text[], boolean, text, text),
  stint.judge_seal(text, bigint, text, bigint, boolean, text[], boolean, boolean, text, boolean),
  stint.admit_all(text[], bigint[], text, interval), stint.admit(text, bigint, interval),
  stint.admit(text, bigint, text, interval, text, text, text),
  stint.judge_admit(text, bigint, text, interval, text, text, text), stint.limit_time(interval),
  stint.limit_default(text), stint.lock_of(text), stint.place_of(text),
  stint.standing(stint.fences, bigint), stint.refuse(text, text, bigint, text),
  stint.checked_input(text, bigint, text), stint.own(text, text),
  stint.verdict(boolean, text, bigint, boolean, text, text, boolean, text, bigint, boolean, text, text,
    boolean, boolean, text, text[], bigint, boolean);
DROP TABLE IF EXISTS stint.overrides, stint.sealing, stint.fences;
REVOKE USAGE ON SCHEMA stint FROM PUBLIC;
DO $f$
DECLARE
  ours CONSTANT boolean := (SELECT g.made_schema FROM stint.guard g);
BEGIN
  DROP TABLE stint.guard;
  IF ours AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass
      AND d.refobjid = 'stint'::regnamespace AND d.deptype = 'n') THEN
    DROP SCHEMA stint;
  END IF;
END $f$;
)sql";

}  // namespace stint::guard
