"""Makers of the documentation's generated parts: a function without arguments returns Markdown.

One module per source of facts. To add a part: write its maker there, enter it in BLOCKS, put the
two markers into a page, and run `make docs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.blocks import (
    arguments,
    built_in,
    classifier,
    command_line,
    contract,
    detection,
    drills,
    exit_codes,
    manifest,
    matrix,
    metrics,
    predict,
    rooms,
    versions,
    wrong_manifest,
)

BLOCKS: Mapping[str, Callable[[], str]] = {
    "argument-names": arguments.names,
    "built-in-programs": built_in.programs,
    "classifier-options": classifier.option_modes,
    "contract-beacon": contract.beacon,
    "contract-commands": contract.commands,
    "contract-events": contract.progress_events,
    "contract-exit-codes": contract.exit_codes,
    "contract-own-variables": contract.own_variables,
    "contract-paths": contract.paths,
    "contract-reasons": contract.reasons,
    "contract-times": contract.grace_times,
    "contract-variables": contract.variables,
    "data-sets": built_in.data_sets,
    "detection-keys": detection.keys,
    "drill-kinds": drills.kinds,
    "exit-codes": exit_codes.codes,
    **manifest.blocks(),
    "matrix": matrix.figures,
    "metric-states": metrics.states,
    "metrics": metrics.names,
    "predict-here-rows": predict.here_rows,
    "predict-here-summary": predict.here_summary,
    "predict-rows": predict.every_row,
    "predict-summary": predict.summary,
    "overrides": command_line.overrides,
    "smoke-manifest": manifest.smoke,
    "trainer-rooms": rooms.trainer,
    "verbs": command_line.verbs,
    "versions": versions.figures,
    "wrong-manifest": wrong_manifest.example,
}
