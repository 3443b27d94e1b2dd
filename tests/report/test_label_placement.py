"""Placement of point labels: no overlap if there is space, and no label outside the plot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portrayal.report.charts import concept_specs, tradeoff
from portrayal.report.charts.label_placement import Box, place_labels

SIZE = (420.0, 280.0)
STYLE = tradeoff.LABEL_STYLE


def label_offsets(texts, points, obstacles=()):
    """Offsets as in the trade-off chart: every label is placed, from top to bottom."""
    order = sorted(range(len(points)), key=lambda index: (points[index][1], points[index][0]))
    return place_labels(texts, points, SIZE, STYLE, obstacles=obstacles, order=order, allow_overlap=True)


def boxes(texts, points):
    return [STYLE.box(*args) for args in zip(texts, points, label_offsets(texts, points), strict=True)]


def test_labels_of_points_at_the_same_position_do_not_overlap():
    texts = ["vanilla", "fairvlp-v", "fairvlp-l", "gender-swap"]
    label_boxes = boxes(texts, [(200.0, 100.0)] * 4)
    assert sum(box.overlap(other) for n, box in enumerate(label_boxes) for other in label_boxes[:n]) == 0


def test_a_label_keeps_off_another_point():
    """There is a point above to the right, so the label is on the left."""
    first, _ = label_offsets(["vanilla", "b"], [(100.0, 100.0), (120.0, 90.0)])
    assert first.align == "right"


def test_labels_in_the_right_half_are_on_the_left():
    left, right = label_offsets(["a", "b"], [(40.0, 50.0), (380.0, 50.0)])
    assert (left.align, left.dx, left.dy) == ("left", 8.0, -8.0)
    assert (right.align, right.dx, right.dy) == ("right", -8.0, -8.0)


def test_a_label_keeps_off_an_obstacle():
    (above,) = label_offsets(["vanilla"], [(100.0, 100.0)])
    (below,) = label_offsets(["vanilla"], [(100.0, 100.0)], [Box(0, 85, SIZE[0], 87)])
    assert (above.dy, below.dy) == (-8.0, 14.0)


def test_a_label_that_is_cut_takes_no_more_space_than_is_shown():
    box = STYLE.box("long" * 40, (0.0, 100.0), STYLE.offsets[0])
    assert box.right - box.left == STYLE.max_width


def test_labels_without_space_are_dropped():
    texts, points = (
        ["a" * 5, "b" * 5, "c" * 5, "d" * 22],
        [(50.0, 50.0), (52.0, 52.0), (250.0, 100.0), (100.0, 200.0)],
    )
    square, style = (256, 256), concept_specs._LABEL_STYLE
    offsets = place_labels(texts, points, square, style)
    assert [offset.align for offset in offsets] == ["left", "right", "right", "left"]
    assert place_labels(texts, points, square, style, obstacles=[Box(0, 0, 256, 256)]) == [None] * 4
    assert [offset is None for offset in place_labels(texts, points, square, style, max_labels=2)] == [
        False, False, True, True,
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.floats(20, 400), st.floats(20, 260)), min_size=1, max_size=10),
    st.lists(st.text("abc", min_size=1, max_size=14), min_size=10, max_size=10),
)
def test_labels_stay_in_the_plot(points, texts):
    for box in boxes(texts[: len(points)], points):
        assert box.overlap(Box(-1, -1, SIZE[0] + 1, SIZE[1] + 1)) > 0.8 * box.area
