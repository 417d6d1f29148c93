"""One way to select: candidates, their scores, the rule that chooses, and `FDGNNSearchCV`.

============  ========================================================================
`space`       what is searched, and random draws from it
`folds`       the folds of a cross validation
`scores`      candidates, and their scores on all folds and penalties
`rule`        how guesses enter a score, and which candidate is chosen
`findings`    what a search found out: of `configurations`, or of a committee
              (`committee_search`)
`question`    what a search is asked, with scikit-learn's `scorers`
`search`      `FDGNNSearchCV`
============  ========================================================================

The paper's evaluation (`fdgnn.experiments.study`) and `FDGNNSearchCV` use the
same functions; how guesses and penalties enter a score is their `SelectionRule`.
"""
