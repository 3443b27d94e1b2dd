"""Names of points: none covers another where there is room, and none leaves the chart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portrayal.report.charts import point_names
from portrayal.report.charts.point_names import spots

WIDTH, HEIGHT = 420.0, 280.0


def boxes(names, places):
    return [
        point_names._box(*one)
        for one in zip(names, places, spots(names, places, [], WIDTH, HEIGHT), strict=True)
    ]


def covered(found) -> float:
    return sum(one.shared(other) for n, one in enumerate(found) for other in found[:n])


def test_four_points_at_one_place_have_four_names_apart():
    names = ["vanilla", "fairvlp-v", "fairvlp-l", "gender-swap"]
    assert covered(boxes(names, [(200.0, 100.0)] * 4)) == 0


def test_a_name_keeps_off_another_point():
    """Above to the right stands a point, so the name goes to the left."""
    first, _ = spots(["vanilla", "b"], [(100.0, 100.0), (120.0, 90.0)], [], WIDTH, HEIGHT)
    assert first.align == "right"


def test_a_name_keeps_off_a_line():
    across = point_names.Box(0, 85, WIDTH, 87)
    (above,) = spots(["vanilla"], [(100.0, 100.0)], [], WIDTH, HEIGHT)
    (below,) = spots(["vanilla"], [(100.0, 100.0)], [across], WIDTH, HEIGHT)
    assert (above.dy, below.dy) == (-8.0, 14.0)


def test_a_name_that_is_cut_takes_no_more_room_than_is_shown():
    box = point_names._box("long" * 40, (0.0, 100.0), point_names.Spot("left", 8.0, -8.0))
    assert box.right - box.left == point_names.WIDEST


@given(
    st.lists(st.tuples(st.floats(20, 400), st.floats(20, 260)), min_size=1, max_size=10),
    st.lists(st.text("abc", min_size=1, max_size=14), min_size=10, max_size=10),
)
def test_names_stay_in_the_chart(places, names):
    names = names[: len(places)]
    found = boxes(names, places)
    for box in found:
        assert box.shared(point_names.Box(-1, -1, WIDTH + 1, HEIGHT + 1)) > 0.8 * box.area
