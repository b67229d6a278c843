"""How well tasks in other languages find tools that are described in English.

    python -m bench.languages [--data DIRECTORY] [--words] [--cache DIRECTORY]

Twenty everyday tasks over the 199 tools of the pool `metatool` (see `bench.search`), each in
English, German, Spanish, French and Chinese, written for this and by nobody who made the pool.
Prints for how many the right tool is the first, among five, and for how many nothing is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.pools import Pool, encode_tasks
from bench.search import DATA
from registry.search.encoder import load_encoder
from registry.search.index import weigh_task

POOL = "metatool"
LANGUAGES = ("English", "German", "Spanish", "French", "Chinese")
TASKS = """
AusSurfReport|how is the surf at Bondi today|Wie ist die Brandung heute in Bondi?|¿Cómo está el oleaje hoy en Bondi?|Quelles sont les conditions de surf aujourd'hui à Bondi ?|今天邦迪海滩的冲浪情况怎么样
Chess|let us play a game of chess|Lass uns eine Partie Schach spielen|Juguemos una partida de ajedrez|Jouons une partie d'échecs|我们来下一盘国际象棋
Discount|find coupon codes for running shoes|Finde Gutscheincodes für Laufschuhe|Busca códigos de descuento para zapatillas|Trouve des codes promo pour des chaussures de course|找跑鞋的优惠码
EmailByNylas|search my emails for the invoice|Durchsuche meine E-Mails nach der Rechnung|Busca la factura en mis correos|Cherche la facture dans mes e-mails|在我的邮件里查找发票
GiftTool|suggest a gift for my mother|Schlage ein Geschenk für meine Mutter vor|Sugiere un regalo para mi madre|Propose un cadeau pour ma mère|给我妈妈推荐一件礼物
Horoscopes_by_Inner_Self|weekly horoscope for Libra|Wochenhoroskop für Waage|horóscopo semanal de Libra|horoscope de la semaine pour la Balance|天秤座本周运势
MusicTool|create a playlist of calm music|Erstelle eine Wiedergabeliste mit ruhiger Musik|Crea una lista de música tranquila|Crée une liste de musique calme|创建一个轻音乐播放列表
NewsTool|the latest news of the world|die neuesten Nachrichten aus aller Welt|las últimas noticias del mundo|les dernières nouvelles du monde|最新的世界新闻
PodcastTool|find podcasts about history|Finde Podcasts über Geschichte|Busca podcasts de historia|Trouve des podcasts sur l'histoire|查找关于历史的播客
RestaurantBookingTool|book a table at a restaurant|Reserviere einen Tisch in einem Restaurant|Reserva una mesa en un restaurante|Réserve une table dans un restaurant|在餐厅预订一张桌子
korea_subway|subway route from Gangnam to Seoul station|U-Bahn-Verbindung von Gangnam zum Bahnhof Seoul|ruta de metro de Gangnam a la estación de Seúl|itinéraire en métro de Gangnam à la gare de Séoul|从江南到首尔站的地铁路线
qreator|make a QR code of this link|Erzeuge einen QR-Code aus diesem Link|Genera un código QR de este enlace|Génère un QR code de ce lien|把这个链接生成二维码
locator|where is the space station now|Wo ist die Raumstation gerade?|¿Dónde está ahora la estación espacial?|Où est la station spatiale en ce moment ?|空间站现在在哪里
timemachine|current time in Tokyo|aktuelle Uhrzeit in Tokio|hora actual en Tokio|heure actuelle à Tokyo|东京现在几点
web_scraper|extract the text of a web page|Extrahiere den Text einer Webseite|Extrae el texto de una página web|Extrais le texte d'une page web|提取网页的文本
what_to_watch|where can I stream this series|Wo kann ich diese Serie streamen?|¿Dónde puedo ver esta serie en streaming?|Où puis-je regarder cette série en streaming ?|这部剧在哪里可以看
brandfetch|logo and colours of a company|Logo und Farben eines Unternehmens|logotipo y colores de una empresa|logo et couleurs d'une entreprise|一家公司的标志和颜色
CribbageScorer|score my cribbage hand|Zähle die Punkte meiner Cribbage-Karten|Cuenta los puntos de mi mano de cribbage|Compte les points de ma main de cribbage|计算我的克里比奇牌得分
seoanalysis|improve the SEO of my website|Verbessere das SEO meiner Website|Mejora el SEO de mi sitio web|Améliore le SEO de mon site web|改进我网站的搜索引擎优化
VideoSummarizeTool|summarise a YouTube video|Fasse ein YouTube-Video zusammen|Resume un vídeo de YouTube|Résume une vidéo YouTube|总结一个YouTube视频
""".strip()  # noqa: E501


def measure(pool: Pool, asked: Sequence[tuple[str, str]], cache: Path | None) -> tuple[int, ...]:
    """For how many of the tasks the right tool is the first, among five, and nothing is found."""
    encoder = pool.encoder
    vectors = encode_tasks(encoder, [task for _, task in asked], cache) if encoder else {}
    first, among, nothing = 0, 0, 0
    for gold, task in asked:
        likeness = pool.compare(vectors[task], ()) if encoder else None
        found = [each.tool.tool for each in weigh_task(task, pool.index_tools(()), likeness).ranked]
        first += found[:1] == [gold]
        among += gold in found[:5]
        nothing += not found
    return first, among, nothing


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--cache", type=Path)
    args = parser.parse_args()
    encoder = None if args.words else load_encoder()
    if encoder is None and not args.words:
        parser.error("the extra `semantic` is not installed; --words goes without it")
    pool = Pool(args.data, POOL, encoder, args.cache)
    rows = [line.split("|") for line in TASKS.splitlines()]
    for number, language in enumerate(LANGUAGES, start=1):
        asked = [(row[0], row[number]) for row in rows]
        first, among, nothing = measure(pool, asked, args.cache)
        print(f"{language:8} first {first:2}, among five {among:2}, nothing {nothing:2}, of 20")


if __name__ == "__main__":
    main()
