# SPDX-License-Identifier: Apache-2.0
"""Pages of our own in many shapes and encodings, and the text that a reader would call theirs."""
import html

NAV = ["Start", "News", "Sport", "Culture", "Travel", "Weather", "Contact"]
LINKS = ["Seven bridges you have not crossed", "Why the ferry is late again", "Our favourite harbour cafes",
         "Readers' photos of the week"]

ENGLISH = ["The town of Westhaven has opened its new footbridge over the river, two years after the old one was closed to the public.",
           "About four hundred people came to the opening on Saturday morning. The mayor cut a ribbon, a school orchestra played, and "
           "the first to cross was a dog called Biscuit, who had slipped its lead.",
           "The bridge is 84 metres long and made of larch from the hills above the town. It replaces an iron structure of 1911, which "
           "engineers had found to be beyond repair.",
           "Not everybody is happy. Shop owners on the east bank say that the works cost them a third of their customers, and that "
           "nobody has offered them any compensation.",
           "The council promises that the next project, a cycle path to the station, will be finished by the spring of next year."]
GERMAN = ["Die Gemeinde Oberau hat am Wochenende ihr neues Hallenbad eröffnet. Über tausend Gäste kamen schon am ersten Tag.",
          "Für die Kinder gibt es ein flaches Becken mit einer Rutsche, für die Älteren eine Sauna und ein Café mit großer Terrasse.",
          "Der Bau dauerte drei Jahre und kostete elf Millionen Euro, zwei mehr als geplant, wie der Bürgermeister einräumte.",
          "Geöffnet ist täglich außer montags; Schülerinnen und Schüler zahlen die Hälfte, und wer Geburtstag hat, gar nichts."]
JAPANESE = ["駅前の古い映画館が、来月末で閉館することになりました。開館から六十年、町の人々に親しまれてきた建物です。",
            "支配人の田中さんは、「毎週通ってくださったお客様には、感謝の言葉しかありません」と話しています。",
            "最後の週には、開館の日と同じ作品が上映され、入場料も当時と同じ百円になります。整理券は朝九時から配られます。",
            "建物の今後については、図書館として使う案が出ていますが、まだ何も決まっていないということです。"]
RUSSIAN = ["В посёлке Сосновка открылась новая библиотека. Она занимает два этажа бывшей школы, которую ремонтировали больше года.",
           "На первом этаже устроили детский зал с мягкими креслами, на втором находится читальный зал и небольшая комната для лекций.",
           "Заведующая рассказала, что за первую неделю записалось почти триста человек, и каждый третий из них моложе пятнадцати лет.",
           "Книги можно брать на месяц, а по субботам приходит мастер, который учит всех желающих переплетать старые тома."]
CHINESE = ["城南的旧码头经过两年的整修，上周末重新向市民开放。当天上午就有三千多人前来参观，许多家庭带着孩子一起来。",
           "码头上的仓库改成了展览馆，里面陈列着老照片、船模和航海日志，讲述这座城市一百多年来的航运历史。",
           "负责设计的建筑师说，他们尽量保留了原来的砖墙和木梁，只在屋顶加装了玻璃，让阳光可以照进来。",
           "展览馆每天上午九点开门，周一休息，门票免费，但是需要提前在网上预约。"]
POLISH = ["Na rynku w Zagórzu posadzono wczoraj trzydzieści młodych lip. Drzewa mają dać cień, którego latem bardzo tu brakuje.",
          "Mieszkańcy mogli sami wybrać miejsca i wkopać sadzonki pod okiem ogrodników; najmłodszy pomocnik miał cztery lata.",
          "Jak mówi burmistrz, następne będą ławki i mała fontanna, o którą prosili głównie starsi mieszkańcy miasteczka.",
          "Cała przebudowa placu ma się zakończyć jesienią, jeżeli pogoda pozwoli, a pieniędzy wystarczy do końca."]


def links(texts, element="li"):
    return "".join(f'<{element}><a href="/{i}">{html.escape(text)}</a></{element}>' for i, text in enumerate(texts))


def paragraphs(texts):
    return "\n".join(f"<p>{html.escape(text, quote=False)}</p>" for text in texts)


def modern(title, texts, head="", language="en"):
    """A news page with all that surrounds the text."""
    return f"""<!DOCTYPE html>
<html lang="{language}"><head>{head}<title>{title} - The Westhaven Gazette</title>
<style>p {{ margin: 0 }}</style><script>if (1 < 2) document.write("<p>not a text</p>");</script></head>
<body><div class="cookie-banner" role="dialog"><p>We use cookies to make this site better for you. By going on you accept them.</p>
<button>Accept all</button></div>
<header class="site-header"><a class="logo" href="/">The Westhaven Gazette</a><nav><ul>{links(NAV)}</ul></nav></header>
<main><article class="story"><h1>{title}</h1>
<div class="byline">By <a href="/staff/7">Ann Example</a> <time>12 May 2021, 10:04</time></div>
<ul class="share-bar"><li><a href="https://one.example/share?u=7">Share on one network</a></li><li><a href="https://two.example/post?u=7">Share on another</a></li></ul>
<div class="article-body">
{paragraphs(texts[:2])}
<aside class="related"><h3>Related stories</h3><ul>{links(LINKS)}</ul></aside>
{paragraphs(texts[2:])}
<p style="display: none">This paragraph is hidden, and nobody shall read it.</p>
</div>
<div class="newsletter-signup"><h4>Newsletter</h4><p>Sign up and get the best of the week.</p><form><input name="mail"><button>Go</button></form></div>
</article>
<section id="comments"><h2>Comments</h2><div class="comment"><p>I have walked over it twice already, and it is lovely, says I.</p></div>
<div class="comment"><p>What about the parking, though? Nobody ever talks about the parking.</p></div></section></main>
<aside class="sidebar"><h3>Most read</h3><ol>{links(LINKS)}</ol></aside>
<footer><p>&copy; 2021 The Westhaven Gazette. All rights reserved.</p><ul>{links(["Imprint", "Privacy", "Terms of use"])}</ul></footer>
</body></html>
"""


def old(texts):
    """Tables for the layout, capitals, no paragraphs, nothing closed."""
    text = "<BR><BR>\n".join(texts)
    return f"""<HTML><HEAD><META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1252">
<TITLE>The footbridge</TITLE></HEAD><BODY BGCOLOR=#ffffff>
<TABLE WIDTH=100%><TR><TD COLSPAN=2><FONT SIZE=6>Westhaven Home Page</FONT>
<TR><TD WIDTH=120 VALIGN=top>{"<BR>".join(f'<A HREF="{n}.htm">{n}</A>' for n in NAV)}
<TD VALIGN=top><FONT FACE=Arial>{text}</FONT>
</TABLE><CENTER><FONT SIZE=1>Best viewed with 800 x 600 | <A HREF="mailto:a@example.org">Webmaster</A></FONT></CENTER></BODY></HTML>
"""


def broken(texts):
    """Stray and missing tags, a comment that a browser closes, attributes without quotes, a bare ampersand."""
    one, two, three, four, five = (html.escape(text, quote=False) for text in texts)
    return f"""<title>Broken</title><div id=nav><ul>{"".join(f"<li><a href=/{n}>{n}</a>" for n in NAV)}</ul></div>
<div class=content></span></b><p>{one}<p><b>{two[:20]}<i>{two[20:]}</b></i><!-- a -- comment --!>
<p class='x' id="y" disabled =>{three} <unknown-tag>R&D</unknown-tag> &amp; tea&nbsp;&#8211; &#x2026;</p></p></article>
<p>{four}<![CDATA[ no text ]]><svg><title/><style></svg><p>{five}</table></td></div></section>
<div id=footer><a href=/imprint>Imprint</a>"""


MANUAL_TEXTS = ["Installation", "Download the archive and unpack it into a folder of your choice. You need a compiler and about 200 MB of disk space.",
                "$ tar xf tool-1.2.tar.gz\n$ cd tool-1.2\n$ make install", "Then set three variables, as far as you need them:",
                "TOOL_HOME is the folder in which the program looks for its data, by default the one that it was installed to.",
                "TOOL_JOBS is the number of jobs that run at once, by default one for each processor of the machine.",
                "TOOL_LOG is the name of a file to which it writes what it does; without it, nothing is written."]


def manual():
    head, text, commands, then, *items = MANUAL_TEXTS
    return f"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>Tool 1.2: manual</title></head><body>
<div class="sphinxsidebar"><ul>{links(["Introduction", "Installation", "Configuration", "Index"])}</ul></div>
<div class="document"><div class="body" role="main"><h1>{head}</h1><p>{text}</p><pre>{commands}</pre><p>{then}</p>
<ul>{"".join(f"<li><p>{item}</p></li>" for item in items)}</ul></div></div>
<div class="footer">Created with a tool. <a href="/legal">Legal</a></div></body></html>
"""


def charset(name):
    return f'<meta charset="{name}">'


def http_equiv(name):
    return f'<meta http-equiv="Content-Type" content="text/html; charset={name}">'


BRIDGE = "New footbridge opens in Westhaven"
# name: (page, encoding, bytes before it, expected lines)
PAGES = {
    "utf-8": (modern(BRIDGE, ENGLISH, charset("utf-8")), "utf-8", b"", ENGLISH),
    "utf-8-mark": (modern("Neues Hallenbad", GERMAN, charset("latin1"), "de"), "utf-8", b"\xef\xbb\xbf", GERMAN),
    "utf-16-le": (modern("Neues Hallenbad", GERMAN, "", "de"), "utf-16-le", b"\xff\xfe", GERMAN),
    "utf-16-be": (modern("Старая школа", RUSSIAN, "", "ru"), "utf-16-be", b"\xfe\xff", RUSSIAN),
    "utf-8-declared-latin1": (modern("Neues Hallenbad", GERMAN, charset("iso-8859-1"), "de"), "utf-8", b"", GERMAN),
    "windows-1252": (modern("Neues Hallenbad", GERMAN, http_equiv("windows-1252"), "de"), "windows-1252", b"", GERMAN),
    "shift-jis": (modern("映画館が閉館へ", JAPANESE, http_equiv("Shift_JIS"), "ja"), "cp932", b"", JAPANESE),
    "koi8-r": (modern("Новая библиотека", RUSSIAN, charset("koi8-r"), "ru"), "koi8-r", b"", RUSSIAN),
    "gb18030": (modern("旧码头重新开放", CHINESE, charset("gb2312"), "zh"), "gb18030", b"", CHINESE),
    "xml-iso-8859-2": ('<?xml version="1.0" encoding="iso-8859-2"?>\n' + modern("Lipy na rynku", POLISH, "", "pl"), "iso-8859-2", b"", POLISH),
    "undeclared-windows-1251": (modern("Новая библиотека", RUSSIAN, "", "ru"), "windows-1251", b"", RUSSIAN),
    "undeclared-euc-jp": (modern("映画館が閉館へ", JAPANESE, "", "ja"), "euc-jp", b"", JAPANESE),
    "undeclared-utf-8": (modern("旧码头重新开放", CHINESE, "", "zh"), "utf-8", b"", CHINESE),
    "old": (old(ENGLISH), "windows-1252", b"", ENGLISH),
    "broken": (broken(ENGLISH), "utf-8", b"", [*ENGLISH[:2], ENGLISH[2] + " R&D & tea \u2013 \u2026", *ENGLISH[3:]]),
    "manual": (manual(), "utf-8", b"", None),
}


def make(folder):
    folder.mkdir(exist_ok=True)
    for name, (page, encoding, mark, lines) in PAGES.items():
        (folder / f"{name}.html").write_bytes(mark + page.encode(encoding))
        if lines is None:
            lines = [line for text in MANUAL_TEXTS[1:] for line in text.split("\n")]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
