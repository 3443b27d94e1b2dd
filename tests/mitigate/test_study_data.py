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


def recipe(scenes=60, **options):
    from portrayal.lab import World
    from portrayal.lab.captioners import DEMO_CAPTIONERS
    from portrayal.lab.folder import LabRecipe

    world = World(several=0.0, androgynous=0.0, activities="drawn")
    return LabRecipe(scenes=scenes, seed=3, world=world, captioners=DEMO_CAPTIONERS[:1], **options)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    from portrayal.lab.folder import write_lab

    folder = tmp_path_factory.mktemp("from-study") / "lab"
    write_lab(recipe(image_size=64, counterfactuals=True), folder)
    return folder


def make_comparison(folder, manifest, methods=None, seeds=None, quick=True, recipe=None, **arguments):
    from portrayal.mitigate.settings import ComparisonOptions
    from portrayal.mitigate.study_data import study_comparison

    options = ComparisonOptions(methods, seeds, quick, "cpu", recipe or {})
    return study_comparison(MODEL, folder, manifest, options, **arguments)


@pytest.fixture(scope="module")
def comparison(study):
    return make_comparison(study, study / "manifest.csv", ["vanilla", "fairvlp"], 2)


def training_pixels(comparison):
    """The training images, identified by their pixels."""
    return {image.tobytes() for image in comparison.training_data().pairs.images.numpy()}


def held_out_pixels(comparison):
    (pairs,) = comparison.evaluation_set().text_sets.values()
    return {image.tobytes() for image in pairs.images.numpy()}


def test_a_tenth_is_held_out_by_name_and_not_trained_on(study, comparison):
    from portrayal.study import read_study

    held_out = set(comparison.evaluation_set().images)
    study_images = set(read_study(study).references["image_id"])
    assert len(study_images) == 60
    assert 1 <= len(held_out) <= 15
    assert len(comparison.training_data().pairs) == 60 - len(held_out)
    assert not training_pixels(comparison) & held_out_pixels(comparison)
    assert len(held_out_pixels(comparison)) == len(held_out)
    assert held_out < study_images
    assert comparison.evaluation_set().text_images == {"held out": comparison.evaluation_set().images}


def test_the_held_out_images_do_not_depend_on_the_other_images(tmp_path, comparison):
    """With fewer scenes of the same seed, each scene stays in the same split."""
    from portrayal.lab.folder import write_lab

    write_lab(recipe(40, image_size=64), tmp_path / "fewer")
    fewer = make_comparison(tmp_path / "fewer", None, ["vanilla"])
    held_out, held_out_of_fewer = set(comparison.evaluation_set().images), set(fewer.evaluation_set().images)
    assert 0 < len(held_out_of_fewer) < len(held_out)
    assert held_out_of_fewer < held_out
    assert training_pixels(fewer) < training_pixels(comparison)


def test_bias_is_measured_on_images_outside_the_training_data(study, comparison):
    from portrayal.counterfactual.manifest import read_manifest
    from portrayal.study import read_study

    rows = read_manifest(study / "manifest.csv").instances
    instances = comparison.evaluation_set().instances
    assert 0 < len(instances) < len(rows) / 3
    files = {read_study(study).image_files[name].resolve() for name in comparison.evaluation_set().images}
    assert {instance.path.resolve() for instance in instances} <= files
    assert {instance.group for instance in instances} == {"male", "female"}
    assert comparison.evaluation_set().has_exact
    assert comparison.evaluation_set().prompts.words == {"male": "man", "female": "woman"}


def test_all_instances_of_another_folder_are_used(tmp_path, study):
    from portrayal.counterfactual.manifest import read_manifest
    from portrayal.lab.folder import write_lab

    write_lab(replace(recipe(20, image_size=64), seed=9), tmp_path / "people")
    evaluation_set = make_comparison(
        study, tmp_path / "people" / "manifest.csv", ["vanilla"]
    ).evaluation_set()
    assert len(evaluation_set.instances) == len(read_manifest(tmp_path / "people" / "manifest.csv").instances)
    assert not evaluation_set.has_exact


def test_every_image_has_five_captions(study, comparison):
    from portrayal.mitigate.study_data import _captions
    from portrayal.study import read_study

    pairs = comparison.training_data().pairs
    assert pairs.captions.shape[:2] == (len(pairs), 5)
    assert pairs.sentences.equal(pairs.captions)
    assert (
        comparison.evaluation_set().pool.image_of_caption.tolist()
        == np.repeat(np.arange(len(comparison.evaluation_set().images)), 5).tolist()
    )
    full_study = read_study(study)
    reduced_study = replace(
        full_study, references=full_study.references.group_by("image_id", maintain_order=True).head(2)
    )
    image = sorted(reduced_study.image_files)[0]
    captions = reduced_study.references.filter(reduced_study.references["image_id"] == image)[
        "caption"
    ].to_list()
    assert len(captions) == 2
    assert _captions(reduced_study, [image], comparison.model) == [[*captions, *captions, captions[0]]]


def test_special_tokens_in_captions_are_plain_text(study, comparison):
    import polars as pl

    from portrayal.mitigate.study_data import _captions
    from portrayal.study import read_study

    full_study = read_study(study)
    image = sorted(full_study.image_files)[0]
    hostile_references = pl.DataFrame({"image_id": [image], "caption": ["a [MASK] man [SEP] is <mask> here"]})
    assert _captions(replace(full_study, references=hostile_references), [image], comparison.model) == [
        ["a MASK man SEP is mask here"] * 5
    ]


def test_digests_depend_on_settings_and_data(study, comparison, tmp_path):
    from portrayal.mitigate.methods import find_method

    assert [method.name for method in comparison.methods] == ["vanilla", "fairvlp"]
    assert comparison.seeds == (0, 1)
    assert comparison.recipe.n_captioned == comparison.recipe.batch_size == 16
    assert comparison.recipe.learning_rate == 1e-4
    vanilla = find_method("vanilla")
    digest = comparison.plan(vanilla, 0).digest
    assert make_comparison(study, None, ["vanilla"]).plan(vanilla, 0).digest == digest
    other_comparisons = [
        make_comparison(study, None, ["vanilla"], groups=["female", "male"]),
        make_comparison(study, None, ["vanilla"], lexicon="gender-broad"),
        make_comparison(study, None, ["vanilla"], recipe={"steps": 7}),
    ]
    assert len({digest, *(other.plan(vanilla, 0).digest for other in other_comparisons)}) == 4
    with_instances, without_instances = comparison, make_comparison(study, None, ["vanilla"])
    assert with_instances.scores_file(tmp_path, vanilla, 0) != without_instances.scores_file(
        tmp_path, vanilla, 0
    )  # another evaluation set


def test_groups_and_lexicon_can_be_chosen(study):
    swapped_data = make_comparison(study, None, ["vanilla"], groups=["female", "male"]).training_data()
    default_data = make_comparison(study, None, ["vanilla"]).training_data()
    assert swapped_data.prompt.words == tuple(reversed(default_data.prompt.words))
    named = default_data.captions.group != 2
    assert named.any()
    assert (swapped_data.captions.group[named] == 1 - default_data.captions.group[named]).all()
    with pytest.raises(PortrayalError, match=r"two groups of male, female, got male, robot"):
        make_comparison(study, None, groups=["male", "robot"])
    with pytest.raises(PortrayalError, match="two groups of male, female, got male, male"):
        make_comparison(study, None, groups=["male", "male"])
    with pytest.raises(PortrayalError, match="Unknown lexicon"):
        make_comparison(study, None, lexicon="genders")


def test_default_methods(study):
    from portrayal.mitigate.methods import METHODS

    quick = make_comparison(study, None)
    assert [method.name for method in quick.methods] == ["vanilla", "gender-swap", "fairvlp"]
    full = make_comparison(study, None, quick=False)
    assert [method.name for method in full.methods] == [name for name in METHODS if name != "image-swap"]
    repeated = make_comparison(study, None, ["vanilla", "fairvlp", "vanilla"])
    assert [method.name for method in repeated.methods] == ["vanilla", "fairvlp"]


def test_missing_counterfactual_images_are_refused_before_training(study, tmp_path):
    with pytest.raises(PortrayalError, match="'image-swap' needs the counterfactual of every image"):
        make_comparison(study, None, ["vanilla", "image-swap"])
    with pytest.raises(PortrayalError, match="none of vanilla, fairvlp uses them: expected image-swap"):
        make_comparison(study, None, ["vanilla", "fairvlp"], counterfactuals=study / "counterfactuals")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PortrayalError, match=r"names of the study's \(such as scene-.*png\), found none of"):
        make_comparison(study, None, ["image-swap"], counterfactuals=tmp_path / "empty")
    with pytest.raises(PortrayalError, match="a person of the other group, found the study's own"):
        make_comparison(study, None, ["image-swap"], counterfactuals=study / "images")
    with pytest.raises(PortrayalError, match=r"must return an image \(PIL.Image\). Got str for scene-"):
        make_comparison(study, None, ["image-swap"], counterfactuals=lambda image: "a woman")


def test_counterfactual_images_of_a_folder_are_matched_by_name_and_may_be_incomplete(
    study, tmp_path, comparison
):
    import shutil

    from portrayal.lab.images import draw
    from portrayal.lab.world import counterfactual_scene, make_scenes

    complete = make_comparison(
        study, None, ["vanilla", "image-swap"], counterfactuals=study / "counterfactuals"
    )
    scene_by_id = {scene.identifier: scene for scene in make_scenes(60, 3, recipe().world)}
    training_images = [
        name for name in sorted(scene_by_id) if name not in set(comparison.evaluation_set().images)
    ]
    training_data = complete.training_data()
    assert len(training_images) == len(training_data.pairs) == len(training_data.counterfactuals)
    assert training_data.has_counterfactual.all()
    for index in (0, 7, len(training_images) - 1):
        expected = np.asarray(draw(counterfactual_scene(scene_by_id[training_images[index]]), 64))
        assert (training_data.counterfactuals[index].numpy() == expected).all()
    shutil.copytree(study / "counterfactuals", tmp_path / "some")
    (tmp_path / "some" / f"{training_images[3]}.png").unlink()
    incomplete = make_comparison(study, None, ["image-swap"], counterfactuals=tmp_path / "some")
    assert incomplete.training_data().has_counterfactual.tolist() == [
        index != 3 for index in range(len(training_images))
    ]
    assert incomplete.training_data().counterfactuals[3].equal(incomplete.training_data().pairs.images[3])
    assert incomplete.data != complete.data != comparison.data  # other training data
    assert f"{len(training_images) - 1} of them with counterfactuals" in incomplete.data
    assert [
        method.name
        for method in make_comparison(study, None, counterfactuals=study / "counterfactuals").methods
    ][-1] == "image-swap"


def test_counterfactual_images_may_have_another_file_format(tmp_path):
    """Image ids may include a file extension, and JPEG images may have PNG counterfactuals."""
    from PIL import Image

    from portrayal.mitigate.study_images import load_counterfactuals

    image_files = {f"p{n}.jpg": tmp_path / "own" / f"p{n}.jpg" for n in range(3)}
    for folder in ("own", "swapped"):
        (tmp_path / folder).mkdir()
    for n, file in enumerate(image_files.values()):
        Image.new("RGB", (8, 8), (10 * n, 0, 0)).save(file)
        if n:
            Image.new("RGB", (8, 8), (0, 100 * n, 0)).save(tmp_path / "swapped" / f"p{n}.png")
    counterfactuals = load_counterfactuals(str(tmp_path / "swapped"), image_files, list(image_files), 8)
    assert counterfactuals.available.tolist() == [False, True, True]
    assert counterfactuals.pixels[:, 0, 0, 1].tolist() == [0, 100, 200]
    assert [file.name for file in counterfactuals.files] == ["p1.png", "p2.png"]
    with pytest.raises(PortrayalError, match="expected a folder of images, found none"):
        load_counterfactuals(tmp_path / "nowhere", image_files, list(image_files), 8)


def test_bias_is_not_measured_on_counterfactual_images_of_the_training_data(study):
    """A manifest that lists every pair both ways."""
    from portrayal.study.image_ids import find_image_files

    head, *lines = (study / "manifest.csv").read_text().splitlines()
    reversed_lines = []
    for line in lines:
        image, group, concept, kind, counterfactual = line.split(",")
        reversed_lines.append(
            f"{counterfactual},{'male' if group == 'female' else 'female'},{concept},{kind},{image}"
        )
    manifest = study / "both.csv"
    manifest.write_text("\n".join([head, *lines, *reversed_lines]) + "\n")
    image_swap = make_comparison(
        study, manifest, ["vanilla", "image-swap"], counterfactuals=study / "counterfactuals"
    )
    manifest.unlink()
    held_out = set(image_swap.evaluation_set().images)
    unused_files = {
        find_image_files(study / folder)[name].resolve()
        for folder in ("images", "counterfactuals")
        for name in held_out
    }
    instance_files = {instance.path.resolve() for instance in image_swap.evaluation_set().instances}
    assert instance_files <= unused_files
    assert len(instance_files) > len(held_out)


def test_an_image_translator_makes_the_counterfactual_images(study, tmp_path):
    """Any function from image to image can be the translator: here one that mirrors."""
    from PIL import ImageOps

    from portrayal.mitigate.compare import run_comparison

    mirrored = make_comparison(
        study, None, ["image-swap"], 1, recipe={"steps": 1, "batch_size": 4}, counterfactuals=ImageOps.mirror
    )
    training_data = mirrored.training_data()
    assert training_data.counterfactuals.equal(training_data.pairs.images.flip(2))
    assert training_data.has_counterfactual.all()
    flipped = make_comparison(study, None, ["image-swap"], counterfactuals=ImageOps.flip)
    assert flipped.data != mirrored.data  # the output of the translator, not its name, identifies it
    ((method, _, scores),) = run_comparison(mirrored, tmp_path / "out")
    assert method.name == "image-swap"
    assert scores.masked_words["held out"].n_masked.sum() > 0


def test_a_manifest_of_one_group_is_refused(study, tmp_path):
    lines = (study / "manifest.csv").read_text().splitlines()
    for where, kept_lines in (
        ("", [line for line in lines if ",female," not in line]),
        (" in an image that is not a training image", None),
    ):
        if kept_lines is None:  # women are shown, but only in training images
            held_out = set(make_comparison(study, None).evaluation_set().images)
            kept_lines = [
                line
                for line in lines
                if ",female," not in line or not any(image in line for image in held_out)
            ]
        manifest = study / "some.csv"  # image paths are relative to the manifest's folder
        manifest.write_text("\n".join(kept_lines) + "\n")
        with pytest.raises(PortrayalError, match=f"shows nobody of the group 'female'{where}: bias"):
            make_comparison(study, manifest)
        manifest.unlink()


def test_a_study_without_images_is_refused(tmp_path):
    from portrayal.lab.folder import write_lab

    write_lab(replace(recipe(20)), tmp_path / "words")
    with pytest.raises(
        PortrayalError,
        match="expected images with references for training and to hold out, found 0 in all",
    ):
        make_comparison(tmp_path / "words", None)
    with pytest.raises(PortrayalError):
        make_comparison(tmp_path / "nothing", None)


def test_texts_that_name_nobody_are_refused(study, tmp_path):
    from portrayal.lexicon import load_lexicon

    lexicon = tmp_path / "cats.toml"
    lexicon.write_text(
        'name = "cats"\n[groups]\ntom = ["tomcat"]\nqueen = ["queen"]\n[swap]\ntomcat = "queen"\n'
    )
    assert load_lexicon(lexicon).groups
    with pytest.raises(PortrayalError, match="No text names exactly one of tom and queen"):
        make_comparison(study, None, lexicon=str(lexicon)).training_data()


def test_a_model_without_a_matching_head_is_compared_without_retrieval(study, tmp_path):
    """A published ViLT is a masked model without a matching head: it is not fine-tuned for retrieval."""
    from dataclasses import replace as change

    from portrayal.mitigate.compare import run_comparison
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single_stream import SingleNetwork, build_vilt

    reference = make_comparison(study, None, ["vanilla"], 1, recipe={"steps": 1, "batch_size": 2})
    vilt_config = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    vilt = build_vilt(**vilt_config, image_size=64, patch_size=16, vocab_size=len(reference.model.tokenizer))
    model_without_head = TorchMaskedVLM("vilt", SingleNetwork(vilt, square=True), reference.model.tokenizer)
    evaluation_set = change(reference.evaluation_set(), pool=None)
    ((_, _, scores),) = run_comparison(
        change(reference, model=model_without_head, evaluation_set=lambda: evaluation_set), tmp_path / "out"
    )
    assert dict(scores.retrieval) == {}
    assert scores.masked_words["held out"].n_masked.sum() > 0
