# SPDX-License-Identifier: Apache-2.0
"""Web pages as a crawl of articles finds them: 0.043 MB of HTML around some 3 KB of article, in several templates and
encodings, with navigation, scripts, teasers, comments and cookie notices."""
import html
import json
import random

import words

ENCODINGS = [("utf-8", 10), ("windows-1252", 2), ("iso-8859-1", 1), ("utf-8-sig", 1), ("utf-16", 1)]


def choose(rng, weighted):
    return rng.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]


def link(rng, text=None):
    slug = "-".join(rng.choice(words.NOUNS) for _ in range(3))
    text = text or words.title(rng)
    return f'<a href="/{rng.choice(words.NOUNS)}/{slug}-{rng.randint(1000, 99999)}.html">{html.escape(text)}</a>'


def script(rng, size):
    """Minified code, as far as a parser can tell."""
    parts, length = [], 0
    while length < size:
        name = f"{rng.choice(words.NOUNS)[:4]}{rng.randint(0, 99)}"
        parts.append(rng.choice([
            f'function {name}(e,t){{return e<t?e+{rng.randint(1, 999)}:t&&"{rng.choice(words.NOUNS)}"}}',
            f'window.{name}=window.{name}||[];{name}.push(["{rng.choice(words.VERBS)}",{rng.random():.6f}]);',
            f'for(var i=0;i<{rng.randint(2, 60)};i++)document.write("<span class=\'{name}\'><\\/span>");',
            f'var {name}={{id:"{rng.getrandbits(64):016x}",n:{rng.randint(0, 9)},html:"<p>{rng.choice(words.ADJECTIVES)}<\\/p>"}};',
        ]))
        length += len(parts[-1])
    return "<script>" + "".join(parts) + "</script>\n"


def style(rng, size):
    parts, length = [], 0
    while length < size:
        parts.append(f".{rng.choice(words.NOUNS)}-{rng.choice(words.ADJECTIVES)}{rng.choice(['', ':hover', '>li', ' a'])}"
                     f"{{margin:{rng.randint(0, 40)}px;color:#{rng.getrandbits(24):06x};display:{rng.choice(['block', 'flex'])}}}")
        length += len(parts[-1])
    return "<style>" + "\n".join(parts) + "</style>\n"


def head(rng, heading, encoding, declared):
    about = {"@context": "https://schema.org", "@type": "NewsArticle", "headline": heading,
             "author": {"@type": "Person", "name": words.person(rng)}}
    charset = {"meta": f'<meta charset="{encoding}">',
               "http-equiv": f'<meta http-equiv="Content-Type" content="text/html; charset={encoding}">'}.get(declared, "")
    return (f"<head>{charset}\n<title>{html.escape(heading)} | The {rng.choice(words.PLACES).title()} Times</title>\n"
            f'<meta name="description" content="{html.escape(words.sentence(rng, 12))}">\n'
            f'<meta property="og:title" content="{html.escape(heading)}">\n<link rel="stylesheet" href="/style.css">\n'
            f'<script type="application/ld+json">{json.dumps(about)}</script>\n'
            + style(rng, rng.randint(2000, 9000)) + script(rng, rng.randint(2000, 9000)) + "</head>\n")


def menu(rng, count):
    return "<ul>" + "\n".join(f"<li class=\"item-{i}\">{link(rng, rng.choice(words.NOUNS).title())}</li>" for i in range(count)) + "</ul>"


def prose(rng, sentences):
    """A paragraph with the markup that editors use."""
    parts = []
    for _ in range(sentences):
        text = html.escape(words.sentence(rng, rng.randint(5, 24)), quote=False)
        if rng.random() < 0.12:
            first, _, rest = text.partition(" ")
            text = f"{first} {link(rng, rest[:-1])}."
        elif rng.random() < 0.1:
            text = f"<{(tag := rng.choice(['em', 'strong', 'i', 'b']))}>{text}</{tag}>"
        parts.append(text.replace(" the ", "&nbsp;the ", 1) if rng.random() < 0.05 else text)
    return "<p>" + " ".join(parts) + rng.choice(["</p>\n", "</p>\n", "\n"])


def article(rng, encoding):
    parts, wanted = [], rng.lognormvariate(7.7, 0.6)
    while sum(map(len, parts)) < wanted * 1.15:
        kind = rng.random()
        if kind < 0.08:
            parts.append(f"<h2>{html.escape(words.title(rng))}</h2>\n")
        elif kind < 0.13:
            parts.append("<ul>" + "".join(f"<li>{words.sentence(rng, 6)}</li>\n" for _ in range(rng.randint(2, 6))) + "</ul>\n")
        elif kind < 0.18:
            parts.append(f"<blockquote><p>{words.paragraph(rng, 2)}</p></blockquote>\n")
        elif kind < 0.24:
            parts.append(f'<figure><img src="/i/{rng.getrandbits(40):x}.jpg" alt="{words.title(rng)}" width=640>'
                         f"<figcaption>{words.sentence(rng, 5)} Photo: {words.person(rng)}</figcaption></figure>\n")
        elif kind < 0.27 and encoding.startswith("utf"):
            language, text = rng.choice(words.FOREIGN)
            parts.append(f'<p lang="{language}">{text}</p>\n')
        else:
            parts.append(prose(rng, rng.randint(2, 6)))
    return "".join(parts)


def teasers(rng, count):
    return "\n".join(f'<div class="teaser"><h3>{link(rng)}</h3><img src="/t/{i}.jpg" alt=""><p>{words.sentence(rng, 10)}</p>'
                     f'<span class="date">{rng.randint(1, 28)} March 2019</span></div>' for i in range(count))


def comments(rng, count):
    return '<section id="comments"><h3>Comments</h3>' + "\n".join(
        f'<div class="comment"><b>{words.person(rng)}</b> <time>{rng.randint(1, 59)} minutes ago</time>'
        f"<p>{words.paragraph(rng, rng.randint(1, 3))}</p><a href=\"#r{i}\">Reply</a></div>" for i in range(count)) + "</section>\n"


CONTAINERS = [
    ('<main><article class="post">', "</article></main>"),
    ('<div id="content"><div class="entry-content">', "</div></div>"),
    ('<table width="100%"><tr><td class="side">{side}</td><td class="story">', "</td></tr></table>"),
    ('<div class="l-row"><div class="l-col-8"><div itemprop="articleBody">', "</div></div></div>"),
    ("<div><div><div>", "</div></div></div>"),
]
COOKIES = ('<div class="cookie-notice" role="dialog"><p>We use cookies to improve your experience. By using this site you accept '
           'our <a href="/privacy">privacy policy</a>.</p><button>Accept all</button> <button>Settings</button></div>\n')


def page(number, is_tiny):
    """The bytes of a page."""
    rng = random.Random(f"page {number}")
    encoding = choose(rng, ENCODINGS)
    declared = rng.choice(["meta", "http-equiv"]) if encoding != "utf-8" or rng.random() < 0.9 else "nothing"
    if encoding == "utf-8-sig" or encoding == "utf-16":
        declared = "nothing"  # its first bytes tell
    heading = words.title(rng)
    opening, closing = rng.choice(CONTAINERS)
    opening = opening.replace("{side}", menu(rng, 12))
    parts = ["<!DOCTYPE html>\n<html lang=\"en\">\n", head(rng, heading, encoding, declared), "<body>\n",
             COOKIES if rng.random() < 0.5 else "", f"<header><nav>{menu(rng, rng.randint(8, 40))}</nav></header>\n",
             f'<div class="breadcrumb">{link(rng, "Home")} &raquo; {link(rng, "News")}</div>\n', opening,
             f'<h1>{html.escape(heading)}</h1>\n<div class="byline">By {words.person(rng)}, {rng.randint(1, 28)} May 2018</div>\n',
             article(rng, encoding), '<div class="share"><a href="#f">Share</a> <a href="#t">Tweet</a></div>\n', closing,
             f"<aside>{teasers(rng, rng.randint(3, 12))}</aside>\n", comments(rng, rng.randint(0, 10)),
             f"<footer>{menu(rng, rng.randint(10, 40))}<p>&copy; 2019 All rights reserved.</p></footer>\n"]
    if not is_tiny:
        # Scripts make up the rest of most pages.
        parts += [script(rng, int(rng.lognormvariate(8.7, 0.7))) for _ in range(rng.randint(1, 3))]
    parts.append("</body>\n</html>\n" if rng.random() < 0.95 else "")
    text = "".join(parts)
    return text.encode(encoding, "xmlcharrefreplace")


def make(folder, size):
    for number in range(size.count):
        site = folder / f"site-{number % 10:02}"
        site.mkdir(exist_ok=True)
        (site / f"page-{number:05}.html").write_bytes(page(number, size.tiny))
