"""The systems that the paper's FDGNN is compared with.

Variants of our own come first, then rivals, each in the library that people use for it.

================  =====================================================  ===================
``fdgnn-auto``    an ensemble of WL features and reservoirs              fdgnn
``fdgnn-wl``      an ensemble of WL features                             fdgnn
``fdgnn-union``   an ensemble of unions of WL features and a reservoir   fdgnn
``ecfp-lr``       Morgan counts of molecules, logistic regression        RDKit, scikit-learn
``ecfp-rf``       Morgan counts of molecules, random forest              RDKit, scikit-learn
``wl``            Weisfeiler-Lehman subtree kernel                       GraKeL, SVC
``wl-oa``         Weisfeiler-Lehman optimal assignment kernel            GraKeL, SVC
``pk``            propagation kernel                                     GraKeL, SVC
``gk``            graphlet kernel, sampled                               GraKeL, SVC
``rw``            geometric random-walk kernel                           GraKeL, SVC
``gin``           Graph Isomorphism Network (Xu et al. 2019)             PyTorch Geometric
``dgcnn``         Deep Graph CNN, sort pooling (Zhang et al. 2018)       PyTorch Geometric
``gnn``           the trained fixed point (Scarselli et al. 2009)        PyTorch
================  =====================================================  ===================

Each has a model with ``fit(graphs, y)`` and ``predict(graphs)``, and its published grid. GraKeL and
PyTorch are imported when a rival is first asked for.
"""

from fdgnn.evaluation.baselines.base import RIVALS, Contestant, Model, Rival, Task, contestant

__all__ = ["RIVALS", "Contestant", "Model", "Rival", "Task", "contestant"]
