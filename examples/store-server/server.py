#!/usr/bin/env python3
"""server.py PORT FILE: a server of the store protocol (docs/reference/store-protocol.md) over one SQLite file.

A pattern for a server over your own database. The secret is STINT_KEY of the environment. On loopback only."""
import hmac
import json
import os
import re
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCK = threading.Condition()
DB = sqlite3.connect(sys.argv[2], check_same_thread=False, isolation_level=None)
DB.executescript('''PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS head (store TEXT PRIMARY KEY, revision INTEGER, version INTEGER, mark INTEGER,
                                 ahead INTEGER);
CREATE TABLE IF NOT EXISTS record (store TEXT, key BLOB, value TEXT, version INTEGER, fires INTEGER, ttl INTEGER,
                                   PRIMARY KEY (store, key)) WITHOUT ROWID;''')
CHANGES = {}  # (store, key) -> how often it was changed since this server runs


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


class Event:
    """One request at one moment, inside one transaction."""

    def __init__(self, store, create):
        self.store = store
        row = DB.execute('SELECT revision, version, mark, ahead FROM head WHERE store = ?', [store]).fetchone()
        if row is None:
            if not create:
                raise Refused(404, 'absent', 'there is no store of this name')
            row = (0, 0, 0, 0)
            DB.execute('INSERT INTO head VALUES (?, 0, 0, 0, 0)', [store])
        self.revision, self.version, mark, ahead = row
        # A clock that was set back goes on from where it was.
        clock = time.time_ns() // 1_000_000 + ahead
        self.now = max(clock, mark)
        self.ahead = ahead + self.now - clock

    def done(self, body):
        DB.execute('UPDATE head SET revision = ?, version = ?, mark = ?, ahead = ? WHERE store = ?',
                   [self.revision, self.version, self.now, self.ahead, self.store])
        return {'revision': str(self.revision), 'now_ms': self.now, **body}

    def row(self, key):
        return DB.execute('SELECT value, version, fires, ttl FROM record WHERE store = ? AND key = ?',
                          [self.store, key.encode()]).fetchone()

    def shown(self, value, version, fires, ttl):
        timer = {} if fires is None else {'ttl_ms': ttl, 'left_ms': min(fires - self.now, ttl)}
        return {'value': value, 'version': str(version), **timer}

    def read(self, asked):
        rows = [self.row(key) for key in asked['keys']]
        body = {'entries': [row and self.shown(*row) for row in rows]}
        return body if rows else {**body, 'about': {'worker': 'server.py', 'colo': '', 'ahead_ms': self.ahead}}

    def scan(self, asked):
        low = asked['prefix'].encode()
        where = 'FROM record WHERE store = ? AND key >= ? AND key < ?'
        what = [self.store, low, low + b'\xff']
        if asked.get('count'):
            return {'count': DB.execute(f'SELECT count(*) {where}', what).fetchone()[0]}
        down = asked.get('backwards', False)
        if asked.get('after'):
            where += ' AND key < ?' if down else ' AND key > ?'
            what.append(asked['after'].encode())
        limit = min(asked['limit'], 1000)
        rows = DB.execute(f'SELECT key, value, version, fires, ttl {where} ORDER BY key {"DESC" if down else ""} LIMIT ?',
                          [*what, limit]).fetchall()
        entries = [{'key': key.decode(), **self.shown(*rest)} for key, *rest in rows]
        return {'entries': entries, 'more': len(rows) == limit}

    def holds(self, step):
        if step['kind'] == 'append':
            return True
        row = self.row(step['key'])
        if 'version' in step and int(step['version']) != (row[1] if row else 0):
            return False
        if step['kind'] == 'touch' and row is None:
            return False
        state = 'none' if row is None or row[2] is None else 'running' if row[2] > self.now else 'fired'
        return step.get('demand', state) == state

    def commit(self, asked):
        steps = asked['steps']
        for i, step in enumerate(steps):
            if not self.holds(step):
                return {'conflict': i}
        if any(step['kind'] not in ('check', 'touch') for step in steps):
            self.revision += 1
            # From the time: none is given twice, also after a backup was put back.
            self.version = max(self.version + 1, self.now * 1000)
        return {'versions': [str(self.apply(step, i)) for i, step in enumerate(steps)]}

    def apply(self, step, index):
        kind, key, row = step['kind'], step['key'], self.row(step['key'])
        if kind == 'check':
            return row[1] if row else 0
        if kind == 'remove':
            DB.execute('DELETE FROM record WHERE store = ? AND key = ?', [self.store, key.encode()])
            return 0
        fires, ttl = (row[2], row[3]) if row else (None, None)
        timer = step.get('timer')
        if timer == 'stop':
            fires = ttl = None
        elif timer and not (timer == 'extend' and fires and fires > self.now + step['ttl_ms']):
            fires, ttl = self.now + step['ttl_ms'], step['ttl_ms']
        value, version = (row[0], row[1]) if kind == 'touch' else (step['value'], self.version)
        if kind == 'append':
            key, fires, ttl = f'{key}{self.revision * 64 + index:016d}', None, None
        DB.execute('INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?, ?)',
                   [self.store, key.encode(), value, version, fires, ttl])
        return 0 if kind == 'append' else version


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def do_POST(self):
        try:
            asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
            match = re.fullmatch(r'/v1/([\w.-]+)/(read|scan|commit|watch)', self.path)
            if not self.path.startswith('/v1/'):
                raise Refused(400, 'protocol', 'this server speaks protocol 1')
            if not hmac.compare_digest(self.headers.get('Authorization', ''), 'Bearer ' + os.environ['STINT_KEY']):
                raise Refused(401, 'denied', 'this is not the secret of this server')
            if not match:
                raise Refused(404, 'absent', 'no such route')
            if match[2] == 'watch':
                return self.watch((match[1], asked['key']))
            self.answer(200, self.transaction(match[1], match[2], asked))
        except Refused as why:
            self.answer(why.status, {'code': why.code, 'message': str(why)})

    def transaction(self, store, route, asked):
        with LOCK:
            DB.execute('BEGIN IMMEDIATE')
            try:
                event = Event(store, asked.get('create', False))
                body = event.done(getattr(event, route)(asked))
            except BaseException:
                DB.execute('ROLLBACK')
                raise
            DB.execute('COMMIT')
            if 'versions' in body:
                for step in asked['steps']:
                    if step['kind'] not in ('check', 'touch'):
                        CHANGES[store, step['key']] = CHANGES.get((store, step['key']), 0) + 1
                LOCK.notify_all()
            return body

    def watch(self, place):
        self.close_connection = True
        self.send_response(200)
        self.send_header('Connection', 'close')
        self.end_headers()
        with LOCK:
            seen = CHANGES.get(place, 0)
        word = b'watching\n'
        try:
            while True:
                self.wfile.write(word)
                with LOCK:
                    LOCK.wait_for(lambda: CHANGES.get(place, 0) != seen, 25)
                    word = b'changed\n' if CHANGES.get(place, 0) != seen else b'\n'
                    seen = CHANGES.get(place, 0)
        except OSError:
            pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
