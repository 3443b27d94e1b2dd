"""Training data and evaluation sets from a study: the split, and the errors."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from portrayal.errors import PortrayalError

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
    reason="the extra 'neural' is not installed",
)
MODEL = "lab-dual-full"


def recipe(scenes=60, **more):
    from portrayal.lab import World
    from portrayal.lab.captioners import DEMO_CAPTIONERS
    from portrayal.lab.folder import LabRecipe

    world = World(several=0.0, androgynous=0.0, activities="drawn")
    return LabRecipe(scenes=scenes, seed=3, world=world, captioners=DEMO_CAPTIONERS[:1], **more)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    from portrayal.lab.folder import write_lab

    folder = tmp_path_factory.mktemp("from-study") / "lab"
    write_lab(recipe(image_size=64, counterfactuals=True), folder)
    return folder


def comparison(folder, manifest, methods=None, seeds=None, quick=True, recipe=None, **more):
    from portrayal.mitigate.settings import ComparisonOptions
    from portrayal.mitigate.study_data import study_comparison

    choice = ComparisonOptions(methods, seeds, quick, "cpu", recipe or {})
    return study_comparison(MODEL, folder, manifest, choice, **more)


@pytest.fixture(scope="module")
def made(study):
    return comparison(study, study / "manifest.csv", ["vanilla", "fairvlp"], 2)


def training_pixels(made):
    """The training images, identified by their pixels."""
    return {one.tobytes() for one in made.training_data().pairs.images.numpy()}


def held(made):
    (pairs,) = made.evaluation_set().text_sets.values()
    return {one.tobytes() for one in pairs.images.numpy()}


def test_a_tenth_is_held_out_by_name_and_not_trained_on(study, made):
    from portrayal.study import read_study

    names = set(made.evaluation_set().images)
    pictured = set(read_study(study).references["image_id"])
    assert len(pictured) == 60
    assert 1 <= len(names) <= 15
    assert len(made.training_data().pairs) == 60 - len(names)
    assert not training_pixels(made) & held(made)
    assert len(held(made)) == len(names)
    assert names < pictured
    assert made.evaluation_set().text_images == {"held out": made.evaluation_set().images}


def test_who_is_held_out_does_not_depend_on_the_order_or_on_the_others(tmp_path, made):
    """Fewer scenes of the same seed: each that is there is on the same side."""
    from portrayal.lab.folder import write_lab

    write_lab(recipe(40, image_size=64), tmp_path / "fewer")
    fewer = comparison(tmp_path / "fewer", None, ["vanilla"])
    before, after = set(made.evaluation_set().images), set(fewer.evaluation_set().images)
    assert 0 < len(after) < len(before)
    assert after < before
    assert training_pixels(fewer) < training_pixels(made)


def test_bias_is_measured_on_people_whose_pictures_were_not_trained_on(study, made):
    from portrayal.counterfactual.manifest import read_manifest
    from portrayal.study import read_study

    rows = read_manifest(study / "manifest.csv").instances
    asked = made.evaluation_set().instances
    assert 0 < len(asked) < len(rows) / 3
    files = {read_study(study).image_files[name].resolve() for name in made.evaluation_set().images}
    assert {one.path.resolve() for one in asked} <= files
    assert {one.group for one in asked} == {"male", "female"}
    assert made.evaluation_set().has_exact
    assert made.evaluation_set().prompts.words == {"male": "man", "female": "woman"}


def test_pictures_of_another_folder_are_all_asked_about(tmp_path, study):
    from portrayal.counterfactual.manifest import read_manifest
    from portrayal.lab.folder import write_lab

    write_lab(replace(recipe(20, image_size=64), seed=9), tmp_path / "people")
    found = comparison(study, tmp_path / "people" / "manifest.csv", ["vanilla"]).evaluation_set()
    assert len(found.instances) == len(read_manifest(tmp_path / "people" / "manifest.csv").instances)
    assert not found.has_exact


def test_every_picture_has_five_captions(study, made):
    from portrayal.mitigate.study_data import _captions
    from portrayal.study import read_study

    pairs = made.training_data().pairs
    assert pairs.captions.shape[:2] == (len(pairs), 5)
    assert pairs.sentences.equal(pairs.captions)
    assert (
        made.evaluation_set().pool.image_of_caption.tolist()
        == np.repeat(np.arange(len(made.evaluation_set().images)), 5).tolist()
    )
    whole = read_study(study)
    few = replace(whole, references=whole.references.group_by("image_id", maintain_order=True).head(2))
    one = sorted(few.image_files)[0]
    said = few.references.filter(few.references["image_id"] == one)["caption"].to_list()
    assert len(said) == 2
    assert _captions(few, [one], made.model) == [[*said, *said, said[0]]]


def test_a_stranger_cannot_command_a_tokenizer(study, made):
    import polars as pl

    from portrayal.mitigate.study_data import _captions
    from portrayal.study import read_study

    whole = read_study(study)
    one = sorted(whole.image_files)[0]
    hostile = pl.DataFrame({"image_id": [one], "caption": ["a [MASK] man [SEP] is <mask> here"]})
    assert _captions(replace(whole, references=hostile), [one], made.model) == [
        ["a MASK man SEP is mask here"] * 5
    ]


def test_settings_and_data_stand_in_what_is_kept(study, made, tmp_path):
    from portrayal.mitigate.methods import find_method

    assert [method.name for method in made.methods] == ["vanilla", "fairvlp"]
    assert made.seeds == (0, 1)
    assert made.recipe.n_captioned == made.recipe.batch_size == 16
    assert made.recipe.learning_rate == 1e-4
    vanilla = find_method("vanilla")
    usual = made.plan(vanilla, 0).digest
    assert comparison(study, None, ["vanilla"]).plan(vanilla, 0).digest == usual
    others = [
        comparison(study, None, ["vanilla"], groups=["female", "male"]),
        comparison(study, None, ["vanilla"], lexicon="gender-broad"),
        comparison(study, None, ["vanilla"], recipe={"steps": 7}),
    ]
    assert len({usual, *(one.plan(vanilla, 0).digest for one in others)}) == 4
    first, second = made, comparison(study, None, ["vanilla"])
    assert first.scores_file(tmp_path, vanilla, 0) != second.scores_file(
        tmp_path, vanilla, 0
    )  # another evaluation set


def test_groups_and_words_may_be_others(study):
    found = comparison(study, None, ["vanilla"], groups=["female", "male"]).training_data()
    usual = comparison(study, None, ["vanilla"]).training_data()
    assert found.prompt.words == tuple(reversed(usual.prompt.words))
    named = usual.captions.group != 2
    assert named.any()
    assert (found.captions.group[named] == 1 - usual.captions.group[named]).all()
    with pytest.raises(PortrayalError, match=r"two groups of male, female, got male, robot"):
        comparison(study, None, groups=["male", "robot"])
    with pytest.raises(PortrayalError, match="two groups of male, female, got male, male"):
        comparison(study, None, groups=["male", "male"])
    with pytest.raises(PortrayalError, match="Unknown lexicon"):
        comparison(study, None, lexicon="genders")


def test_what_methods_are_compared_unless_they_are_named(study):
    from portrayal.mitigate.methods import METHODS

    quick = comparison(study, None)
    assert [method.name for method in quick.methods] == ["vanilla", "gender-swap", "fairvlp"]
    full = comparison(study, None, quick=False)
    assert [method.name for method in full.methods] == [name for name in METHODS if name != "image-swap"]
    twice = comparison(study, None, ["vanilla", "fairvlp", "vanilla"])
    assert [method.name for method in twice.methods] == ["vanilla", "fairvlp"]


def test_given_pictures_that_are_not_there_are_refused_before_anything_is_trained(study, tmp_path):
    with pytest.raises(PortrayalError, match="'image-swap' needs the counterfactual of every image"):
        comparison(study, None, ["vanilla", "image-swap"])
    with pytest.raises(PortrayalError, match="none of vanilla, fairvlp uses them: expected image-swap"):
        comparison(study, None, ["vanilla", "fairvlp"], counterfactuals=study / "counterfactuals")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PortrayalError, match=r"names of the study's \(such as scene-.*png\), found none of"):
        comparison(study, None, ["image-swap"], counterfactuals=tmp_path / "empty")
    with pytest.raises(PortrayalError, match="a person of the other group, found the study's own"):
        comparison(study, None, ["image-swap"], counterfactuals=study / "images")
    with pytest.raises(PortrayalError, match=r"must return an image \(PIL.Image\). Got str for scene-"):
        comparison(study, None, ["image-swap"], counterfactuals=lambda picture: "a woman")


def test_other_pictures_of_a_folder_are_taken_by_name_and_some_may_lack(study, tmp_path, made):
    import shutil

    from portrayal.lab.images import draw
    from portrayal.lab.world import counterfactual_scene, make_scenes

    whole = comparison(study, None, ["vanilla", "image-swap"], counterfactuals=study / "counterfactuals")
    drawn = {scene.identifier: scene for scene in make_scenes(60, 3, recipe().world)}
    names = [name for name in sorted(drawn) if name not in set(made.evaluation_set().images)]
    found = whole.training_data()
    assert len(names) == len(found.pairs) == len(found.counterfactuals)
    assert found.has_counterfactual.all()
    for number in (0, 7, len(names) - 1):
        other = np.asarray(draw(counterfactual_scene(drawn[names[number]]), 64))
        assert (found.counterfactuals[number].numpy() == other).all()
    shutil.copytree(study / "counterfactuals", tmp_path / "some")
    (tmp_path / "some" / f"{names[3]}.png").unlink()
    few = comparison(study, None, ["image-swap"], counterfactuals=tmp_path / "some")
    assert few.training_data().has_counterfactual.tolist() == [number != 3 for number in range(len(names))]
    assert few.training_data().counterfactuals[3].equal(few.training_data().pairs.images[3])
    assert few.data != whole.data != made.data  # another remedy
    assert f"{len(names) - 1} of them with counterfactuals" in few.data
    assert [
        method.name for method in comparison(study, None, counterfactuals=study / "counterfactuals").methods
    ][-1] == "image-swap"


def test_a_translator_may_write_another_kind_of_file(tmp_path):
    """Ids that hold an ending, as where a study names its files, and pictures that are PNG for JPEG."""
    from PIL import Image

    from portrayal.mitigate.study_images import load_counterfactuals

    pictures = {f"p{n}.jpg": tmp_path / "own" / f"p{n}.jpg" for n in range(3)}
    for folder in ("own", "swapped"):
        (tmp_path / folder).mkdir()
    for n, file in enumerate(pictures.values()):
        Image.new("RGB", (8, 8), (10 * n, 0, 0)).save(file)
        if n:
            Image.new("RGB", (8, 8), (0, 100 * n, 0)).save(tmp_path / "swapped" / f"p{n}.png")
    found = load_counterfactuals(str(tmp_path / "swapped"), pictures, list(pictures), 8)
    assert found.available.tolist() == [False, True, True]
    assert found.pixels[:, 0, 0, 1].tolist() == [0, 100, 200]
    assert [file.name for file in found.files] == ["p1.png", "p2.png"]
    with pytest.raises(PortrayalError, match="expected a folder of images, found none"):
        load_counterfactuals(tmp_path / "nowhere", pictures, list(pictures), 8)


def test_bias_is_not_measured_on_other_pictures_that_were_training_pixels(study):
    """A manifest that lists every pair both ways."""
    from portrayal.study.image_ids import find_image_files

    head, *lines = (study / "manifest.csv").read_text().splitlines()
    turned = []
    for line in lines:
        image, group, concept, kind, other = line.split(",")
        turned.append(f"{other},{'male' if group == 'female' else 'female'},{concept},{kind},{image}")
    file = study / "both.csv"
    file.write_text("\n".join([head, *lines, *turned]) + "\n")
    found = comparison(study, file, ["vanilla", "image-swap"], counterfactuals=study / "counterfactuals")
    file.unlink()
    held = set(found.evaluation_set().images)
    fresh = {
        find_image_files(study / folder)[name].resolve()
        for folder in ("images", "counterfactuals")
        for name in held
    }
    asked = {one.path.resolve() for one in found.evaluation_set().instances}
    assert asked <= fresh
    assert len(asked) > len(held)


def test_an_image_translator_makes_the_other_pictures(study, tmp_path):
    """Any function from picture to picture: here the mirrored one."""
    from PIL import ImageOps

    from portrayal.mitigate.compare import run_comparison

    made = comparison(
        study, None, ["image-swap"], 1, recipe={"steps": 1, "batch_size": 4}, counterfactuals=ImageOps.mirror
    )
    found = made.training_data()
    assert found.counterfactuals.equal(found.pairs.images.flip(2))
    assert found.has_counterfactual.all()
    same = comparison(study, None, ["image-swap"], counterfactuals=ImageOps.flip)
    assert same.data != made.data  # what it makes, not its name, says which it is
    ((method, _, scores),) = run_comparison(made, tmp_path / "out")
    assert method.name == "image-swap"
    assert scores.masked_words["held out"].n_masked.sum() > 0


def test_a_manifest_of_one_group_is_refused(study, tmp_path):
    lines = (study / "manifest.csv").read_text().splitlines()
    for what, kept in (
        ("", [line for line in lines if ",female," not in line]),
        (" in an image that is not a training image", None),
    ):
        if kept is None:  # women are there, but all in pictures that are learnt from
            names = set(comparison(study, None).evaluation_set().images)
            kept = [
                line for line in lines if ",female," not in line or not any(name in line for name in names)
            ]
        file = study / "some.csv"  # pictures are named from the manifest's folder
        file.write_text("\n".join(kept) + "\n")
        with pytest.raises(PortrayalError, match=f"shows nobody of the group 'female'{what}: bias"):
            comparison(study, file)
        file.unlink()


def test_a_study_without_pictures_is_refused(tmp_path):
    from portrayal.lab.folder import write_lab

    write_lab(replace(recipe(20)), tmp_path / "words")
    with pytest.raises(
        PortrayalError,
        match="expected images with references for training and to hold out, found 0 in all",
    ):
        comparison(tmp_path / "words", None)
    with pytest.raises(PortrayalError):
        comparison(tmp_path / "nothing", None)


def test_texts_that_name_nobody_are_refused(study, tmp_path):
    from portrayal.lexicon import load_lexicon

    lexicon = tmp_path / "cats.toml"
    lexicon.write_text(
        'name = "cats"\n[groups]\ntom = ["tomcat"]\nqueen = ["queen"]\n[swap]\ntomcat = "queen"\n'
    )
    assert load_lexicon(lexicon).groups
    with pytest.raises(PortrayalError, match="No text names exactly one of tom and queen"):
        comparison(study, None, lexicon=str(lexicon)).training_data()


def test_a_model_without_a_matching_head_is_compared_without_searching(study, tmp_path):
    """A ViLT as it is published fills masks and matches nothing: it is not fitted to a search that it cannot do."""
    from dataclasses import replace as change

    from portrayal.mitigate.compare import run_comparison
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single import SingleNetwork, build_vilt

    usual = comparison(study, None, ["vanilla"], 1, recipe={"steps": 1, "batch_size": 2})
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    inner = build_vilt(**small, image_size=64, patch_size=16, vocab_size=len(usual.model.tokenizer))
    alone = TorchMaskedVLM("vilt", SingleNetwork(inner, square=True), usual.model.tokenizer)
    evaluation_set = change(usual.evaluation_set(), pool=None)
    ((_, _, scores),) = run_comparison(
        change(usual, model=alone, evaluation_set=lambda: evaluation_set), tmp_path / "out"
    )
    assert dict(scores.retrieval) == {}
    assert scores.masked_words["held out"].n_masked.sum() > 0
