"""Words that decide whether something is a name or a secret: first names, and what is neither."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIRST_NAMES = _words(
    """aaron abdul adam adrian ahmed aisha akira alan albert alex alexander alexandra alice alicia
    alina ali amanda amelia amir amy ana anastasia andrea andreas andrew angela anita anja anke
    ann anna anne annika anthony antonio anton arjun arthur astrid ayesha barbara beatrice ben
    benjamin bernd bettina bill bob boris brandon brenda brian bruno camille carl carla carlos
    carmen carol caroline catherine cecilia charles charlotte chen chiara chloe chris christian
    christina christine christoph christopher claire clara claudia claus colin connor craig
    cynthia daniel daniela david deborah deepak dennis derek diana diego dieter dirk dmitri
    dominik donald donna doris dorothy douglas edith eduardo edward elena eleanor elias
    elisabeth elizabeth ella ellen emil emilia emily emma eric erik erika esther eva evelyn
    fabian fatima felix fernando fiona florian francesca francesco francis frank frederik
    friedrich gabriel gabriela gary george georg gerald gerhard giulia giovanni grace greg
    gregory greta gudrun guido gustav hannah hans harald harry hassan heather heidi heike
    heinrich heinz helen helena helga henrik henry hiroshi hugo ian ibrahim igor ingrid irene
    iris isabel isabella ivan jack jacob jakob james jan jana jane janet jason javier jean jeff
    jeffrey jennifer jens jeremy jessica jim jin joan joanna joe johannes john johanna jonas
    jonathan jorge jose josef joseph joshua joyce juan judith julia julian juliane julie jun
    jurgen jürgen karen karin karl katarina kate katharina kathleen kathryn katja keiko keith
    kelly kenji kenneth kerstin kevin kim klaus kristin kurt kyle lara larry lars laura lauren
    lea leila lena leo leon leonie liam lisa linda lorenzo louis louise luca lucas lucia lucy
    luis luisa lukas luke magdalena manfred manuel marcel marco marcus margaret maria marie
    marina mario marion mark markus marta martha martin martina mary mateo matteo matthew
    matthias maurice max maximilian mei melanie melissa mia michael michaela michel michelle
    miguel mike mila miriam mohamed mohammed monica monika moritz nadia nadine nancy natalia
    natalie nathan neha nicholas nick nicola nicolas nicole niels nikolai nina noah nora norbert
    olaf oleg olga oliver olivia omar oscar otto pablo pamela patricia patrick paul paula pavel
    pedro peter petra philip philipp pierre priya rachel rafael rahul rainer raj ralf ralph
    ramon raphael raymond rebecca renate ricardo richard rita robert roberto robin roger roland
    rolf roman ronald rosa rose ruth ryan sabine sabrina sally sam samantha samuel sandra sanjay
    sara sarah scott sean sebastian sergei sharon shirley silvia simon simone sofia sonia sophia
    sophie stefan stefanie stephan stephanie stephen steve steven stuart sunil susan susanne
    suzanne sven svetlana sylvia takashi tamara tanja tanya tatiana teresa theo theodor theresa
    thomas tim timothy tina tobias tom tomas tony torsten tracy ulrich ulrike ursula ute uwe
    valentina vanessa vera veronica victor victoria vijay vincent viktor virginia vladimir
    walter wei werner wilhelm william wolfgang xavier yan yasmin yuki yusuf yvonne zoe"""
)
"""First names that, with a capitalised word after them, are taken for a person's."""


NOBODY = _words(
    """python java javascript typescript rust ruby react angular django flask linux windows ubuntu
    debian docker kubernetes postgres postgresql sqlite redis github gitlab google amazon azure
    microsoft apple claude cursor gemini codex copilot anthropic openai visual studio code error
    exception class test tests file function method true false none null the this that when what
    where which while and but not for with from http https json html css api sql monday tuesday
    wednesday thursday friday saturday sunday january february march april may june july august
    september october november december english german french spanish hello dear thanks thank
    please note todo fixme pull request merge branch main master readme changelog license apache
    node npm yarn jenkins maven gradle spring boot kafka spark hadoop airflow terraform ansible
    pandas numpy pytest jest team all everyone there world support sir madam admin user users
    customer customers folks guys"""
)
"""Capitalised words that are nobody's name."""


NO_SECRET = _words(
    """is was are the not now set in it a an wrong correct required optional invalid missing empty
    expired expires stored hashed encrypted rotated leaked hidden redacted here there being used
    valid never always null none true false string str text unknown different same too weak
    strong hard-coded hardcoded read sent taken kept checked needed given passed generated
    rejected refused what that this one and or on for from by to of as at with"""
)
"""What follows `the password is` in a sentence that tells none."""
