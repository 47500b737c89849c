#include "guard/sql/postgres_sql.h"

namespace stint::guard {

const char* const kGuardTriggers = R"sql(
-- What is set for a session stays when a pooler hands it on. So what is used here is used up: the
-- session's own value ends with this transaction, if that commits.
CREATE OR REPLACE FUNCTION stint.require_token() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  resource CONSTANT text := TG_ARGV[0];
  spent CONSTANT text := 'of an earlier transaction';
  -- What admit() was shown for this resource in this transaction counts, whatever else is said.
  held CONSTANT text := current_setting(stint.place_of(resource), true);
  why CONSTANT text := nullif(current_setting('stint.override', true), spent);
  given text := nullif(current_setting('stint.token', true), spent);
  life text;
BEGIN
  IF held <> '' THEN
    IF TG_LEVEL = 'ROW' THEN
      RETURN NULL;
    END IF;
    given := split_part(held, ' ', 1);
    life := split_part(held, ' ', 2);
  ELSIF why <> '' THEN
    -- The rows of one statement are let through, and recorded, once.
    IF TG_LEVEL = 'ROW' AND current_setting('stint.passed', true) = E'\n' || resource THEN
      RETURN NULL;
    ELSIF NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID),
                          'MEMBER') THEN
      RAISE EXCEPTION 'refused: only an owner of %.% may override its guard', TG_TABLE_SCHEMA,
        TG_TABLE_NAME USING ERRCODE = '42501';
    END IF;
    INSERT INTO stint.overrides (kind, resource, relation, operation, why)
      VALUES ('override', resource, TG_RELID::regclass::text, TG_OP, why);
    PERFORM set_config('stint.override', spent, false), set_config('stint.override', why, true),
            set_config('stint.passed', E'\n' || resource, true);
    RETURN NULL;
  ELSIF given <> ''
      AND coalesce(nullif(current_setting('stint.resource', true), ''), resource) = resource THEN
    IF given !~ '^[0-9]{0,16}$' THEN
      RAISE EXCEPTION 'stint.token is no token' USING ERRCODE = '22023',
        HINT = 'set local stint.token = ''7'', as in STINT_TOKEN.';
    END IF;
    life := current_setting('stint.generation', true);
    -- One expression: each that plpgsql meets is set up anew in every transaction.
    given := set_config('stint.token', left(set_config('stint.token', spent, false), 0) || given, true);
    IF life <> '' OR current_setting('stint.resource', true) <> '' THEN
      PERFORM set_config('stint.' || s.name, '', false), set_config('stint.' || s.name, s.was, true)
         FROM (VALUES ('generation', life), ('resource', current_setting('stint.resource', true))) s (name, was)
        WHERE s.was <> '';
    END IF;
  ELSE
    given := '';
    IF spent IN (current_setting('stint.token', true), current_setting('stint.override', true))
        AND current_setting('stint.guard', true) IS DISTINCT FROM 'warn' THEN
      PERFORM stint.refuse('no_token', resource, NULL, 'stint.token and stint.override count for one '
        'transaction, and an earlier one of this session has used them up.');
    END IF;
  END IF;
  IF current_setting('stint.guard', true) = 'warn' THEN
    IF TG_LEVEL = 'ROW' AND current_setting('stint.passed', true) = E'\n' || resource THEN
      RETURN NULL;
    END IF;
    PERFORM set_config('stint.relation', TG_RELID::regclass::text, true),
            set_config('stint.operation', TG_OP, true);
  END IF;
  IF stint.admit(resource, nullif(given, '')::bigint, life) = 'warned' THEN
    -- What was only let through counts no longer than that is said: the newline marks it.
    PERFORM set_config('stint.passed', E'\n' || resource, true);
  END IF;
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

-- Of the versions before 6: it told less.
DROP FUNCTION IF EXISTS stint.protections();
-- way: 'statement'; 'row', which asks about rows that come by way of another table; 'apart', which
-- never fires. own: not had from a table above it.
CREATE OR REPLACE FUNCTION stint.protections(OUT relation regclass, OUT resource text,
  OUT name text, OUT way text, OUT enabled "char", OUT own boolean)
RETURNS SETOF record LANGUAGE sql STABLE AS $f$
  SELECT t.tgrelid::regclass,
         pg_catalog.convert_from(pg_catalog.substr(t.tgargs, 1, pg_catalog.length(t.tgargs) - 1),
           pg_catalog.getdatabaseencoding()),
         t.tgname::text,
         CASE WHEN t.tgtype & 1 = 0 THEN 'statement' WHEN t.tgoldtable IS NULL THEN 'row' ELSE 'apart' END,
         t.tgenabled,
         NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = t.oid AND d.deptype = 'P'
           AND d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass)
    FROM pg_catalog.pg_trigger t
   WHERE t.tgfoid = 'stint.require_token'::pg_catalog.regproc AND t.tgnargs = 1
$f$;

-- The guard is told of tables that become parts of others: where its event trigger stands.
CREATE OR REPLACE FUNCTION stint.follows() RETURNS boolean LANGUAGE sql STABLE AS $f$
  SELECT EXISTS (SELECT FROM pg_catalog.pg_event_trigger e JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
    WHERE p.pronamespace = 'stint'::pg_catalog.regnamespace AND p.proname = 'follow'
      AND e.evtenabled IN ('O', 'A'))
$f$;

-- What a protected tree lacks. lack: 'statement', 'row' or 'apart' (as above), 'foreign' (rows that
-- are elsewhere) or 'other' (protected for another resource). whole: the topmost protected table.
CREATE OR REPLACE FUNCTION stint.gaps(OUT member regclass, OUT resource text, OUT lack text,
  OUT whole regclass)
RETURNS SETOF record LANGUAGE sql STABLE AS $f$
  WITH RECURSIVE p AS MATERIALIZED (SELECT * FROM stint.protections()),
  tree (member, resource, whole) AS (
    SELECT p.relation, p.resource, p.relation FROM p
     WHERE p.way = 'statement' AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i
       JOIN p o ON o.relation = i.inhparent AND o.way = 'statement' WHERE i.inhrelid = p.relation)
    UNION SELECT i.inhrelid::regclass, t.resource, t.whole FROM pg_catalog.pg_inherits i
      JOIN tree t ON i.inhparent = t.member)
  SELECT g.member, g.resource, g.lack, g.whole FROM (
    SELECT t.member, t.resource, t.whole, CASE
        WHEN c.relkind NOT IN ('r', 'p') THEN 'foreign'
        WHEN s.resource <> t.resource THEN 'other'
        WHEN s.resource IS NULL THEN 'statement'
        WHEN EXISTS (SELECT FROM p r WHERE r.relation = t.member AND r.way = 'row'
          AND r.resource = t.resource) THEN NULL
        WHEN c.relkind = 'p' OR EXISTS (SELECT FROM pg_catalog.pg_inherits i
          WHERE i.inhrelid = t.member) THEN 'row'
        WHEN NOT stint.follows() AND NOT EXISTS (SELECT FROM p a WHERE a.relation = t.member
          AND a.way = 'apart') THEN 'apart' END
      FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.member
        LEFT JOIN p s ON s.relation = t.member AND s.way = 'statement'
    ) g (member, resource, whole, lack)
   WHERE g.lack IS NOT NULL
$f$;

-- Each table of the tree asks at every statement that names it. Rows that come by way of another
-- table meet no statement's trigger, so that each table with one above it asks about them too, if
-- its transaction has not passed; row triggers go over to partitions that come later. A table with
-- none above it has no such trigger, which would cost something with each row: where the guard is
-- not told when it gets one, the server refuses that, because of a trigger that never fires. Row
-- triggers have names of their own: a partition may have been protected by itself.
CREATE OR REPLACE FUNCTION stint.cover(target regclass, resource text)
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
    SELECT p.resource INTO had FROM stint.protections() p WHERE p.relation = m.member AND p.way = 'statement';
    IF had <> resource THEN
      RAISE EXCEPTION '% is protected already, for the resource %', m.member, quote_literal(had)
        USING ERRCODE = '55000', HINT = 'Take that protection away first.';
    ELSIF had IS NULL THEN
      EXECUTE format('CREATE TRIGGER stint_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s'
        ' FOR EACH STATEMENT EXECUTE FUNCTION stint.require_token(%L)', m.member, resource);
      made := made + 1;
    END IF;
  END LOOP;
  FOR m IN SELECT g.member, g.lack FROM stint.gaps() g WHERE g.lack IN ('row', 'apart')
              AND g.member IN (SELECT f.member FROM stint.family(target) f)
            ORDER BY (SELECT count(*) FROM pg_catalog.pg_partition_ancestors(g.member)) LOOP
    IF m.lack = 'apart' THEN
      EXECUTE format('CREATE TRIGGER "stint_guard: unprotect first, protect again afterwards"'
        ' AFTER DELETE ON %s REFERENCING OLD TABLE AS gone FOR EACH ROW WHEN (false)'
        ' EXECUTE FUNCTION stint.require_token(%L)', m.member, resource);
    -- Those below have got it from the one before.
    ELSIF NOT EXISTS (SELECT FROM stint.protections() p WHERE p.relation = m.member AND p.way = 'row'
                        AND p.resource = resource) THEN
      EXECUTE format('CREATE TRIGGER stint_guard_row_%s AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW'
        ' WHEN (coalesce(pg_catalog.current_setting(%L, true), '''') OPERATOR(pg_catalog.=) '''''
        ' AND (pg_catalog.current_setting(''stint.passed'', true) IS DISTINCT FROM %L'
        ' OR pg_catalog.current_setting(''stint.guard'', true) IS DISTINCT FROM ''warn'''
        ' AND coalesce(pg_catalog.current_setting(''stint.override'', true), '''')'
        ' OPERATOR(pg_catalog.=) ''''))'
        ' EXECUTE FUNCTION stint.require_token(%L)', m.member::oid, m.member, stint.place_of(resource),
        E'\n' || resource, resource);
    END IF;
  END LOOP;
  RETURN made;
END $f$;

-- Who makes a part of it meanwhile is waited for, or waits, and finds it protected.
CREATE OR REPLACE FUNCTION stint.protect(target regclass, resource text)
RETURNS integer LANGUAGE plpgsql AS $f$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', target);
  END IF;
  RETURN stint.cover(target, resource);
END $f$;

-- After each definition of a table, as the event trigger that install() makes where it may. What
-- has become a part of a protected tree is protected; what cannot be is refused.
CREATE OR REPLACE FUNCTION stint.follow() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  tables CONSTANT oid[] := (SELECT array_agg(DISTINCT d.objid) FROM pg_event_trigger_ddl_commands() d
                             WHERE d.classid = 'pg_class'::regclass);
  g record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = ANY (tables) OR i.inhparent = ANY (tables)) THEN
    RETURN;
  END IF;
  FOR g IN SELECT DISTINCT o.whole, o.resource FROM stint.gaps() o
            WHERE o.member = ANY (tables) OR EXISTS (SELECT FROM pg_inherits i
              WHERE i.inhrelid = o.member AND i.inhparent = ANY (tables)) LOOP
    PERFORM stint.cover(g.whole, g.resource);
  END LOOP;
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
  SELECT CASE g.lack
      WHEN 'foreign' THEN pg_catalog.format('%s is a part of %s, which is protected, and its rows are not in '
        'this database: no write of them is checked; take it out', g.member, g.whole)
      WHEN 'other' THEN pg_catalog.format('%s is a part of %s, which is protected for %L, and is protected '
        'for another resource: writes that name it ask for that one alone', g.member, g.whole, g.resource)
      WHEN 'statement' THEN pg_catalog.format('%s is a part of %s, which is protected, and has no guard of '
        'its own: %s; protect %s again', g.member, g.whole,
        CASE WHEN c.relispartition THEN 'TRUNCATE of it is not checked'
             ELSE 'no write that names it is checked' END, g.whole)
      WHEN 'row' THEN pg_catalog.format('%s is protected, and a part of another table: no row that comes by way '
        'of that is checked; protect %s again', g.member, g.whole)
      ELSE pg_catalog.format('%s is protected, and the guard would not be told if it became a part of another '
        'table; protect %s again', g.member, g.whole) END
    FROM stint.gaps() g JOIN pg_catalog.pg_class c ON c.oid = g.member
  UNION ALL
  SELECT pg_catalog.format('the trigger %I of %s is disabled', p.name, p.relation)
    FROM stint.protections() p WHERE p.enabled NOT IN ('O', 'A') AND p.way <> 'apart'
  UNION ALL
  SELECT pg_catalog.format('the event trigger %I is disabled: tables that become parts of protected ones are '
           'not guarded', e.evtname)
    FROM pg_catalog.pg_event_trigger e WHERE e.evtname = 'stint_guard_follow' AND NOT stint.follows()
  UNION ALL
  SELECT pg_catalog.format('a seal of %L with token %s was announced and has not been made: '
           'older tokens are refused; its holder seals again',
           s.resource, s.token) FROM stint.sealing s
  ORDER BY 1
$f$;
)sql";

const char* const kGuardRights = R"sql(
GRANT USAGE ON SCHEMA stint TO PUBLIC;
-- All of them: pg_dump locks and copies each table that it finds, by whatever role.
GRANT SELECT ON stint.fences, stint.guard, stint.sealing, stint.overrides TO PUBLIC;
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
-- Only a superuser may have an event trigger, and only one's rights are enough for every table.
DO $f$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_event_trigger e WHERE e.evtname = 'stint_guard_follow')
      AND (SELECT r.rolsuper FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
            WHERE p.oid = 'stint.follow'::regproc)
      AND (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
    CREATE EVENT TRIGGER stint_guard_follow ON ddl_command_end
      WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE',
        'CREATE SCHEMA')
      EXECUTE FUNCTION stint.follow();
  END IF;
END $f$;
)sql";

const char* const kGuardRemoval = R"sql(
DROP EVENT TRIGGER IF EXISTS stint_guard_follow;
DROP FUNCTION IF EXISTS stint.store_is_here(), stint.problems(), stint.unprotect(regclass), stint.follow(),
  stint.protect(regclass, text), stint.cover(regclass, text), stint.gaps(), stint.follows(),
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
DO $f$
DECLARE
  ours CONSTANT boolean := (SELECT g.made_schema FROM stint.guard g);
BEGIN
  IF NOT (SELECT g.had_usage FROM stint.guard g) THEN
    REVOKE USAGE ON SCHEMA stint FROM PUBLIC;
  END IF;
  DROP TABLE stint.guard;
  IF ours AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass
      AND d.refobjid = 'stint'::regnamespace AND d.deptype = 'n') THEN
    DROP SCHEMA stint;
  END IF;
END $f$;
)sql";

}  // namespace stint::guard
