"""The servers, one module each: how it is installed and started, and its scenarios."""

from bench.reality.servers import (
    changedetection,
    etcd,
    etherpad,
    glances,
    httpbin,
    jsongraphql,
    jupyter,
    kinto,
    loopback,
    prefect,
    pygeoapi,
    tiled,
)

SERVERS = (
    kinto.SERVER,
    loopback.SERVER,
    httpbin.SERVER,
    jsongraphql.SERVER,
    etcd.SERVER,
    pygeoapi.SERVER,
    jupyter.SERVER,
    changedetection.SERVER,
    glances.SERVER,
    tiled.SERVER,
    prefect.SERVER,
    etherpad.SERVER,
)
