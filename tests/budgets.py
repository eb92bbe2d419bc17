"""How long each test file may take: seconds spent in its tests, measured on two shared cores without AVX-512.

Machines differ by a factor of five, so this is about files that have got out of hand: a run fails where one takes more
than ``ROOM`` times its budget. What fixtures take, above all the real chain and the real server, is not counted. Where
the machine has much more to do than its cores can, times say nothing; an overrun is then shown and does not count.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOM = 3
USUAL_S = 5.0
BUDGETS_S = {
    "tests/chain/test_foresight.py": 20.0,
    "tests/chain/acceptance/test_drift.py": 40.0,
    "tests/chain/acceptance/test_run.py": 40.0,
    "tests/chain/test_leading.py": 15.0,
    "tests/chain/test_released.py": 20.0,
    "tests/chain/test_trtllm_checkpoint.py": 15.0,
    "tests/chain/test_trtllm_engine.py": 40.0,
    "tests/chain/test_trtllm_failed_builds.py": 60.0,
    "tests/chain/test_trtllm_inspection.py": 20.0,
    "tests/chain/test_trtllm_release.py": 60.0,
    "tests/chain/test_trtllm_release_gates.py": 40.0,
    "tests/chain/test_trtllm_sanity.py": 40.0,
    "tests/cli/test_bad_inputs.py": 40.0,
    "tests/cli/test_build_engine.py": 20.0,
    "tests/cli/test_export.py": 80.0,
    "tests/cli/test_interruption.py": 120.0,
    "tests/cli/test_main.py": 10.0,
    "tests/cli/test_plan.py": 10.0,
    "tests/cli/test_refusals.py": 60.0,
    "tests/cli/test_report.py": 25.0,
    "tests/cli/test_run.py": 8.0,
    "tests/core/test_process.py": 20.0,
    "tests/e2e/test_chain.py": 600.0,
    "tests/e2e/test_clients.py": 15.0,
    "tests/e2e/test_faults.py": 270.0,
    "tests/e2e/test_follow.py": 150.0,
    "tests/e2e/test_front.py": 120.0,
    "tests/e2e/test_logs.py": 30.0,
    "tests/e2e/test_mixed.py": 60.0,
    "tests/e2e/test_guided.py": 60.0,
    "tests/e2e/test_ipv6.py": 60.0,
    "tests/e2e/test_log_probs.py": 30.0,
    "tests/e2e/test_metrics.py": 15.0,
    "tests/e2e/test_routes.py": 200.0,
    "tests/e2e/test_serving.py": 200.0,
    "tests/e2e/test_stop.py": 120.0,
    "tests/e2e/test_unhealthy.py": 90.0,
    "tests/engines/scoring/test_huggingface_script.py": 30.0,
    "tests/engines/scoring/test_scripted.py": 30.0,
    "tests/engines/test_vllm_arguments.py": 20.0,
    "tests/engines/trtllm/build/test_grammar.py": 15.0,
    "tests/engines/trtllm/launch/test_main.py": 30.0,
    "tests/engines/trtllm/launch/test_release_files.py": 20.0,
    "tests/engines/test_vllm_float32_products.py": 20.0,
    "tests/front/test_app.py": 8.0,
    "tests/front/test_backends.py": 8.0,
    "tests/front/test_faults.py": 8.0,
    "tests/front/test_log_probs.py": 8.0,
    "tests/front/test_server.py": 15.0,
    "tests/quantization/test_killed.py": 60.0,
    "tests/quantization/test_layer.py": 20.0,
    "tests/quantization/test_ranks.py": 60.0,
    "tests/quantization/test_recipes.py": 15.0,
    "tests/quantization/test_worker.py": 30.0,
    "tests/quantization/exports/test_modelopt.py": 15.0,
    "tests/quantization/exports/test_same_integers.py": 60.0,
    "tests/quantization/exports/test_trtllm.py": 15.0,
    "tests/quantization/kinds/test_worker.py": 60.0,
    "tests/release/test_promote.py": 8.0,
    "tests/sample/test_stage.py": 25.0,
    "tests/test_extras.py": 120.0,
    "tests/test_wheel.py": 90.0,
    "tests/triton_repo/test_client_class.py": 10.0,
    "tests/triton_repo/test_detokenizer.py": 8.0,
    "tests/triton_repo/test_golden.py": 20.0,
    "tests/triton_repo/test_repository_check.py": 8.0,
    "tests/triton_repo/test_supervisor.py": 14.0,
    "tests/triton_repo/test_template_check.py": 8.0,
    "tests/triton_repo/test_text_torture.py": 60.0,
}
BUSY_PROCESSES_PER_CORE = 2.0


def overruns(spent_s: Mapping[str, float]) -> list[str]:
    """Return a line for each file that took more than it may."""
    return [
        f"{name}: {seconds:.1f} s, more than {ROOM} times its budget of {BUDGETS_S.get(name, USUAL_S):g} s"
        for name, seconds in sorted(spent_s.items())
        if seconds > ROOM * BUDGETS_S.get(name, USUAL_S)
    ]


def machine_is_busy() -> bool:
    """True where, on the average of five minutes, far more processes wanted to run than there are cores for them."""
    return os.getloadavg()[1] > BUSY_PROCESSES_PER_CORE * len(os.sched_getaffinity(0))
