"""A small HTTP server in front of `git http-backend`, for tests: http_front.py PORT ROOT."""
import http.server
import os
import subprocess
import sys


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.0'

    def serve(self):
        path, _, query = self.path.partition('?')
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length)
        environment = dict(os.environ, GIT_PROJECT_ROOT=sys.argv[2], GIT_HTTP_EXPORT_ALL='1', PATH_INFO=path,
                           QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_USER='test',
                           REMOTE_ADDR='127.0.0.1', CONTENT_TYPE=self.headers.get('Content-Type', ''),
                           CONTENT_LENGTH=str(length),
                           HTTP_CONTENT_ENCODING=self.headers.get('Content-Encoding', ''),
                           GIT_PROTOCOL=self.headers.get('Git-Protocol', ''))
        done = subprocess.run(['git', 'http-backend'], input=body, stdout=subprocess.PIPE, env=environment)
        head, _, content = done.stdout.partition(b'\r\n\r\n')
        status, fields = '200 OK', []
        for line in head.decode().split('\r\n'):
            name, _, value = line.partition(': ')
            if name == 'Status':
                status = value
            elif name:
                fields.append((name, value))
        code, _, words = status.partition(' ')
        self.send_response(int(code), words)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Front).serve_forever()
