"""The servers: how each is started, and who asks it."""
import signal
from pathlib import Path
from typing import NamedTuple

from clients import Redis, Memcached, Http, Cached, Proxied, Names, Postgres, Mariadb, Mqtt, Lines


class Server(NamedTuple):
    """`files`: what lies in its directory, {d} there and in words; {p} is its port, {b} that of the server behind it."""
    name: str
    words: list
    client: type
    files: dict = {}
    user: str = "root"
    prepare: str = ""
    needs_behind: bool = False
    stop: int = signal.SIGTERM


NGINX = """user root; daemon off; worker_processes 2; pid {d}/pid; error_log {d}/errors; events { worker_connections 64; }
http { access_log off; keepalive_requests 100000000; etag off; client_body_temp_path {d}/b; proxy_temp_path {d}/p;
fastcgi_temp_path {d}/f;
  uwsgi_temp_path {d}/u; scgi_temp_path {d}/s; server { listen 127.0.0.1:{p}; root {d}; } }"""
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("postgresql"))
HOSTS = [(f"h{i}", f"10.0.0.{i}") for i in range(50)]
SERVERS = [
    Server("redis-server", ["redis-server", "--port", "{p}", "--save", "", "--dir", "{d}", "--io-threads", "2", "--bind",
        "127.0.0.1"], Redis),
    Server("memcached", ["memcached", "-l", "127.0.0.1", "-p", "{p}", "-U", "0", "-t", "4", "-u", "root"], Memcached),
    Server("nginx", ["nginx", "-c", "{d}/nginx.conf", "-p", "{d}", "-e", "{d}/errors"], Http, {"nginx.conf": NGINX}),
    Server("apache2", ["apache2", "-DFOREGROUND", "-d", "{d}", "-f", "{d}/apache.conf"], Http, {"apache.conf": """
ServerName here
PidFile {d}/pid
ErrorLog {d}/errors
Listen 127.0.0.1:{p}
DocumentRoot {d}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
"""}),
    Server("lighttpd", ["lighttpd", "-D", "-f", "{d}/lighttpd.conf"], Http,
        {"lighttpd.conf": 'server.document-root = "{d}"\nserver.port = {p}\n'
           'server.bind = "127.0.0.1"\nserver.max-keep-alive-requests = 100000000\nserver.errorlog = "{d}/errors"\n'}),
    Server("haproxy", ["haproxy", "-W", "-db", "-f", "{d}/haproxy.cfg"], Http,
        {"haproxy.cfg": "global\n nbthread 2\ndefaults\n mode http\n"
           " timeout connect 40s\n timeout client 40s\n timeout server 40s\nfrontend f\n bind 127.0.0.1:{p}\n "
           "default_backend b\nbackend b\n"
           " server s 127.0.0.1:{b}\n"}, needs_behind=True),
    Server("varnishd", ["varnishd", "-F", "-a", "127.0.0.1:{p}", "-n", "{d}/state", "-j", "none", "-s", "malloc,32m",
        "-f", "{d}/x.vcl"], Cached,
           {"x.vcl": 'vcl 4.1; backend default { .host = "127.0.0.1"; .port = "{b}"; } sub vcl_recv { if '
               '(req.http.never) { return (pass); } }'},
           needs_behind=True),
    Server("squid", ["squid", "-N", "-n", "k{p}", "-f", "{d}/squid.conf"], Proxied,
        {"squid.conf": "http_port 127.0.0.1:{p}\nhttp_access allow all\npid_filename {d}/pid\n"
           "cache_log {d}/errors\naccess_log none\ncache_effective_user proxy\nclient_persistent_connections "
           "on\nshutdown_lifetime 0 seconds\n"
           "netdb_filename none\npinger_enable off\n"}, needs_behind=True),
    Server("named", ["named", "-g", "-c", "{d}/named.conf", "-n", "2"], Names, {
        "named.conf": 'options { directory "{d}"; listen-on port {p} { 127.0.0.1; }; listen-on-v6 { none; }; pid-file '
        'none; recursion no; '
                      'session-keyfile none; dnssec-validation no; }; controls { }; zone "test.zone" { type primary; '
                      'file "zone"; };',
        "zone": "$TTL 60\n@ SOA a b 1 60 60 60 60\n@ NS a\na A 10.1.1.1\n" + "".join(f"{h} A {a}\n" for h, a in HOSTS)}),
    Server("unbound", ["unbound", "-d", "-c", "{d}/unbound.conf"], Names,
        {"unbound.conf": 'server:\n interface: 127.0.0.1\n port: {p}\n chroot: ""\n'
           ' username: ""\n directory: "{d}"\n pidfile: ""\n use-syslog: no\n num-threads: 2\n do-ip6: no\n local-zone: '
           '"zone." static\n'
           + "".join(f' local-data: "{h}.test.zone. A {a}"\n' for h, a in HOSTS)}),
    Server("dnsmasq", ["dnsmasq", "-k", "-C", "/dev/null", "-p", "{p}", "-a", "127.0.0.1", "--bind-interfaces", "-R",
        "-h", "-x", "", "-u", "root", "-H",
                       "{d}/hosts"], Names, {"hosts": "".join(f"{a} {h}.test.zone\n" for h, a in HOSTS)}),
    Server("mosquitto", ["mosquitto", "-c", "{d}/mosquitto.conf"], Mqtt,
        {"mosquitto.conf": "listener {p} 127.0.0.1\nallow_anonymous true\nuser root\n"}),
    Server("erl", ["erl", "-noshell", "-eval", "{ok, L} = gen_tcp:listen({p}, [binary, {packet, line}, {active, false}, "
        "{reuseaddr, true}, {ip, {127,0,0,1}}, "
                   "{nodelay, true}]), F = fun G(N) when N < 2 -> N; G(N) -> G(N-1) + G(N-2) end, S = fun E(C) -> case "
                   "gen_tcp:recv(C, 0) of {ok, B} -> "
                   "N = binary_to_integer(string:trim(B)), gen_tcp:send(C, [integer_to_list(N * N + F(8)), 10]), E(C); "
                   "_ -> ok end end, "
                   "A = fun A() -> {ok, C} = gen_tcp:accept(L), spawn(fun() -> S(C) end), A() end, A()."], Lines),
    Server("node", ["node", "-e", "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); require('net').createServer(s => { "
        "let b = ''; s.on('data', d => { b += d; let i; "
                    "while ((i = b.indexOf('\\n')) >= 0) { const n = +b.slice(0, i); b = b.slice(i + 1); s.write(n * n "
                    "+ f(8) + '\\n'); } }); s.on('error', () => 0); })"
                    ".listen({p}, '127.0.0.1'); process.on('SIGTERM', () => process.exit(7))"], Lines),
    Server("postgres", [f"{POSTGRES}/postgres", "-D", "{d}/data", "-p", "{p}", "-k", "{d}", "-c",
        "listen_addresses=127.0.0.1"], Postgres,
           user="postgres", prepare=f"{POSTGRES}/initdb -D {{d}}/data -A trust -N", stop=signal.SIGINT),
    Server("mariadbd", ["mariadbd", "--no-defaults", "--user=root", "--datadir={d}/data", "--port={p}",
        "--socket={d}/socket", "--bind-address=127.0.0.1",
                        "--skip-grant-tables", "--skip-networking=0", "--pid-file={d}/pid"], Mariadb,
           prepare="mariadb-install-db --no-defaults --user=root --datadir={d}/data --skip-test-db "
               "--auth-root-authentication-method=normal; "
                   "mkdir -p {d}/data/test"),
]
BEHIND = next(s for s in SERVERS if s.name == "nginx")._replace(name="behind")
