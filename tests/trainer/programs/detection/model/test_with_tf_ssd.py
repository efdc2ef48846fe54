"""With TensorFlow: the network's shape, its detections, and that it can learn a few scenes."""

from __future__ import annotations

import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.detection.config.pipeline import Anchors, Loss, Model, PostProcessing  # noqa: E402
from trainer.programs.detection.model import box_targets, ssd  # noqa: E402
from trainer.programs.detection.model.loss import MultiboxLoss  # noqa: E402

QUARTERS = ((0.0, 0.0, 0.5, 0.5), (0.0, 0.5, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5), (0.5, 0.5, 1.0, 1.0))


def options(**more: object) -> Model:
    given = {"num_classes": 3, "depth_multiplier": 0.35, "image_size": 64} | more
    return Model(**given)


V1 = {"feature_extractor": "mobilenet_v1"}
"""Half as many layers as version 2, which takes half the time."""


def seeded(seed: int) -> tf.keras.Model:
    return ssd.build(options(batch_norm_momentum=0.5, **V1), seed).network


@pytest.fixture(scope="module")
def made() -> tf.keras.Model:
    """A network with seed 1, which tests do not change."""
    return seeded(1)


@pytest.mark.parametrize("extractor", ["mobilenet_v1", "mobilenet_v2"])
def test_every_anchor_has_a_prediction(extractor):
    anchors = Anchors(feature_strides=(8, 16, 32, 64, 128), aspect_ratios=(1.0, 2.0))
    made = ssd.build(options(feature_extractor=extractor, anchors=anchors), 1)
    assert [(m.rows, m.columns, len(m.shapes)) for m in made.maps] == [
        (8, 8, 3), (4, 4, 3), (2, 2, 3), (1, 1, 3), (1, 1, 3),
    ]  # fmt: skip
    assert made.network.output_shape == (None, 258, 4 + 1 + 3)
    assert len(made.loss.anchors) == 258
    assert made.network(tf.zeros([2, 64, 64, 3])).shape == (2, 258, 8)


def test_an_image_of_odd_size_has_anchors_for_all_cells():
    anchors = Anchors(feature_strides=(8, 16, 64))
    made = ssd.build(options(image_size=75, anchors=anchors, **V1), 1)
    assert made.network.output_shape[1] == len(made.loss.anchors)


def test_the_same_seed_gives_the_same_weights(made):
    second, other = seeded(1), seeded(2)
    pairs = list(zip(made.weights, second.weights, strict=True))
    assert all(bool(tf.reduce_all(one == same)) for one, same in pairs)
    assert not bool(tf.reduce_all(made.weights[0] == other.weights[0]))


def test_batch_norm_has_the_configured_momentum(made):
    layers = [x for x in made.layers if isinstance(x, tf.keras.layers.BatchNormalization)]
    assert layers and {layer.momentum for layer in layers} == {0.5}


def test_weight_decay_counts_kernels_only(made):
    before = float(ssd.weight_decay(made, 0.5))
    others = [weight for weight in made.weights if "kernel" not in weight.name]
    kept = [weight.numpy() for weight in others]
    for weight in others:
        weight.assign_add(tf.ones_like(weight))
    try:
        assert before > 0 and float(ssd.weight_decay(made, 0.5)) == pytest.approx(before)
    finally:
        for weight, value in zip(others, kept, strict=True):
            weight.assign(value)


def logits(classes: list[tuple[float, ...]]) -> tf.Tensor:
    """Returns [1, 4, 4 + 1 + 3]: unshifted anchors, and these logits."""
    return tf.constant([[(0.0, 0.0, 0.0, 0.0, *values) for values in classes]])


def test_detections_are_decoded_and_of_two_that_overlap_the_better_is_kept():
    overlapping = (QUARTERS[0], (0.0, 0.05, 0.5, 0.5), QUARTERS[3], QUARTERS[2])
    made = MultiboxLoss(overlapping, options())
    given = logits([(0, 0, 4, 0), (0, 0, 6, 0), (0, 5, 0, 0), (9, 0, 0, 0)])
    found = ssd.detect(given, made, PostProcessing(score_threshold=0.3))
    assert found.count.numpy().tolist() == [2]
    assert found.classes.numpy()[0, :3].tolist() == [2, 1, 0]
    assert found.boxes.numpy()[0, :2].tolist() == [
        pytest.approx(list(overlapping[1])), pytest.approx(list(overlapping[2])),
    ]  # fmt: skip
    assert found.scores.numpy()[0, :2].tolist() == [
        pytest.approx(0.99261, abs=1e-4), pytest.approx(0.98017, abs=1e-4),
    ]  # fmt: skip


def test_boxes_of_two_classes_may_overlap_and_are_clipped_to_the_image():
    made = MultiboxLoss(((-0.2, -0.2, 0.5, 0.5),) * 2, options())
    given = logits([(0, 9, 0, 0), (0, 0, 9, 0)])
    found = ssd.detect(given, made, PostProcessing(score_threshold=0.5))
    assert sorted(found.classes.numpy()[0, :2].tolist()) == [1, 2]
    assert found.boxes.numpy()[0, 0].tolist() == pytest.approx([0.0, 0.0, 0.5, 0.5])


def test_sigmoid_scores_omit_the_background():
    made = MultiboxLoss(QUARTERS, options(loss=Loss(classification_loss="focal")))
    given = logits([(9, 0, -9, -9)] + [(9, -9, -9, -9)] * 3)
    found = ssd.detect(given, made, PostProcessing(score_threshold=0.3))
    assert found.count.numpy().tolist() == [1]
    assert float(found.scores[0, 0]) == pytest.approx(0.5)


def scenes() -> tuple[tf.Tensor, tf.Tensor]:
    """Returns four grey images with two squares each: red (class 1) and blue (class 2)."""
    images, truth = [], []
    for index in range(4):
        image = tf.Variable(tf.fill([64, 64, 3], 110.0))
        boxes = []
        for number, channel in ((1, 0), (2, 2)):
            top, left, side = 4 + 9 * index, 4 + 30 * (number - 1), 16 + 2 * index
            colour = tf.one_hot(channel, 3) * 230.0
            image[top : top + side, left : left + side].assign(tf.zeros([side, side, 3]) + colour)
            boxes.append([top / 64, left / 64, (top + side) / 64, (left + side) / 64, number])
        images.append(image)
        truth.append(boxes)
    return tf.stack(images), tf.constant(truth, tf.float32)


def test_the_network_can_learn_a_few_scenes_by_heart():
    anchors = Anchors(feature_strides=(8, 16), scales=(0.3, 0.5), aspect_ratios=(1.0,))
    given = options(
        num_classes=2, anchors=anchors, batch_norm_momentum=0.7, depth_multiplier=0.25, **V1
    )
    made = ssd.build(given, 1)
    images, truth = scenes()
    optimizer = tf.keras.optimizers.Adam(3e-3)
    optimizer.build(made.network.trainable_variables)  # otherwise the function is traced twice
    made.network.compile(optimizer, tf.autograph.experimental.do_not_convert(made.loss.__call__))
    fitted = made.network.fit(images, truth, batch_size=4, epochs=40, verbose=0)
    history = fitted.history["loss"]
    assert history[-1] < 0.1 * history[0]
    found = ssd.detect(made.network(images, training=False), made.loss, PostProcessing())
    order = tf.argsort(found.classes[:, :2], 1)
    assert tf.gather(found.classes, order, batch_dims=1).numpy().tolist() == [[1, 2]] * 4
    boxes = tf.gather(found.boxes, order, batch_dims=1)
    for image in range(4):
        overlap = box_targets.overlaps(boxes[image][tf.newaxis], truth[image, :, :4])[0]
        assert float(tf.reduce_min(tf.linalg.diag_part(overlap))) > 0.7


def test_a_graph_is_built_for_training_only(recwarn):
    with tf.Graph().as_default() as graph:
        ssd.build(options(**V1), 1)
        kinds = {op.type for op in graph.get_operations()}
    assert kinds.isdisjoint({"If", "StatelessIf"}), "each BatchNormalization is built twice"
    assert not [str(w.message) for w in recwarn if "learning_phase" in str(w.message)]
    assert "training" not in str(tf.keras.backend.learning_phase()), "the phase lasts"
