"""The services of the drafts that ask."""

from bench.author.asking.service import Service
from bench.author.asking.services.calendars import CALENDARS
from bench.author.asking.services.contacts import CONTACTS
from bench.author.asking.services.exchange import EXCHANGE
from bench.author.asking.services.hotels import HOTELS
from bench.author.asking.services.issues import ISSUES
from bench.author.asking.services.library import LIBRARY
from bench.author.asking.services.parcels import PARCELS
from bench.author.asking.services.refunds import REFUNDS
from bench.author.asking.services.stock import STOCK
from bench.author.asking.services.weather import WEATHER

SERVICES: tuple[Service, ...] = (
    PARCELS,
    HOTELS,
    REFUNDS,
    WEATHER,
    ISSUES,
    LIBRARY,
    STOCK,
    CALENDARS,
    EXCHANGE,
    CONTACTS,
)
