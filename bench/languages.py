"""Search of tools that are described in English, by tasks in other languages.

    python -m bench.languages [--data DIRECTORY] [--words] [--cache DIRECTORY]

Twenty everyday tasks over the 199 tools of the pool `metatool` (see `bench.search`), each in
English, German, Spanish, French and Chinese, written for this and by nobody who made the pool; then
twenty tasks of the pool `bfcl` (872 tools), drawn by chance and translated after the lexicon of
`registry.search.languages` was written. Prints for how many the right tool is the first, among
five, and for how many nothing is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.pools import Pool, encode_tasks
from bench.search import DATA
from registry.search.encoder import load_encoder
from registry.search.index import weigh_task

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
DRAWN = """
294|Find the lyrics to the song 'Bohemian Rhapsody' by Queen.|Finde den Liedtext zu 'Bohemian Rhapsody' von Queen.|Encuentra la letra de la canción 'Bohemian Rhapsody' de Queen.|Trouve les paroles de la chanson « Bohemian Rhapsody » de Queen.|查找皇后乐队的歌曲《波西米亚狂想曲》的歌词
78|Get the average temperature in Austin for the next 3 days in Celsius.|Gib mir die durchschnittliche Temperatur in Austin für die nächsten 3 Tage in Celsius.|Dame la temperatura media en Austin para los próximos 3 días en grados Celsius.|Donne-moi la température moyenne à Austin pour les 3 prochains jours en Celsius.|获取奥斯汀未来三天的平均气温，用摄氏度
495|Find the final velocity of an object thrown up at 40 m/s after 6 seconds.|Berechne die Endgeschwindigkeit eines Gegenstands, der mit 40 m/s hochgeworfen wird, nach 6 Sekunden.|Halla la velocidad final de un objeto lanzado hacia arriba a 40 m/s después de 6 segundos.|Trouve la vitesse finale d'un objet lancé vers le haut à 40 m/s après 6 secondes.|求一个以40米每秒上抛的物体6秒后的末速度
549|What will be the humidity and temperature for New York City after 7 days?|Wie werden Luftfeuchtigkeit und Temperatur in New York in 7 Tagen sein?|¿Qué humedad y temperatura habrá en Nueva York dentro de 7 días?|Quelles seront l'humidité et la température à New York dans 7 jours ?|纽约七天后的湿度和温度是多少
67|Identify a small green bird in forest.|Bestimme einen kleinen grünen Vogel im Wald.|Identifica un pájaro verde pequeño en el bosque.|Identifie un petit oiseau vert dans la forêt.|识别森林里的一只绿色小鸟
9|Calculate the area of a circle with a radius of 5 units.|Berechne die Fläche eines Kreises mit dem Radius 5.|Calcula el área de un círculo de radio 5.|Calcule l'aire d'un cercle de rayon 5.|计算半径为5的圆的面积
365|How many teaspoons are in 2 tablespoons for measurement in my recipe?|Wie viele Teelöffel sind 2 Esslöffel in meinem Rezept?|¿Cuántas cucharaditas son 2 cucharadas en mi receta?|Combien de cuillères à café font 2 cuillères à soupe dans ma recette ?|我的食谱里两大汤匙等于多少茶匙
264|Find me sculptures near Chicago that were made in the 19th century.|Finde Skulpturen in der Nähe von Chicago aus dem 19. Jahrhundert.|Encuentra esculturas cerca de Chicago del siglo XIX.|Trouve des sculptures près de Chicago datant du XIXe siècle.|查找芝加哥附近十九世纪的雕塑
263|Find the size of the sculpture with title 'David' by Michelangelo.|Finde die Größe der Skulptur mit dem Titel 'David' von Michelangelo.|Encuentra el tamaño de la escultura 'David' de Miguel Ángel.|Trouve la taille de la sculpture « David » de Michel-Ange.|查找米开朗基罗的雕塑《大卫》的尺寸
252|Retrieve the full history of Buddhism|Zeige die ganze Geschichte des Buddhismus|Muestra la historia completa del budismo|Récupère l'histoire complète du bouddhisme|获取佛教的完整历史
330|Find the top chess players in New York with a rating above 2300.|Finde die besten Schachspieler in New York mit einer Wertung über 2300.|Encuentra los mejores jugadores de ajedrez de Nueva York con una puntuación superior a 2300.|Trouve les meilleurs joueurs d'échecs de New York avec un classement supérieur à 2300.|查找纽约评分超过2300的顶尖国际象棋棋手
472|What's the root of quadratic equation with coefficients 2, 3 and -4?|Was sind die Lösungen der quadratischen Gleichung mit den Koeffizienten 2, 3 und -4?|¿Cuáles son las raíces de la ecuación cuadrática con coeficientes 2, 3 y -4?|Quelles sont les racines de l'équation quadratique de coefficients 2, 3 et -4 ?|系数为2、3和-4的一元二次方程的根是什么
21|Find the Greatest Common Divisor (GCD) of two numbers, say 36 and 48.|Finde den größten gemeinsamen Teiler der Zahlen 36 und 48.|Encuentra el máximo común divisor de los números 36 y 48.|Trouve le plus grand commun diviseur des nombres 36 et 48.|求36和48两个数的最大公约数
196|Find the air quality index in San Diego at 12pm.|Wie ist der Luftqualitätsindex in San Diego um 12 Uhr?|Busca el índice de calidad del aire en San Diego a las 12.|Trouve l'indice de qualité de l'air à San Diego à midi.|查询圣地亚哥中午12点的空气质量指数
518|Sort this list of names in ascending order: ['Sam', 'Alice', 'Jack']|Sortiere diese Liste von Namen aufsteigend: ['Sam', 'Alice', 'Jack']|Ordena esta lista de nombres en orden ascendente: ['Sam', 'Alice', 'Jack']|Trie cette liste de noms par ordre croissant : ['Sam', 'Alice', 'Jack']|把这个名字列表按升序排序：['Sam', 'Alice', 'Jack']
248|Tell me more about Christianity and its history till the 14th century|Erzähl mir mehr über das Christentum und seine Geschichte bis zum 14. Jahrhundert|Cuéntame más sobre el cristianismo y su historia hasta el siglo XIV|Parle-moi du christianisme et de son histoire jusqu'au XIVe siècle|告诉我更多关于基督教及其到十四世纪的历史
367|How much time will it take to cook a roast chicken of 1.5 kg?|Wie lange dauert es, ein Brathähnchen von 1,5 kg zu garen?|¿Cuánto tiempo se tarda en cocinar un pollo asado de 1,5 kg?|Combien de temps faut-il pour cuire un poulet rôti de 1,5 kg ?|烤一只1.5公斤的鸡需要多长时间
309|What are the career stats of basketball player LeBron James?|Wie lauten die Karrierestatistiken des Basketballspielers LeBron James?|¿Cuáles son las estadísticas de carrera del jugador de baloncesto LeBron James?|Quelles sont les statistiques de carrière du joueur de basket LeBron James ?|篮球运动员勒布朗·詹姆斯的职业生涯统计数据是什么
158|Give me the details of Criminal Law Amendment Act of 2013.|Gib mir die Einzelheiten des Gesetzes zur Änderung des Strafrechts von 2013.|Dame los detalles de la ley de reforma penal de 2013.|Donne-moi les détails de la loi de réforme pénale de 2013.|给我2013年刑法修正案的详细信息
300|What is the third major chord in C major scale?|Was ist der dritte Akkord in der C-Dur-Tonleiter?|¿Cuál es el tercer acorde en la escala de do mayor?|Quel est le troisième accord de la gamme de do majeur ?|C大调音阶中的第三个大三和弦是什么
""".strip()  # noqa: E501, RUF001


def measure(pool: Pool, asked: Sequence[tuple[str, str]], cache: Path | None) -> tuple[int, ...]:
    """For how many of the tasks the right tool (by its name or id) is the first, among five, and
    nothing is found.
    """
    encoder = pool.encoder
    vectors = encode_tasks(encoder, [task for _, task in asked], cache) if encoder else {}
    first, among, nothing = 0, 0, 0
    for gold, task in asked:
        likeness = pool.compare(vectors[task], ()) if encoder else None
        ranked = weigh_task(task, pool.index_tools(()), likeness).ranked
        found = [gold in (each.tool.tool, str(each.tool.id)) for each in ranked]
        first += any(found[:1])
        among += any(found[:5])
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
    for name, tasks in (("metatool", TASKS), ("bfcl", DRAWN)):
        pool = Pool(args.data, name, encoder, args.cache)
        rows = [line.split("|") for line in tasks.splitlines()]
        for number, language in enumerate(LANGUAGES, start=1):
            asked = [(row[0], row[number]) for row in rows]
            counts = measure(pool, asked, args.cache)
            first, among, nothing = (f"{count:2}" for count in counts)
            print(f"{name:8} {language:8} first {first}, among five {among}, nothing {nothing}")


if __name__ == "__main__":
    main()
