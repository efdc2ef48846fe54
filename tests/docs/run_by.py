"""Which test runs each command on a page that needs an engine."""

E2E = "tests/e2e"
OWN = f"{E2E}/test_own_programs.py"
DETECTION = f"{E2E}/test_detection.py::test_every_mode_learns_is_scored_and_ends"

DOCS = f"{E2E}/test_docs.py"
SIDE_BY_SIDE = f"{E2E}/test_side_by_side.py"
PLAIN = f"{E2E}/test_plain_compose.py"
CONTENTS = (
    f"{E2E}/test_image_contents.py::test_every_package_of_the_image_has_a_version_and_a_licence"
)
CHECKED = f"{E2E}/test_image_contents.py::test_the_check_on_a_gpu_fails_in_a_container_without_one"
PORTABLE = f"{E2E}/test_portable.py::test_a_copied_clone_runs_for_another_user_who_owns_the_results"
PROFILED = f"{E2E}/test_profile.py::test_a_users_own_program_is_traced_unchanged"
TWICE = f"{SIDE_BY_SIDE}::test_one_manifest_runs_twice_at_once_under_two_names"
KEPT = f"{SIDE_BY_SIDE}::test_one_manifest_runs_twice_at_once_under_two_names"
LEFT = f"{E2E}/test_attach.py::test_wait_returns_the_end_of_a_detached_cluster"
LOOP = f"{OWN}::test_a_coordinators_loop_runs_only_on_the_chief"
DAILY = f"{E2E}/test_daily.py::test_a_day_with_one_cluster"
WHEEL = f"{E2E}/test_wheel.py::test_an_installed_kit_trains_for_a_user_who_cannot_write_to_it"
PIPX = f"{E2E}/test_packages.py::test_pipx_runs_the_wheel"
TOOL = f"{E2E}/test_packages.py::test_tools_that_install_commands_accept_the_wheel"
STARTER = f"{E2E}/test_new.py::test_a_new_cluster_trains_at_once_and_continues"
CONVERT = f"{DOCS}::test_the_converters_work_as_on_the_page"
FLOWERS = f"{DOCS}::test_class_folders_train_and_the_model_loads_as_on_the_page"
TF1 = f"{E2E}/test_supervisor.py::test_a_supervisor_trains_on_every_worker_ends_and_resumes"
FLAGS = (
    "--job_name={{ role }} --task_index={{ index }} "
    "--ps_hosts={{ ps_hosts }} --worker_hosts={{ worker_hosts }}"
)

RUN_BY = {
    'make cluster DATA=path/to/flowers ARGS="--image-size 64 --epochs 10"': FLOWERS,
    "IMAGE=$(cluster-kit image tag)": FLOWERS,
    'docker run --rm -v "$PWD:/work" -w /work --entrypoint python3 "$IMAGE" classify.py': FLOWERS,
    "make cluster N_WORKERS=2 N_PS=2": (
        f"{E2E}/test_quickstart.py::test_the_quickstart_trains_and_leaves_only_its_evidence"
    ),
    "make cluster CLUSTER=all-reduce": (
        f"{E2E}/test_all_reduce.py::test_two_workers_train_one_model_and_only_the_leader_writes"
        "_results"
    ),
    "make cluster CLUSTER=clones": f"{E2E}/test_clones.py::test_clones_train_the_quickstarts_model",
    "make cluster CLUSTER=detection-async": DETECTION,
    "make cluster CLUSTER=detection-coordinator": DETECTION,
    'make cluster CLUSTER=detection-async DATA=mine ARGS="--logtostderr --train_dir=ssd '
    '--pipeline_config_path=pipeline.config"': (
        f"{E2E}/test_detection_classic.py::test_the_classic_command_line_trains_to_its_train_directory"
    ),
    "make cluster CLUSTER=detection-sync": DETECTION,
    'make cluster CLUSTER=mobilenet DATA="$HOME/images"': (
        f"{DOCS}::test_mobilenet_trains_on_folders_of_images"
    ),
    'make cluster CLUSTER=linear-regression DATA=measurements ARGS="--csv points.csv '
    '--tolerance 0.1"': (
        f"{E2E}/test_linear_regression.py::test_two_workers_find_the_line_of_a_csv_file"
    ),
    "make cluster CLUSTER=my-cluster": STARTER,
    "make cluster CLUSTER=smoke ARGS=--help": f"{DOCS}::test_a_program_lists_its_arguments",
    "make cluster KEEP=1": KEPT,
    "make status": KEPT,
    "cluster-kit tensorboard": TWICE,
    "cluster-kit profile quickstart --seconds 2": PROFILED,
    "cluster-kit tensorboard quickstart all-reduce": TWICE,
    "cluster-kit serve quickstart": DAILY,
    "cluster-kit serve quickstart --allow-control": DAILY,
    "cluster-kit up quickstart --serve": DAILY,
    "cluster-kit report": TWICE,
    "cluster-kit metrics quickstart": TWICE,
    "cluster-kit metrics --dashboard > cluster-kit.json": (
        "tests/unit/metrics/test_dashboard.py::test_the_dashboard_is_printed"
    ),
    "cluster-kit serve --token-file token --port 9412": (
        "tests/prometheus/test_scrape.py::"
        "test_a_prometheus_scrapes_a_run_from_its_middle_to_its_end"
    ),
    "cluster-kit metrics quickstart smoke --output textfiles/cluster-kit.prom": (
        "tests/unit/cli/test_metrics.py::test_a_file_for_node_exporter"
    ),
    "cluster-kit runs": TWICE,
    "cluster-kit runs diff quickstart smoke": TWICE,
    "cluster-kit runs prune --keep 10": TWICE,
    "cluster-kit bug-report quickstart": TWICE,
    "cluster-kit report quickstart smoke -o two.html": TWICE,
    "make down": KEPT,
    "make cluster NAME=second": (
        f"{SIDE_BY_SIDE}::test_one_manifest_runs_twice_at_once_under_two_names"
    ),
    'make cluster N_WORKERS=4 ARGS="--epochs 3"': (
        f"{OWN}::test_flags_instead_of_tf_config_give_each_task_its_role"
    ),
    'make cluster RESUME=1 ARGS="--epochs 12"': STARTER,
    'make cluster SET="retries=5 deadline.job=2h"': (
        f"{OWN}::test_a_program_that_never_ends_exceeds_the_job_deadline"
    ),
    "make cluster PROGRAM=path/to/train.py": LOOP,
    'make cluster PROGRAM=path/to/train.py ARGS="--batch 64"': LOOP,
    "make cluster PROGRAM=path/to/train.py STYLE=all-tasks N_CHIEF=0 N_PS=0": STARTER,
    'make cluster PROGRAM=path/to/train.py STYLE=all-tasks SET="ps_runs=program"': (
        f"{OWN}::test_a_tutorials_keras_fit_runs_on_every_task_and_ends"
    ),
    f'make cluster PROGRAM=path/to/old.py TF1=1 N_CHIEF=0 N_PS=1 ARGS="{FLAGS}"': TF1,
    f'make cluster PROGRAM=path/to/old.py STYLE=all-tasks N_CHIEF=0 N_PS=1 ARGS="{FLAGS}"': (
        f"{OWN}::test_flags_instead_of_tf_config_give_each_task_its_role"
    ),
    "make cluster PROGRAM=path/to/train.py REQUIREMENTS=path/to/requirements.txt": (
        f"{E2E}/test_requirements.py::test_a_programs_own_requirements_are_installed_once"
    ),
    "make drill": f"{E2E}/test_matrix.py::test_a_role_survives_several_faults_in_one_run",
    'make drill ROLE="leader ps" FAULT=freeze': (
        "tests/unit/drill/test_matrix_command.py::test_cells_can_be_chosen"
    ),
    "make drill CLUSTER=quickstart": (
        f"{E2E}/test_drill.py::test_faults_are_injected_survived_and_measured"
    ),
    "make drill CLUSTER=quickstart FAULTS=2 SEED=7": (
        "tests/unit/drill/test_command.py::test_a_seed_repeats_a_random_drill"
    ),
    "cluster-kit ps": DAILY,
    "cluster-kit exec chief-0 -- "
    """python3 -c "import os; print(os.environ['TF_CONFIG'])\"""": DAILY,
    "cluster-kit shell worker-0": DAILY,
    "cluster-kit restart worker-0": DAILY,
    "cluster-kit stop": DAILY,
    "cluster-kit start": DAILY,
    "cluster-kit up smoke --exit-code program": DAILY,
    "cluster-kit up --program path/to/train.py --watch": DAILY,
    "cluster-kit up --program path/to/train.py --debug chief-0": DAILY,
    "make wheel": WHEEL,
    "pip install dist/cluster_kit-*.whl": WHEEL,
    "uv tool install dist/cluster_kit-*.whl": TOOL,
    "pipx run --spec dist/cluster_kit-*.whl cluster-kit --version": PIPX,
    "cluster-kit --version": WHEEL,
    "cluster-kit up smoke": WHEEL,
    "make test": "tests/docs/test_commands.py::test_a_command_is_run_by_a_test",
    "cluster-kit up mine.toml": ("tests/docs/test_generate.py::test_no_page_is_stale"),
    "cluster-kit up quickstart --detach": LEFT,
    "cluster-kit wait quickstart": LEFT,
    "cluster-kit doctor": f"{OWN}::test_doctor_reads_the_program_of_a_manifest",
    "cluster-kit gpus": (
        "tests/gpu/test_probe.py::test_gpus_and_doctor_show_how_gpus_are_provided"
    ),
    "cluster-kit image sbom": CONTENTS,
    "cluster-kit image sbom --licences": (
        "tests/unit/image/test_contents.py::test_the_verb_prints_both_forms"
    ),
    "cluster-kit image check": CHECKED,
    "cd portable/smoke": PORTABLE,
    "cd compose/smoke": f"{PLAIN}::test_docker_compose_up_ends_with_exit_code_0_of_every_task",
    "docker compose up": f"{PLAIN}::test_docker_compose_up_ends_with_exit_code_0_of_every_task",
    "docker compose down": f"{PLAIN}::test_docker_compose_up_ends_with_exit_code_0_of_every_task",
    "docker wait smoke-chief-0": f"{PLAIN}::test_the_chiefs_exit_code",
}
BY_THE_PAGE = {"docs/detection.md": CONVERT}
"""Pages whose blocks a test runs as they are written."""
