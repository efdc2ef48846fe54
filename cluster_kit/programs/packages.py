"""Names of pip packages. Imported only when a name is missing or unknown."""

from __future__ import annotations

from collections.abc import Mapping

PACKAGES: Mapping[str, str] = {
    "absl": "absl-py",
    "attr": "attrs",
    "Bio": "biopython",
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "gin": "gin-config",
    "git": "GitPython",
    "google.auth": "google-auth",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "hydra": "hydra-core",
    "imblearn": "imbalanced-learn",
    "IPython": "ipython",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "Levenshtein": "python-Levenshtein",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "MySQLdb": "mysqlclient",
    "official": "tf-models-official",
    "OpenSSL": "pyOpenSSL",
    "osgeo": "GDAL",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "sonnet": "dm-sonnet",
    "tree": "dm-tree",
    "umap": "umap-learn",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
"""The packages whose name is not that of their module."""


KNOWN_PACKAGES: tuple[str, ...] = (
    *dict.fromkeys(PACKAGES.values()),
    "albumentations",
    "boto3",
    "catboost",
    "dask",
    "datasets",
    "einops",
    "fastapi",
    "flask",
    "gcsfs",
    "grpcio",
    "h5py",
    "horovod",
    "huggingface-hub",
    "imageio",
    "joblib",
    "keras",
    "keras-tuner",
    "librosa",
    "lightgbm",
    "matplotlib",
    "mlflow",
    "networkx",
    "nltk",
    "numba",
    "numpy",
    "onnx",
    "openpyxl",
    "optuna",
    "orjson",
    "pandas",
    "plotly",
    "polars",
    "prometheus-client",
    "psutil",
    "pyarrow",
    "pycocotools",
    "pydantic",
    "pytest",
    "redis",
    "requests",
    "rich",
    "s3fs",
    "scipy",
    "seaborn",
    "sentencepiece",
    "shap",
    "spacy",
    "sqlalchemy",
    "statsmodels",
    "sympy",
    "tabulate",
    "tensorboard",
    "tensorflow-addons",
    "tensorflow-datasets",
    "tensorflow-hub",
    "tensorflow-probability",
    "tensorflow-text",
    "tf-keras",
    "tf-slim",
    "tokenizers",
    "torch",
    "tqdm",
    "transformers",
    "typer",
    "wandb",
    "xgboost",
    "zarr",
)
"""Packages that programs often need, to propose one for a misspelled name."""


PYTHON_2_MODULES: Mapping[str, str] = {
    "ConfigParser": "configparser",
    "Queue": "queue",
    "StringIO": "io",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "httplib": "http.client",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
"""Modules of Python 2, and those that have replaced them."""


def is_of_namespace(module: str) -> bool:
    """Whether a module is below a name that several packages share, as `google.auth`."""
    shared = {name.partition(".")[0] for name in PACKAGES if "." in name}
    return module.partition(".")[0] in shared


def package_of(module: str) -> str:
    """The pip package that has a module, "" if the module is not in PACKAGES.

    A module that is below one of PACKAGES, as `yaml.loader`, is in the same package.
    """
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((PACKAGES[name] for name in names if name in PACKAGES), "")
