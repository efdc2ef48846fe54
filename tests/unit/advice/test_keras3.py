"""Keras 3's `fit` under an unsupported strategy is detected, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.advised import COORDINATED, KERAS_3_FIT, hints

WITHOUT_FIT = KERAS_3_FIT.replace("model.fit(data, epochs=2, steps_per_epoch=3)\n", "")
KERAS_3 = {
    "the module": KERAS_3_FIT,
    "under another name": KERAS_3_FIT.replace("import keras", "import keras as K").replace(
        "keras.", "K."
    ),
    "names out of it": (
        COORDINATED + "from keras.models import Sequential\nfrom keras.layers import Dense\n"
        "Sequential([Dense(1)]).fit(data, epochs=2)\n"
    ),
    "all-reduce": KERAS_3_FIT.replace("ParameterServerStrategy", "MultiWorkerMirroredStrategy"),
    "the experimental name": KERAS_3_FIT.replace("tf.distribute.", "tf.distribute.experimental."),
    "a model of one's own": COORDINATED
    + "import keras\nclass Mine(keras.Model): pass\nMine().fit(data, validation_data=more)\n",
    "nothing but data": KERAS_3_FIT.replace(", epochs=2, steps_per_epoch=3", ""),
    "x and y": KERAS_3_FIT.replace("data, epochs=2, steps_per_epoch=3", "x, y, 32"),
    "at once": COORDINATED + "import keras\nkeras.Sequential([]).fit(x, y)\n",
    "under a name of one's own": KERAS_3_FIT.replace("model", "net").replace("epochs=2", "verbose"),
    "an attribute": COORDINATED
    + "import keras\nclass T:\n    def __init__(self):\n        self.net = keras.Sequential()\n"
    "    def train(self, ds):\n        self.net.fit(ds)\n",
    "a model that is handed on": COORDINATED
    + "import keras\ndef train(model, ds):\n    return model.fit(ds)\ntrain(keras.Model(a), ds)\n",
    "out of a function": COORDINATED
    + "import keras\ndef build():\n    m = keras.Sequential()\n    m.compile('sgd')\n    return m\n"
    "net = build()\nnet.fit(x, y)\n",
    "a class of one's own": COORDINATED
    + "import keras\nclass A(keras.Model): pass\nclass Mine(A): pass\nm = Mine()\nm.fit(ds)\n",
    "a loaded one": COORDINATED + "from keras.models import load_model\n"
    "(net := load_model('m.keras')).summary()\nnet.fit(ds)\n",
    "one of Keras's own": COORDINATED
    + "import keras\nnet: keras.Model = keras.applications.ResNet50()\nnet.fit(ds)\n",
    "by other names of its parts": COORDINATED
    + "import keras\nlayers = keras.layers\nS = keras.Sequential\nnet = S([layers.Dense(1)])\n"
    "net.fit(ds)\n",
    "a strategy by another name": "import keras\nfrom tensorflow import distribute as d\n"
    "make = d.experimental.ParameterServerStrategy\nstrategy = make(resolver)\n"
    "model = keras.Sequential()\nmodel.fit(ds)\n",
    "a strategy out of a function": "import keras, tensorflow as tf\ndef strategy():\n"
    "    return tf.distribute.experimental.ParameterServerStrategy(resolver)\n"
    "with strategy().scope():\n    model = keras.Sequential()\nmodel.fit(ds)\n",
    "with the switch that is for tf.keras": "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
    + KERAS_3_FIT.replace(", epochs=2, steps_per_epoch=3", ""),
}


@pytest.mark.parametrize("what", KERAS_3)
def test_keras_3s_fit_under_a_strategy_of_several_machines_is_named(
    what: str, tmp_path: Path
) -> None:
    found = hints(KERAS_3[what], tmp_path, style="all-tasks", ps=0)
    (hint,) = (one for one in found if "Keras 3" in one.what)
    line = KERAS_3[what].split(".fit(")[0].count("\n") + 1
    assert hint.location == f"train.py:{line}"
    assert "`fit` of Keras 3" in hint.what
    assert "import tf_keras as keras" in hint.fix
    for keys in ({"tensorflow": "2.15"}, {"image": "mine:1"}):  # its Keras is 2, or not known
        others = hints(KERAS_3[what], tmp_path, style="all-tasks", ps=0, **keys)
        assert not any("Keras 3" in one.what for one in others)


def test_model_and_strategy_may_stand_in_other_files(tmp_path: Path) -> None:
    files = {
        "train.py": "from lib import cluster\nfrom lib.net import build\n"
        "model = build()\nmodel.fit(cluster.data, epochs=3)\n",
        "lib/__init__.py": "",
        "lib/net.py": "import keras\ndef build():\n    return keras.applications.MobileNetV2()\n",
        "lib/cluster.py": COORDINATED,
    }
    (hint,) = hints(files, tmp_path)
    assert hint.location == "train.py:4"


QUIET_KERAS = {
    "tf_keras": KERAS_3_FIT.replace("import keras", "import tf_keras as keras"),
    "tf.keras": KERAS_3_FIT.replace("import keras", "from tensorflow import keras"),
    "tf.keras by its attribute": KERAS_3_FIT.replace("import keras\n", "").replace(
        "keras.", "tf.keras."
    ),
    "Keras 3 as the fallback": KERAS_3_FIT.replace(
        "import keras", "try:\n    import tf_keras as keras\nexcept ImportError:\n    import keras"
    ),
    "one machine": KERAS_3_FIT.replace("ParameterServerStrategy", "MirroredStrategy"),
    "a loop of one's own": WITHOUT_FIT,
    "tf.keras under another name": KERAS_3_FIT.replace("import keras\n", "").replace(
        "strategy =", "keras = tf.keras\nstrategy ="
    ),
    "another library's fit": WITHOUT_FIT + "scaler.fit(data)\n",
    "another library's, at once": WITHOUT_FIT
    + "import sklearn.pipeline as p\np.Pipeline(s).fit(x, callbacks=[c])\n",
    "another library's model": WITHOUT_FIT.replace("model =", "net =")
    + "from sklearn.linear_model import LinearRegression\nmodel = LinearRegression()\n"
    "model.fit(x, y)\n",
    "another library's model with callbacks": WITHOUT_FIT
    + "import lightgbm as lgb\ntrees = lgb.LGBMClassifier()\ntrees.fit(x, y, callbacks=[c])\n",
    "a name for both": WITHOUT_FIT
    + "import sklearn.svm\nmodel = sklearn.svm.SVC()\nmodel.fit(x, y)\n",
    "a layer that learns by adapt, and a tokenizer": WITHOUT_FIT
    + "text = keras.layers.TextVectorization()\ntext.adapt(d)\ntokenizer.fit(d)\n",
    "only a helper of Keras 3": COORDINATED
    + "from keras.utils import to_categorical\nmodel = tf.keras.Sequential()\n"
    "model.fit(to_categorical(y), epochs=2)\n",
    "a fit of one's own": WITHOUT_FIT
    + "class Trainer:\n    def fit(self, data, epochs): loop(data)\n"
    + "Trainer().fit(data, epochs=2)\n",
    "a strategy of somebody else's": KERAS_3_FIT.replace("tf.distribute.", "mine.").replace(
        "import tensorflow as tf", "import mine"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", QUIET_KERAS)
def test_other_kinds_of_keras_are_accepted(what: str, tmp_path: Path) -> None:
    found = hints(QUIET_KERAS[what], tmp_path, worker=1, ps=0)
    assert not [one for one in found if "Keras 3" in one.what]
