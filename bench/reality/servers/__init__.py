"""The servers, one module each: how it is installed and started, and its scenarios."""

from bench.reality.servers import etcd, httpbin, jsongraphql, kinto, loopback

SERVERS = (kinto.SERVER, loopback.SERVER, httpbin.SERVER, jsongraphql.SERVER, etcd.SERVER)
