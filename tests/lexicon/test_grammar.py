"""Content words of captions labelled by hand; the rules were also compared with spaCy's tagger."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import tokenize
from portrayal.lexicon.wordnet.grammar import Word, content_words
from portrayal.lexicon.wordnet.graph import wordnet

NET = wordnet()

# Each content word with the first letter of its part of speech.
CASES = {
    # compounds
    "two fire hydrants and three hot dogs": "fire_hydrant/n hot_dog/n",
    "a tennis racket next to a toaster oven": "tennis_racket/n toaster_oven/n",
    "a car in a parking lot by a parking meter": "car/n parking_lot/n parking_meter/n",
    "a dining table in a living room": "dining_table/n living_room/n",
    "a man holding ski poles": "man/n hold/v ski_pole/n",
    "a baseball player swinging a bat": "baseball_player/n swing/v bat/n",
    "a young man and an old woman": "young/a man/n old/a woman/n",
    "a black and white photo of a man": "black/a white/a photo/n man/n",
    "a stop sign on a street": "stop/n sign/n street/n",
    "a man drinking water": "man/n drink/v water/n",
    "people playing cards": "people/n play/v card/n",
    "a man riding horse": "man/n ride/v horse/n",
    "a baby sitting on the street": "baby/n sit/v street/n",
    "two wrist watches on a table": "wrist_watch/n table/n",
    "a bus stops at a bus stop": "bus/n stop/v bus_stop/n",
    "a woman's hat": "woman/n hat/n",
    "a can of beans next to a trash can": "can/n bean/n trash_can/n",
    "a large body of water": "large/a body_of_water/n",
    "a piece of cake": "piece/n cake/n",
    "a close up of a cat": "closeup/n cat/n",
    # nouns or verbs
    "a man is skiing": "man/n ski/v",
    "a man skis down the hill": "man/n ski/v hill/n",
    "a man with skis and poles": "man/n ski/n pole/n",
    "a man stands next to a fruit stand": "man/n stand/v fruit/n stand/n",
    "the girl sits on a bench": "girl/n sit/v bench/n",
    "a man rides a wave": "man/n ride/v wave/n",
    "a boy plays with toys": "boy/n play/v toy/n",
    "a man in shorts plays tennis": "man/n shorts/n play/v tennis/n",
    "a woman parks her car": "woman/n park/v car/n",
    "parks and gardens": "park/n garden/n",
    "two women watch tv": "woman/n watch/v tv/n",
    "people fly kites": "people/n fly/v kite/n",
    "a fly on the wall": "fly/n wall/n",
    "a plane flies over a city": "plane/n fly/v city/n",
    "three people sit and eat": "people/n sit/v eat/v",
    "a man and a woman stand by a train": "man/n woman/n stand/v train/n",
    "a herd of sheep graze": "herd/n sheep/n graze/v",
    "people crowd the street": "people/n crowd/v street/n",
    "a crowd of people": "crowd/n people/n",
    "a painting of a woman painting a fence": "painting/n woman/n paint/v fence/n",
    "two children are building a sandcastle": "child/n build/v sandcastle/n",
    "a brick building on a corner": "brick/n building/n corner/n",
    "a woman polishing her nails with nail polish": "woman/n polish/v nail/n nail_polish/n",
    "people waiting to polish the silver": "people/n wait/v polish/v silver/n",
    "a man about to hit a ball": "man/n hit/v ball/n",
    "a dog can jump": "dog/n jump/v",
    "a bear in the woods": "bear/n woods/n",
    # verbs or adjectives
    "cars parked on the street": "car/n park/v street/n",
    "a wall painted blue": "wall/n paint/v blue/a",
    "a sitting woman reads a book": "sit/v woman/n read/v book/n",
    "a street crowded with people": "street/n crowded/a people/n",
    "people open a box": "people/n open/v box/n",
    "an open door": "open/a door/n",
    # adjectives or nouns
    "a young girl": "young/a girl/n",
    "a polish sausage": "polish/a sausage/n",
    "an orange on a table": "orange/n table/n",
    "an orange cat": "orange/a cat/n",
    "an orange and white cat": "orange/a white/a cat/n",
    "the cat is orange": "cat/n be/v orange/a",
    "a male tennis player": "male/a tennis_player/n",
    "two males and a female": "male/n female/n",
    "a light blue shirt under a street light": "light/a blue/a shirt/n street/n light/n",
    "a woman in red holds a cup": "woman/n red/a hold/v cup/n",
    # left and right, back and front
    "the man on the left is looking right": "man/n left/n look/v",
    "a dog left in a car": "dog/n leave/v car/n",
    "the left hand of a man": "left/a hand/n man/n",
    "the back of a bus": "back/n bus/n",
    "a man looks back": "man/n look/v",
    # helping verbs, and those that stand for themselves
    "a man is on a board": "man/n be/v board/n",
    "the dog has a frisbee": "dog/n have/v frisbee/n",
    "a bus has been parked": "bus/n park/v",
    "people are all standing": "people/n stand/v",
    "a man does a trick": "man/n do/v trick/n",
    "a man doesn't smile": "man/n smile/v",
    "a table is set for dinner": "table/n set/v dinner/n",
    "the ball has been hit": "ball/n hit/v",
    # words without content
    "her hat and his coat": "hat/n coat/n",
    "there is a lot of food in front of them": "be/v food/n",
    "a couple of dogs": "dog/n",
    "the couple kiss": "couple/n kiss/v",
    "walking up and down": "walk/v",
    "two of the three, 3.5 and 1,000": "",
    "": "",
    # forms
    "men with broken arms and glasses": "man/n break/v arm/n glasses/n",
    "geese and knives": "goose/n knife/n",
    "glasses of wine and wine glasses": "glass/n wine/n wineglass/n",
    "james in paris": "james/n paris/n",
    "the biggest dog lies down": "big/a dog/n lie/v",
    # words that WordNet does not have
    "a selfie on a smartphone": "selfie/n smartphone/n",
    "a well-worn t-shirt": "well-worn/a t-shirt/n",
    "people kiteboarding": "people/n kiteboarding/v",
}


def format_words(words: list[Word]) -> str:
    return " ".join(f"{word.lemma.replace(' ', '_')}/{word.pos[0]}" for word in words)


@pytest.mark.parametrize("caption", CASES)
def test_by_hand(caption):
    assert format_words(content_words(tokenize(caption))) == CASES[caption]


def test_words_have_their_position_and_their_sense():
    tokens = tokenize("The two fire hydrants near a smartphone")
    hydrant, phone = content_words(tokens)
    assert hydrant == Word("fire hydrant", "noun", NET.sense("fire hydrant", "noun", 1), 2, 2)
    assert phone == Word("smartphone", "noun", None, 6, 1)


@given(
    st.lists(
        st.sampled_from(
            "a man men stands painting cut fire hydrants to is all the left orange , 's and n't".split()
        )
    )
)
def test_any_tokens_are_accepted(tokens):
    words = content_words(tokens)
    ends = [0, *(word.start + word.length for word in words)]
    assert all(end <= word.start for end, word in zip(ends, words, strict=False))
    assert ends[-1] <= len(tokens)
    assert words == content_words(tuple(tokens))


@given(st.text())
def test_any_text_is_accepted(text):
    for word in content_words(tokenize(text)):
        assert word.synset is None or word.lemma in NET.words(word.synset)


def test_real_captions(shared):
    """Nearly every noun is one WordNet has, and hardly a caption has no noun."""
    lines = (shared / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()
    captions = [tokenize(caption) for line in lines[::10] for caption in json.loads(line)["captions"]]
    words_by_caption = [content_words(tokens) for tokens in captions]
    nouns = [word for words in words_by_caption for word in words if word.pos == "noun"]
    verbs = [word for words in words_by_caption for word in words if word.pos == "verb"]
    assert sum(word.synset is not None for word in nouns) > 0.985 * len(nouns)
    assert sum(any(word.pos == "noun" for word in words) for words in words_by_caption) > 0.998 * len(
        words_by_caption
    )
    assert 3.2 < len(nouns) / len(words_by_caption) < 4.2
    assert 0.8 < len(verbs) / len(words_by_caption) < 1.6
