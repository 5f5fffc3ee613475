# SPDX-License-Identifier: Apache-2.0
"""English sentences out of a small grammar: for speech, pages and transcripts. Other languages come as ready sentences."""

NOUNS = """house river garden mountain window market teacher doctor engine bridge harbour letter picture kitchen forest
station village captain winter summer morning evening machine library theatre question answer minister company farmer
neighbour painter journey season island valley orchestra newspaper factory hospital museum railway festival mirror blanket
candle ladder basket bottle hammer needle pocket button carpet ceiling corner shadow thunder silence rumour promise secret
memory accident argument committee government population temperature experiment laboratory telescope satellite computer
keyboard calendar envelope umbrella suitcase passenger traveller stranger visitor customer merchant carpenter gardener
butcher baker shepherd fisherman sailor soldier lawyer judge prisoner journalist photographer musician singer dancer poet
student professor scientist engineer architect president mayor council parliament election budget contract interest debt
harvest orchard meadow pasture stable chimney cellar attic staircase balcony fountain statue cathedral monastery castle
tower wall gate road path tunnel canal lake ocean beach cliff cave desert glacier volcano earthquake storm flood drought
bread butter cheese apple orange lemon cherry pepper garlic onion potato tomato carrot cabbage chicken salmon coffee tea
language sentence chapter paragraph dictionary alphabet number triangle circle square distance measure weight balance
battery circuit voltage current signal antenna receiver speaker microphone recording melody rhythm violin trumpet drum
child mother father brother sister uncle cousin friend family crowd audience witness patient nurse surgeon medicine""".split()

VERBS = """opened closed carried followed watched painted repaired remembered forgot described measured counted visited
crossed reached left entered found lost bought sold borrowed returned answered explained ignored noticed discovered
published translated collected divided covered protected threatened attacked defended admired criticised praised invited
expected refused accepted received delivered examined inspected improved designed planned built destroyed replaced
controlled supported questioned interrupted finished started studied recorded photographed filmed signed reported""".split()

ADJECTIVES = """old new small large quiet noisy bright dark early late narrow wide heavy light broken empty full cheap
expensive famous unknown local foreign wooden golden silver green yellow purple grey distant nearby careful careless gentle
rough patient nervous cheerful serious curious strange familiar ordinary unusual public private modern ancient frozen
burning dusty clean dirty wet dry warm cold polite rude honest clever lazy busy hungry thirsty tired sleepy lonely""".split()

ADVERBS = """slowly quickly carefully suddenly quietly finally usually rarely often never twice again together alone
yesterday today tonight eventually apparently certainly perhaps gladly reluctantly immediately recently""".split()

PLACES = """in the city|near the river|behind the station|under the bridge|at the end of the street|across the border|on the
hill|beside the old mill|in the middle of the night|before the first snow|after the long meeting|during the summer|without a
word|for the third time|against all advice|with great patience|between the two villages|since the war|until the next
morning|despite the rain|according to the report|at the request of the council""".replace("\n", " ").split("|")

LINKS = ["because", "while", "although", "before", "after", "when", "until", "as if", "even though", "so that"]

FIRST = """Anna Ben Clara David Emma Felix Grace Henry Ida Jonas Karla Leo Maria Nora Oscar Paula Quentin Rosa Simon Thea
Ulrich Vera Walter Xenia Yusuf Zoe""".split()
LAST = """Abbott Berger Costa Dvorak Eriksen Fischer Garcia Haddad Ivanova Jensen Kowalski Larsen Moreau Nakamura Okafor
Petrov Quinn Rossi Santos Tanaka Ueda Visser Weber Xu Yilmaz Zhang""".split()

FOREIGN = [
    ("de", "Der Zug nach Köln fährt heute von Gleis fünf, weil die Brücke über den Fluss überprüft werden muss."),
    ("fr", "Après l’été, les élèves reviennent à l’école où une forêt de questions naïves les attend déjà."),
    ("es", "Mañana, el pequeño barco volverá al puerto con más de veinte cajas de peces y una canción."),
    ("pl", "Żółta łódź płynęła powoli wzdłuż brzegu, a dzieci liczyły gęsi na łące."),
    ("ru", "Вечером старый рыбак рассказал детям, почему река зимой поёт подо льдом."),
    ("el", "Το μικρό καράβι έφτασε στο λιμάνι πριν από την καταιγίδα και όλοι χάρηκαν."),
    ("ja", "駅の前の小さな店では、朝早くから温かいパンとコーヒーを売っています。"),
    ("zh", "雨停了以后，孩子们跑到河边去看那座新修的桥。"),
    ("ar", "وصل القطار إلى المدينة قبل غروب الشمس بقليل."),
    ("hi", "बारिश के बाद बच्चे नदी के किनारे नई नाव देखने गए।"),
]


def phrase(rng):
    return f"the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}" if rng.random() < 0.6 else f"the {rng.choice(NOUNS)}"


def clause(rng):
    words = [phrase(rng) if rng.random() < 0.8 else person(rng)]
    if rng.random() < 0.3:
        words.append(rng.choice(ADVERBS))
    words += [rng.choice(VERBS), phrase(rng)]
    if rng.random() < 0.5:
        words.append(rng.choice(PLACES))
    return " ".join(words)


def person(rng):
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def sentence(rng, least_words=4):
    """One sentence of at least this many words."""
    text = clause(rng)
    while len(text.split()) < least_words:
        text += f" {rng.choice(LINKS)} {clause(rng)}" if rng.random() < 0.7 else f", and {clause(rng)}"
    return text[0].upper() + text[1:] + "."


def paragraph(rng, sentences):
    return " ".join(sentence(rng, rng.randint(4, 22)) for _ in range(sentences))


def title(rng):
    words = f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} {rng.choice(PLACES)}"
    return words.title() if rng.random() < 0.5 else words.capitalize()
