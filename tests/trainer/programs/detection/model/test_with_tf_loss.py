"""With TensorFlow: matching, box coding and the multibox loss, compared with values computed by
hand.

ln 3 is the cross entropy of a background and two classes that are equally likely.
"""

from __future__ import annotations

import math
import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.detection.config.pipeline import BoxCoder, Loss, Matcher, Model  # noqa: E402
from trainer.programs.detection.model import (  # noqa: E402
    box_targets,
    loss,
)
from trainer.programs.detection.model.loss import MultiboxLoss  # noqa: E402

LEFT, RIGHT = (0.0, 0.0, 0.5, 0.5), (0.0, 0.5, 0.5, 1.0)
BELOW, CORNER = (0.5, 0.0, 1.0, 0.5), (0.5, 0.5, 1.0, 1.0)
QUARTERS = (LEFT, RIGHT, BELOW, CORNER)
"""Four anchors that divide the image."""
LN2 = math.log(2)


def numbers(tensor: tf.Tensor) -> list:
    return tensor.numpy().tolist()


def near(expected: object) -> object:
    return pytest.approx(expected, abs=1e-4)


def test_overlap_is_intersection_over_union():
    boxes = tf.constant([[LEFT, (0.5, 0.6, 1.0, 1.0), (0.25, 0.25, 0.75, 0.75), (0, 0, 0, 0)]])
    found = numbers(box_targets.overlaps(boxes, tf.constant(QUARTERS))[0])
    assert found[0] == near([1.0, 0.0, 0.0, 0.0])
    assert found[1] == near([0.0, 0.0, 0.0, 0.8])
    assert found[2] == near([0.0625 / 0.4375] * 4)
    assert found[3] == near([0.0] * 4)


def match(boxes: list, present: list, **options: object) -> tuple[list, list, list]:
    found = box_targets.match(
        tf.constant([boxes]), tf.constant([present]), tf.constant(QUARTERS), Matcher(**options)
    )
    return numbers(found.box[0]), numbers(found.matched[0]), numbers(found.background[0])


SMALL_ON_THE_RIGHT = (0.1, 0.6, 0.2, 0.7)


def test_anchors_match_by_their_overlap_and_every_box_gets_one():
    boxes = [LEFT, (0.5, 0.6, 1.0, 1.0), SMALL_ON_THE_RIGHT, BELOW]
    box, matched, background = match(boxes, [True, True, True, False])
    assert matched == [True, True, False, True]
    assert background == [False, False, True, False]
    assert [box[0], box[1], box[3]] == [0, 2, 1]


def test_without_forced_matches_a_small_box_has_no_anchor():
    boxes = [LEFT, SMALL_ON_THE_RIGHT]
    _, matched, background = match(boxes, [True, True], force_match_for_each_row=False)
    assert matched == [True, False, False, False]
    assert background == [False, True, True, True]


def test_between_the_thresholds_an_anchor_is_neither_positive_nor_background():
    boxes = [(0.0, 0.0, 0.5, 0.2), CORNER]
    options = {"matched_threshold": 0.5, "unmatched_threshold": 0.3}
    _, matched, background = match(boxes, [True] * 2, force_match_for_each_row=False, **options)
    assert matched == [False, False, False, True]
    assert background == [False, True, True, False]


def test_of_two_boxes_with_the_same_best_anchor_the_closer_gets_it():
    box, matched, _ = match([(0.1, 0.1, 0.2, 0.2), (0.1, 0.1, 0.4, 0.4)], [True, True])
    assert matched == [True, False, False, False]
    assert box[0] == 1


def test_an_image_without_boxes_is_all_background():
    _, matched, background = match([(0.0, 0.0, 0.0, 0.0)], [False], matched_threshold=0.0,
                                   unmatched_threshold=0.0)  # fmt: skip
    assert matched == [False] * 4
    assert match([LEFT], [False])[2] == [True] * 4
    assert background == [False] * 4


def test_codes_are_scaled_offsets_and_decode_inverts_them():
    factors = box_targets.factors(BoxCoder())
    anchor, box = tf.constant([0.2, 0.2, 0.6, 0.6]), tf.constant([0.3, 0.2, 0.5, 1.0])
    code = box_targets.encode(box, anchor, factors)
    assert numbers(code) == near([0.0, 5.0, -5 * LN2, 5 * LN2])
    assert numbers(box_targets.decode(code, anchor, factors)) == near([0.3, 0.2, 0.5, 1.0])


def test_padding_has_finite_codes_and_extreme_codes_give_finite_boxes():
    factors = box_targets.factors(BoxCoder())
    padding = box_targets.encode(tf.zeros([4]), tf.constant(LEFT), factors)
    assert bool(tf.reduce_all(tf.math.is_finite(padding)))
    wild = box_targets.decode(tf.fill([4], 1e6), tf.constant(LEFT), factors)
    assert bool(tf.reduce_all(tf.math.is_finite(wild)))


def test_smooth_l1_is_square_near_zero_and_linear_beyond_one():
    assert float(loss.smooth_l1(tf.constant([0.5, 0.0, -2.0, 1.0]))) == near(0.125 + 1.5 + 0.5)


def test_the_hardest_are_chosen_only_from_the_candidates():
    found = loss.hardest(
        tf.constant([[5.0, 1.0, 3.0, 2.0]] * 2),
        tf.constant([[False, True, True, True]] * 2),
        tf.constant([2.0, 0.0]),
    )
    assert numbers(found) == [[False, False, True, True], [False] * 4]


def two_classes(**options: object) -> MultiboxLoss:
    return MultiboxLoss(QUARTERS, Model(num_classes=2, loss=Loss(**options)))


def predictions(code_of_left: tuple, backgrounds: tuple) -> tf.Tensor:
    """Returns [1, 4, 7]: a code for the first anchor, and each anchor's background logit; class
    logits are 0."""
    codes = [code_of_left] + [(0.0,) * 4] * 3
    return tf.constant(
        [[[*code, background, 0.0, 0.0] for code, background in zip(codes, backgrounds)]]  # noqa: B905
    )


ONE_OBJECT = [[(*LEFT, 2.0), (0.0,) * 5]]
NO_OBJECT = [[(0.0,) * 5] * 2]
ODD = predictions((0.5, 0.0, -2.0, 0.0), (0.0, LN2, 0.0, -LN2))
"""The cross entropies: ln 3 for the object, and ln 2, ln 3 and ln 5 for background."""


def test_one_object_and_its_hardest_negatives():
    parts = two_classes(max_negatives_per_positive=1.0, min_negatives_per_image=0).parts(
        tf.constant(ONE_OBJECT), ODD
    )
    assert float(parts.localization[0]) == near(1.625)
    assert float(parts.classification[0]) == near(math.log(3) + math.log(5))
    assert float(parts.total[0]) == near(1.625 + math.log(15))


def test_weights_and_all_negatives():
    truth = tf.constant(ONE_OBJECT)
    options = {"localization_weight": 2.0, "classification_weight": 0.5}
    every = two_classes(max_negatives_per_positive=3.0, **options)(truth, ODD)
    assert numbers(every) == near([2 * 1.625 + 0.5 * math.log(3 * 2 * 3 * 5)])


def test_an_image_without_objects_learns_background_from_its_hardest_anchors():
    parts = two_classes(min_negatives_per_image=2).parts(tf.constant(NO_OBJECT), ODD)
    assert numbers(parts.localization) == [0.0]
    assert numbers(parts.classification) == near([math.log(3) + math.log(5)])


def test_the_loss_is_divided_by_the_objects_of_each_image():
    both = tf.constant([[(*LEFT, 2.0), (*RIGHT, 1.0)]])
    still = predictions((0.0,) * 4, (0.0,) * 4)
    parts = two_classes(max_negatives_per_positive=1.0).parts(both, still)
    assert numbers(parts.total) == near([4 * math.log(3) / 2])


def test_the_loss_of_a_batch_is_the_mean_of_its_images():
    truth = tf.constant(ONE_OBJECT + NO_OBJECT)
    both = tf.concat([ODD, ODD], 0)
    together = two_classes()(truth, both)
    assert numbers(together) == near(
        [
            float(two_classes()(truth[:1], ODD)[0]),
            float(two_classes()(truth[1:], ODD)[0]),
        ]
    )


def test_focal_loss_counts_every_anchor_by_its_error():
    focal = two_classes(classification_loss="focal", focal_alpha=0.25, focal_gamma=2.0)
    found = focal.parts(tf.constant(ONE_OBJECT), ODD).classification
    assert numbers(found) == near([LN2 * 0.25 * (0.25 + 7 * 0.75)])


def test_gradients_are_finite_without_any_object():
    for truth in (ONE_OBJECT, NO_OBJECT):
        wanted = tf.Variable(tf.concat([ODD], 0))
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(two_classes()(tf.constant(truth), wanted))
        gradient = tape.gradient(total, wanted)
        assert bool(tf.reduce_all(tf.math.is_finite(gradient)))
        assert float(tf.reduce_sum(tf.abs(gradient))) > 0.1
