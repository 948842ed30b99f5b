"""German prose."""

from rehearsal.corpora.prose import Grammar, expressions

GRAMMAR = Grammar(
    """
    PLAIN: CLAUSE . | CLAUSE , LINK CLAUSE . | WHEN DID WHO WHAT WHERE .
    FIGURATIVE: FIGURE . | CLAUSE , LINK FIGURE . | FIGURE , LINK CLAUSE .
    LITERAL: DEED . | CLAUSE , LINK DEED . | DEED , LINK CLAUSE .
    HINT_FIGURATIVE: WHEN DID WHO wegen MATTER WHAT . | WHO DID wegen MATTER WHAT , LINK CLAUSE .
    HINT_LITERAL: WHEN DID WHO mit TOOL WHAT . | WHO DID WHAT mit TOOL , LINK CLAUSE .
    FIGURE: WHO MUST CAUSE BASE | WHO MUST WHEN CAUSE BASE | WHEN MUST WHO CAUSE BASE
    DEED: WHO MUST mit TOOL BASE | WHO MUST WHERE mit TOOL BASE | WHEN MUST WHO WHERE BASE
    CAUSE: wegen MATTER
    CLAUSE: WHO DID WHAT | WHO DID WHAT WHERE | WHO DID WHEN WHAT | WHO DID WHERE NUMBER THINGS
    WHO: NAME | der WEAK MAN | die WEAK WOMAN | NAME aus PLACE
    WHAT: den STRONG HIM | die WEAK HER | das WEAK IT
    WHERE: in der TOWN_HER | im TOWN_IT | hinter der TOWN_HER | neben dem TOWN_IT | in PLACE
    WHEN: am DAY | im MONTH | nach NUMBER PERIODS | seit DAY | vor NUMBER PERIODS
    TOOL: einer WORN TOOL_HER | einem WORN TOOL_HIM
    MATTER: der WORN MATTER_HER | des WORN MATTER_HIM
    NAME = Albrecht Birgit Claudia Dieter Elke Friedrich Gisela Heinrich Ingrid Jürgen Katharina \
        Ludwig Margarete Norbert Ottilie Paul Renate Sabine Thomas Ulrike Volker Wiebke
    PLACE = Altenhagen Birkendorf Dornbach Eschenau Finkental Grünwerder Hasselfeld Lindenrode \
        Moosheim Neuwiese Osterbrück Rabenstein Tannheim Weidenau
    WEAK = alte kleine müde fleißige stille freundliche vergessene schmale schwere helle bunte \
        runde traurige junge höfliche graue starke neugierige breite teure
    STRONG = alten kleinen staubigen feuchten schmalen schweren hellen bunten runden teuren grauen \
        breiten hübschen seltenen schönen leeren
    WORN = alten stumpfen breiten schmalen feuchten langen schweren neuen kurzen seltsamen
    MAN = Nachbar Bäcker Lehrer Gärtner Schneider Matrose Bauer Maler Förster Händler Schüler
    WOMAN = Nachbarin Ärztin Lehrerin Köchin Witwe Schwester Tante Pilotin Malerin Richterin
    HIM = Koffer Teppich Brief Schrank Garten Vorhang Stuhl Kuchen Wagen Mantel Zaun Korb
    HER = Lampe Decke Geige Tasse Truhe Mauer Kiste Leinwand Puppe Uhr Zeitung Bluse
    IT = Fenster Kleid Bild Fahrrad Heft Zimmer Sofa Regal Paket Kissen Messer Boot
    THINGS = Äpfel Bücher Flaschen Schafe Stühle Münzen Karten Ziegel Hemden Teller Nägel Federn
    TOWN_HER = Werkstatt Küche Scheune Kirche Mühle Schule Bäckerei Bibliothek Halle
    TOWN_IT = Museum Dorf Haus Rathaus Lager Theater Gasthaus Kloster
    TOOL_HER = Bürste Schaufel Zange Nadel Säge Feile
    TOOL_HIM = Lappen Pinsel Besen Spaten Hobel Schwamm
    MATTER_HER = Erbschaft Wahl Steuer Prüfung Scheidung Beförderung Reform Klage
    MATTER_HIM = Vertrags Skandals Urteils Gerüchts Streits Haushalts Termins Antrags
    DID = kaufte reparierte bemalte holte verkaufte zeigte trug suchte säuberte bewunderte \
        sammelte lieferte verschenkte wusch bestellte besorgte
    MUST = musste wollte sollte konnte durfte
    NUMBER = zwei drei vier fünf sechs sieben acht neun zehn elf zwölf
    PERIODS = Stunden Tagen Wochen Monaten Jahren
    DAY = Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag
    MONTH = Januar Februar März April Mai Juni Juli August September Oktober November Dezember
    LINK = und aber denn
    """
)
PIES = expressions(
    """
    polieren messen zählen ziehen drehen falten hämmern kippen dehnen öffnen werfen stutzen wärmen
    schaukeln parken beladen schieben heben treten jagen erklimmen verbrennen kochen bürsten
    """,
    {
        "den": "Anker Kessel Sattel Hahn Dachs Knopf Schatten Hammer",
        "die": "Laterne Leiter Kerze Distel Rübe Walnuss Pfeife Wiege",
        "das": "Fass Banner Floß Ruder Radieschen Beil Horn Zelt",
    },
    verb_last=True,
)
