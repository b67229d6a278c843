"""What in a task is an address, and what only looks like one: each literal beside a host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.addresses import MAX_NAMED, find_locations
from forge.sources import ApiSource

SENTENCES = ("{}", "convert {} to text", "the value of {}", "({})", "is it '{}'?")

LITERALS = """
2031-03-04T05:06 | 2031-03-04T05:06:07Z | 2031-03-04T05:0600 | T10:30 | 10:30 | 23:59:59 | 9:05pm
12.30 | 3.50 | 1.000,50 | 3.14 | ratio 3:4 | John 3:16 | 12:3456 | 1e10:20 | 10.5%
1.2.3 | v1.2.3 | 2.0.1-beta.4 | version 1.2.3.4 | build 10.20.30.40 | Chrome/120.0.6099.71
a.b.key | response.data.items | user.id | self.name | metadata.labels.app | os.path.join | obj.to
java.util.List | com.example.app | org.apache.commons.lang | np.array | foo.bar()
requests.get(url)
console.log | process.env.HOME | $.data.items[0].name | data.items[0].id | event.target
user.email
${API_HOST} | ${api.example.com} | {{ server.example.com }} | https://${HOST}/v1 | http://{host}/x
%(db.example.com)s | <api.example.com> | *.example.com | --flag.com | @scope/pkg.io | key=value.com
report.json | main.py | main.py:120 | src/main.rs | README.md | openapi.yaml | archive.tar.gz
data.zip | clip.mov | run.sh | lib.so | Makefile.am | a/b.com/c | notes.txt
bob@example.com | first.last@mail.example.co.uk | mailto:bob@example.com | sip:bob@example.com
postgres://u:p@db.example.com:5432/x | redis://cache.example.com:6379 | s3://bucket.example.com/key
10.0.0.0/8 | 192.168.0.1/24 | 2001:db8:85a3:0000:0000:8a2e | fe80::1 | aa:bb:cc:dd:ee:ff | 0.0.0.0
nginx:1.25 | ubuntu:22.04 | postgres:16 | sha256:12345abcdef | line:1200 | id:12345 | error:5000
e.g. this | i.e. that | at 10 a.m. or 5 p.m. | sentence one.Then two | Node.js | Vue.js | U.S.
the zone example.org | the domain example.com
"""
HOSTS = """
127.0.0.1:8081 | 10.0.0.5 | localhost | localhost:9000 | localhost:9000/api/docs | api.example.com
api.example.com/v1/pets | petstore.swagger.io | api.github.com | httpbin.org | dns.google | dog.ceo
ifconfig.me | ipinfo.io | wttr.in/London | api.frankfurter.app | restcountries.com | data.gov.uk
api.met.no | date.nager.at | pokeapi.co | api.weather.gov | swapi.dev | catfact.ninja
printer.local | grafana.internal:3000 | box.lan | api.my-shop.test | docs.python.org
myhost.id:8080 | api.tracker.id | numbersapi.com | web.example:8443 | xn--bcher-kva.example
data.example.com
app.example.org | dev.example.com | http://127.0.0.1:8081 | http://[::1]:80 | http://db:5000/x
https://a.example/v1/spec.yaml | https://main.py.example/report.json
"""


def split(table: str) -> list[str]:
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split(" | ")]


@pytest.mark.parametrize("literal", split(LITERALS))
def test_a_literal_of_a_task_is_no_address(literal: str) -> None:
    assert {find_locations(sentence.format(literal)) for sentence in SENTENCES} == {()}


@pytest.mark.parametrize("host", split(HOSTS))
def test_an_address_in_a_task_is_one_wherever_it_stands(host: str) -> None:
    assert {find_locations(sentence.format(host)) for sentence in SENTENCES} == {(host,)}


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("list the DNS zones on http://127.0.0.1:8081", ["http://127.0.0.1:8081"]),
        ('count lines such as\n  127.0.0.1 - ann [10/Oct/2000] "GET /a HTTP/1.0" 200 7', []),
        ("the lights of\n10.0.0.5", ["10.0.0.5"]),
        ("10.0.0.5 has lights", ["10.0.0.5"]),
        ("list the zones of 127.0.0.1:8081.", ["127.0.0.1:8081"]),
        ("see https://a.example.com/v1/spec.yaml, please", ["https://a.example.com/v1/spec.yaml"]),
        ("ask api.example.com or localhost:9000", ["api.example.com", "localhost:9000"]),
        ("list the zones on powerdns:8081", ["powerdns:8081"]),
        ("(docs: https://x.example/a)", ["https://x.example/a"]),
        ("GET https://x.example/users/{id}/pets", ["https://x.example/users/"]),
        ("meet at 10:30 about api.example.com v1.2.3 with bob@example.net", ["api.example.com"]),
        ("", []),
    ],
)
def test_a_task_names_urls_and_hosts_in_its_order(task: str, named: list[str]) -> None:
    assert list(find_locations(task)) == named


@given(st.text(max_size=300))
def test_whatever_a_task_names_can_be_used_as_a_source(text: str) -> None:
    named = find_locations(text)
    assert len(named) <= MAX_NAMED
    assert all(ApiSource(location).path is None for location in named)
    assert all(ApiSource(location).urls for location in named)


@pytest.mark.parametrize("part", ["a.", "1.", "a-", "${", "a:1", "http://", "{{", "a@", "x://"])
def test_a_task_made_to_be_slow_to_read_is_still_read(part: str) -> None:
    assert len(find_locations(part * 10_000)) <= MAX_NAMED
