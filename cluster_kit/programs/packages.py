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


def package_of(module: str) -> str:
    """The pip package that has a module, "" if the module is not in PACKAGES.

    A module that is below one of PACKAGES, as `yaml.loader`, is in the same package.
    """
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((PACKAGES[name] for name in names if name in PACKAGES), "")
