# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether an optimised model means what the model meant before."""

import addnorm
import structure


def difference(before, after):
    """What the new model has or says otherwise; None if nothing. Runs neither."""
    if not addnorm.checker_complaint(before) and addnorm.checker_complaint(after):
        return f"the checker: {addnorm.checker_complaint(after)}"
    if structure.differences(before, after):
        return f"other operators make {structure.differences(before, after)}"
    if structure.untouched_fields_differ(before, after):
        return f"changed: {structure.untouched_fields_differ(before, after)}"
    return None


def same_in_reference(before, after, feeds):
    """Whether the reference evaluator gives the same bits; None if it cannot run `before`."""
    try:
        expected = addnorm.run_reference(before, feeds)
    except Exception:
        return None
    return addnorm.run_reference(after, feeds) == expected
