"""`TransformerEncoder`: any transformer with `fit` and `transform` as encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from fdgnn.arrays import Array
from fdgnn.encoders.base import Encoder, Encoding
from fdgnn.exceptions import ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.records import Record
from fdgnn.seeds import integer_seed


class TransformerEncoder(Encoder):
    """Encode graphs by a transformer that knows nothing of fdgnn.

    It gets a `GraphBatch`, a sequence of graphs. There are no attributions, and no model files,
    which hold no code.

    Parameters
    ----------
    transformer : object with `fit` and `transform`
    """

    kind = "transformer"

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    @property
    def shown_name(self) -> str:
        """The transformer's class."""
        return type(self.transformer).__name__

    @property
    def draws(self) -> bool:  # type: ignore[override]
        """Whether it has a `random_state` that is None."""
        parameters: dict[str, Any] = getattr(self.transformer, "get_params", dict)()
        return "random_state" in parameters and parameters["random_state"] is None

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        self.transformer_ = clone(self.transformer, safe=False)
        parameters: dict[str, Any] = getattr(self.transformer_, "get_params", dict)()
        if parameters.get("random_state", 0) is None:
            self.transformer_.set_params(random_state=integer_seed(seed))
        self.transformer_.fit(graphs)

    def encode(
        self,
        graphs: GraphBatch,
        depths: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Encoding:
        """Transform checked graphs."""
        X: Any = self.transformer_.transform(graphs)
        if sp.issparse(X):
            return Encoding([sp.csr_array(cast(Any, X), dtype=np.float64)])
        X = np.asarray(X, dtype=np.float64)
        return Encoding([X.reshape(len(X), -1)])

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> NoReturn:
        """Raise ValueError: a transformer does not say what a vertex contributes."""
        raise ValueError(
            f"a {self.shown_name} has no attributions; derive it from fdgnn.encoders.Encoder and "
            "give it `attribute`, or `vertex_features`"
        )

    def facts(self) -> Record:
        """Raise ModelFileError: a file cannot hold the transformer."""
        raise ModelFileError(
            f"a {self.shown_name} cannot be saved, because model files hold no code; derive it "
            "from fdgnn.encoders.Encoder with `facts`, `arrays` and `restore`, and register it"
        )

    def arrays(self) -> dict[str, Array]:
        """Return nothing; `facts` says why."""
        return {}

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: Any) -> None:
        """Raise ModelFileError: no file has such an encoder."""
        raise ModelFileError("a file cannot have a transformer as encoder")
