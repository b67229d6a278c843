"""What the static stage lets servers import is there in both engines, and does the same."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from sandbox.bundle.modules import MODULES
from sandbox.session.interface import Runner
from tests.engine.conftest import Engine
from tests.engine.samples import RUN, body, broker, bundle
from tests.sandbox.local import LocalRunner

SERVER = bundle(RUN, "run")
USES = {
    "__future__": "sorted(m.all_feature_names)[:3]",
    "asyncio": "m.run(m.wait_for(m.sleep(0.01, [1, 2]), 60))",
    "base64": "[m.b64encode(b'a\\xff').decode(), m.b32hexencode(b'a').decode(), "
    "m.b85decode('VPO').hex()]",
    "binascii": "[m.crc32(b'abc'), m.hexlify(b'\\x01\\xff').decode()]",
    "collections": "[m.Counter('aab').most_common(1), list(m.ChainMap({'a': 1}, {'b': 2}))]",
    "collections.abc": "isinstance({}, m.Mapping)",
    "csv": "list(m.reader(['a,\"b,c\"', 'd,e']))",
    "dataclasses": "m.asdict(m.make_dataclass('P', ['x', 'y'])(1, [2]))",
    "datetime": "[str(m.datetime(2024, 2, 29, tzinfo=m.timezone.utc) + m.timedelta(hours=36)), "
    "m.datetime.strptime('2024-07-01 12', '%Y-%m-%d %H').isoformat()]",
    "decimal": "[str(m.Decimal('0.1') * 3), str(m.Decimal(2).sqrt()), m.getcontext().prec]",
    "difflib": "m.get_close_matches('zone', ['zones', 'records'])",
    "enum": "[member.value for member in m.Enum('E', 'a b')]",
    "fractions": "str(m.Fraction('0.125') + m.Fraction(1, 3))",
    "hashlib": "[m.new(name, b'a').hexdigest(*[8] * name.startswith('shake'))"
    " for name in sorted(m.algorithms_guaranteed)]",
    "hmac": "m.new(b'key', b'text', 'sha256').hexdigest()",
    "html": "[m.escape('<a&\"'), m.unescape('&eacute;&#x41;')]",
    "io": "m.TextIOWrapper(m.BytesIO('é\\r\\n'.encode())).read()",
    "itertools": "[list(m.pairwise([1, 2, 3])), list(m.combinations('abc', 2))]",
    "json": "[m.dumps({'é': [1.5, None]}), m.loads('{\"a\": 1e3, \"a\": 2}')]",
    "math": "[m.fsum([0.1] * 10), m.sin(1), m.gamma(4.5), m.comb(50, 25), m.hypot(3, 4)]",
    "re": "[m.findall(r'(?i)(?<=a)b+', 'abbAB'), m.sub(r'(?P<x>.)', r'\\g<x>.', 'éa')]",
    "sqlite3": "m.connect(':memory:').execute('select upper(?), 7 / 2', ['a']).fetchall()",
    "statistics": "[m.median([3, 1, 2]), m.stdev([1, 2, 4]), m.quantiles([1, 2, 3, 4])]",
    "textwrap": "[m.fill('one two three', 7), m.dedent('  a\\n  b')]",
    "toolwright": "sorted(m.__all__)",
    "typing": "str(m.get_args(m.Literal['a', 'b']))",
    "unicodedata": "[m.normalize('NFKD', 'é').encode().hex(), m.name('é'), m.category('A')]",
    "urllib.parse": "[m.urljoin('https://a/b/c', '../d'), m.quote('é/'), m.parse_qs('a=1&a=2')]",
    "uuid": "[str(m.uuid5(m.NAMESPACE_DNS, 'a.test')), len(str(m.uuid4()))]",
    "zlib": "[m.crc32(b'abc'), m.decompress(m.compress(b'a' * 99)).decode()]",
    "zoneinfo": "[str(datetime.datetime(2024, 7, 1, tzinfo=m.ZoneInfo('Europe/Berlin'))), "
    "len(m.available_timezones()) > 400]",
}
"""One expression per module, of the module as `m`."""
USES |= {
    name: "sorted(n for n in dir(m) if not n.startswith('_'))"
    for name in MODULES
    if name.startswith("toolwright.")
}
CODE = """
import datetime, importlib
got = {}
for name, use in USES.items():
    try:
        got[name] = eval(use, {"m": importlib.import_module(name), "datetime": datetime})
    except Exception as error:
        got[name] = f"{type(error).__name__}: {error}"
"""


def used(opened: AbstractAsyncContextManager[Runner]) -> dict[str, Any]:
    """What each module did there."""

    async def run() -> dict[str, Any]:
        async with opened as runner, runner.open(SERVER, broker(SERVER, body(b"{}"))) as session:
            outcome = await session.call("run", {"code": f"USES = {USES!r}\n{CODE}"})
            assert outcome.ok, outcome.failure
            return dict(outcome.structured["got"])

    return asyncio.run(run())


def test_every_module_that_servers_may_import_does_what_it_does_uncaged(engine: Engine) -> None:
    assert used(engine()) == used(nullcontext(LocalRunner()))


def test_every_module_that_servers_may_import_is_compared() -> None:
    assert set(USES) == MODULES
