#!/bin/bash
# cluster-kit 0.2.0 wrote this from compose/slurm.toml. Do not edit:
# change the manifest, then run `cluster-kit render slurm`.
# plan dd0b31a58ba7
# Submit it: `sbatch compose/slurm/sbatch.sh`, in the directory that has compose/.
# Watch it:  `squeue --me`, `tail -F cluster-kit-slurm-*.log`;
#            each task's log is /shared/runs/slurm/latest/logs/TASK.log.
# Cancel it: `scancel --name=cluster-kit-slurm`. Its leader's end decides the job.
# Its image: docker save -o trainer.tar cluster-kit/trainer:gpu-0123456789ab
#            apptainer build /shared/trainer.sif docker-archive://trainer.tar
# made of: manifest c476a266, kit c9f7fc49, host user=1000:1000 subnet=free folder=9e935f5f gpus=none
# content 0d651474a973
#
#SBATCH --job-name=cluster-kit-slurm
#SBATCH --output=cluster-kit-slurm-%j.log
#SBATCH --signal=B:TERM@60
#SBATCH --no-requeue
#SBATCH --account=physics
#SBATCH --time=74
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=1
#SBATCH --partition=gpu
#SBATCH --constraint=a100
#SBATCH hetjob
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=3
#SBATCH --mem-per-cpu=2048M
#SBATCH --gpus-per-task=2
#SBATCH --partition=gpu
#SBATCH --constraint=a100
# shellcheck disable=SC2016,SC2034  # texts of the manifest stay as they are; not all tell lists

set -u

name=slurm
tasks=(chief-0 worker-{0..2} ps-{0..1} evaluator-0)
count=7
leader=chief-0
evaluators=(evaluator-0)
restarts=3
first_port=20000
grace_s=130 failed_grace_s=12 stop_s=10
output=/shared/runs
image=/shared/trainer.sif
declare -A address listed
hosts='' beacon=''

check() { # before anything is started: whether all is there that the tasks need
  [[ -r $image ]] || refuse 3 "the image $image cannot be read" 'build it, as the first lines of this script say, or fix [slurm] image'
  [[ -n ${WANDB_API_KEY+set} ]] || refuse 3 'WANDB_API_KEY is not set, which tasks are to have' 'export it before sbatch'
}

place_all() { # writes down which task runs where
  place 0 "$SLURM_JOB_NODELIST_HET_GROUP_0" "$SLURM_TASKS_PER_NODE_HET_GROUP_0" chief-0 ps-{0..1} evaluator-0
  place 1 "$SLURM_JOB_NODELIST_HET_GROUP_1" "$SLURM_TASKS_PER_NODE_HET_GROUP_1" worker-{0..2}
}

start_all() { # a step for each part of the job
  step 0 --het-group=0 --ntasks=4 --cpus-per-task=1
  step 1 --het-group=1 --ntasks=3 --cpus-per-task=3 --mem-per-cpu=2048M --gpus-per-task=2
}

write_cluster() { # TF_CONFIG's cluster, which every task reads
  printf '{"cluster": {"chief": %s, "worker": %s, "ps": %s}, "variables": {}}\n' "$(json_list chief-0)" "$(json_list worker-{0..2})" "$(json_list ps-{0..1})"
}

give() { # sets a variable of a task's program
  given+=("APPTAINERENV_$1=$2")
}

variables() { # what a task is told
  local task=$1 run=$2
  give CLUSTER_KIT_BEACON "$beacon"
  give CLUSTER_KIT_DATA /data
  give CLUSTER_KIT_EVALUATOR_GRACE_S 120
  give CLUSTER_KIT_GPU_CHECK on
  give CLUSTER_KIT_JOB_DEADLINE_S 3600
  give CLUSTER_KIT_LEADER chief-0
  give CLUSTER_KIT_RETRIES 3
  give CLUSTER_KIT_SERVER native
  give CLUSTER_KIT_SERVERS ps-0,ps-1
  give CLUSTER_KIT_SHARED /output/cluster.json
  give CLUSTER_KIT_SILENT_S 10
  give CLUSTER_KIT_STALL_S auto
  give CLUSTER_KIT_START_DEADLINE_S 120
  give NO_PROXY localhost,127.0.0.1,"$hosts"
  give no_proxy localhost,127.0.0.1,"$hosts"
  give CLUSTER_KIT_TASK "$task"
  case $task in
    chief-* | ps-*)
      give CUDA_VISIBLE_DEVICES -1
      ;;
    worker-*)
      give CLUSTER_KIT_GPUS '[{"name": "GPU 1 of 2 of its node", "pci": "", "uuid": ""}, {"name": "GPU 2 of 2 of its node", "pci": "", "uuid": ""}]'
      give PRICE '$5 or $(HOME)'
      ;;
    evaluator-*)
      give CLUSTER_KIT_SERVERS ''
      give CUDA_VISIBLE_DEVICES -1
      give TF_CONFIG '{"cluster": {"evaluator": ["'"${address[$task]}"'"]}, "task": {"type": "evaluator", "index": 0}}'
      ;;
  esac
  case $task in
    worker-0 | worker-2)
      give SWITCH on
      ;;
    worker-1)
      give SWITCH off
      ;;
  esac
}

arguments() { # what a task runs
  local task=$1 run=$2 index=${1##*-}
  case $task in
    chief-* | evaluator-*) command=(run /program/train.py '--price=$5' --rank=0 --ps="${listed[ps]}" --log=/output/log) ;;
    worker-*) command=(run /program/train.py '--price=$5' --rank="$index" --ps="${listed[ps]}" --log=/output/log) ;;
    ps-*) command=(serve) ;;
  esac
}

start() { # becomes a task's program
  local task=$1 run=$2 command given=() binds=()
  set +u
  module load apptainer
  set -u
  export APPTAINERENV_WANDB_API_KEY="$WANDB_API_KEY"
  give CUDA_VISIBLE_DEVICES "${CUDA_VISIBLE_DEVICES:-}"
  variables "$task" "$run"
  own_beacon "$task"
  arguments "$task" "$run"
  case $task in
    chief-* | worker-* | ps-* | evaluator-*) binds=(--bind /home/you/project:/program:ro --bind /home/you/images:/data:ro) ;;
  esac
  cd "$TMPDIR" || exit 4
  exec env "${given[@]}" apptainer exec --cleanenv --contain --no-home --workdir "$TMPDIR" --pwd /tmp --nv --bind "$run/output":/output "${binds[@]}" "$image" python3 -m trainer "${command[@]}"
}

judge() { # the verdict on the run, by the Python of its tasks
  set +u
  module load apptainer
  set -u
  apptainer exec --cleanenv --contain --no-home --pwd / --bind "$run":/output "$image" python3 -m trainer verdict /output "$@"
}

# What follows is the same in every such script: first, a task in a step of the job.

happened() { # $1: task, $2: start or die, $3: exit code: a line for the report
  printf '{"time": %s, "task": "%s", "action": "%s", "exit_code": %s}\n' \
    "$(date +%s.%6N)" "$1" "$2" "${3:-null}" >> "$run/events/$1.jsonl"
}

own_beacon() { # $1: task: a leader whose node calls itself 127.0.1.1, as on Debian, hears others, too
  if [[ $1 == "$leader" && $(getent hosts "${beacon%:*}") == 127.* ]]; then
    give CLUSTER_KIT_BEACON "0.0.0.0:${beacon##*:}"
  fi
}

stamped() { # $1: task, $2: whether its lines are printed as well: puts lines and times into its log
  local line now micro TZ=UTC0
  trap '' TERM INT # what the task says at its end belongs into it, too
  while IFS= read -r line || [[ -n $line ]]; do
    printf -v now '%(%Y-%m-%dT%H:%M:%S)T' -1
    micro=${EPOCHREALTIME:-.000000} # which bash has from 5.0 on
    printf '%s.%sZ %s\n' "$now" "${micro: -6}" "$line" >&4
    if [[ -n $2 ]]; then printf '%s | %s\n' "$1" "$line"; fi
  done 4>> "$run/logs/$1.log"
}

run_task() { # in a step of the job, $2 of run $1: the task of this place, again if it crashes
  run=$1
  local part=$2 mine at host task again=$restarts printed='' stopping='' child='' code log
  read_places "$run"
  mapfile -t mine < <(
    while read -r task at host _; do
      if [[ "$at $host" == "$part $SLURMD_NODENAME" ]]; then echo "$task"; fi
    done < "$run/places"
  )
  task=${mine[SLURM_LOCALID]:-}
  [[ -n $task ]] || refuse 4 "no task is planned for place $SLURM_LOCALID of $SLURMD_NODENAME" \
    'take options out of [slurm] that lay out tasks'
  if [[ $task == "$leader" ]]; then again=0; fi
  for at in "$leader" "${evaluators[@]}"; do
    if [[ $task == "$at" ]]; then printed=1; fi
  done
  exec 3> >(stamped "$task" "$printed")
  log=$!
  TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/cluster-kit-XXXXXX") || exit 4
  export TMPDIR
  trap 'stopping=1; if [[ -n $child ]]; then kill -TERM "$child" 2> /dev/null; fi' TERM INT
  while :; do
    happened "$task" start
    start "$task" "$run" < /dev/null >&3 2>&1 3>&- &
    child=$!
    while :; do
      wait "$child"
      code=$?
      kill -0 "$child" 2> /dev/null || break
    done
    happened "$task" die "$code"
    if ((code == 0 || again == 0)) || [[ -n $stopping || -e $run/ended/$leader ]]; then break; fi
    echo "$task ended with exit code $code and is started again; it may fail $again times more" >&3
    again=$((again - 1))
    sleep 1
  done
  exec 3>&-
  wait "$log"
  rm -rf "$TMPDIR"
  echo "$code" > "$run/ended/.$task"
  mv "$run/ended/.$task" "$run/ended/$task"
  exit "$code"
}

# The job: its places, its steps, and how it ended.

refuse() { # $1: exit code, $2: what is wrong, $3: what to do
  printf 'error: %s\n  -> %s\n' "$2" "$3" >&2
  exit "$1"
}

slots() { # how many tasks each node takes, a line for each, from Slurm's `2(x3),1`
  local part count times
  for part in ${1//,/ }; do
    count=${part%%(*} times=1
    if [[ $part == *x* ]]; then times=${part##*x} times=${times%)}; fi
    while ((times-- > 0)); do echo "$count"; done
  done
}

place() { # $1: part of the job, $2: its nodes, $3: their slots, then its tasks: one for each in turn
  local part=$1 nodes free task at=0 tried
  mapfile -t nodes < <(scontrol show hostnames "$2")
  mapfile -t free < <(slots "$3")
  shift 3
  for task; do
    tried=0
    until ((${free[at]:-0} > 0)); do
      [[ -n ${nodes[tried++]:-} ]] || refuse 4 "there is no place for $task on ${nodes[*]}" \
        'take options out of [slurm] that lay out tasks: the job asks for as many as it needs'
      at=$((at + 1))
      [[ -n ${nodes[at]:-} ]] || at=0
    done
    free[at]=$((free[at] - 1))
    printf '%s %s %s %s\n' "$task" "$part" "${nodes[at]}" "$port"
    port=$((port + 1))
    if [[ $task == "$leader" ]]; then port=$((port + 1)); fi # its beacon's
    at=$((at + 1))
    [[ -n ${nodes[at]:-} ]] || at=0
  done
}

read_places() { # the addresses of all tasks; $1: the run
  local task host port role seen=,
  while read -r task _ host port; do
    role=${task%-*} address[$task]=$host:$port
    listed[$role]=${listed[$role]:+${listed[$role]},}$host:$port
    if [[ $task == "$leader" ]]; then beacon=$host:$((port + 1)); fi
    if [[ $seen != *",$host,"* ]]; then seen+=$host,; fi
  done < "$1/places"
  hosts=${seen#,} hosts=${hosts%,}
}

json_list() { # the addresses of these tasks as JSON
  local task list=''
  for task; do list+=", \"${address[$task]}\""; done
  printf '[%s]' "${list#, }"
}

new_run() { # makes the run's folder, sets `run`, and points `latest` at it
  local folder=$output/$name stem again=1
  printf -v stem '%(%Y%m%d-%H%M%S)T' -1
  mkdir -p "$folder" || refuse 3 "the output $folder cannot be made" \
    'name a folder that all nodes share and you may write: [slurm] output'
  run=$folder/$stem
  until mkdir "$run" 2> /dev/null; do
    ((++again < 1000)) || refuse 3 "no run can be made in $folder" 'look at its owner and its disk'
    run=$folder/$stem-$again
  done
  mkdir -p "$run/output/progress" "$run/logs" "$run/events" "$run/ended"
  ln -sfn "${run##*/}" "$folder/latest"
  cp "$0" "$run/sbatch.sh"
}

write_record() { # what was started, if this is submitted where it was rendered; $1: now
  [[ -r compose/$name/sbatch.json ]] || return 0
  {
    printf '{"id": "slurm-%s", "since": %s, ' "$SLURM_JOB_ID" "$1"
    printf '"began": {"unix": %s, "ticks": 0, "boot": ""}, ' "$1"
    printf '"timings_s": {}, "sizes": {}, "cluster": %s}\n' "$(< "compose/$name/sbatch.json")"
  } > "$run/run.json"
}

new_secret() { # by which tasks know each other; Apptainer hands on what begins so
  CLUSTER_KIT_BEACON_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  APPTAINERENV_CLUSTER_KIT_BEACON_SECRET=$CLUSTER_KIT_BEACON_SECRET
  export CLUSTER_KIT_BEACON_SECRET APPTAINERENV_CLUSTER_KIT_BEACON_SECRET
}

step() { # $1: a part of the job, then options: starts its tasks where they were placed
  local part=$1
  shift
  awk -v part="$part" '$2 == part {print $3}' "$run/places" > "$run/.hosts-$part"
  SLURM_HOSTFILE=$run/.hosts-$part srun "$@" --distribution=arbitrary --kill-on-bad-exit=0 \
    --wait=0 --mpi=none bash "$run/sbatch.sh" task "$run" "$part" < /dev/null &
  steps+=("$!")
}

finish() { # waits for the steps; those that hang get their grace, SIGTERM, and SIGKILL
  local until=0 told='' alive pid
  while :; do
    alive=()
    for pid in "${steps[@]}"; do
      if kill -0 "$pid" 2> /dev/null; then alive+=("$pid"); fi
    done
    [[ -n ${alive[*]} ]] || return 0
    if ((until == 0)); then
      if [[ -n $stopped ]]; then
        until=1
      elif [[ -e $run/ended/$leader ]]; then
        until=$((SECONDS + grace_s))
        [[ $(< "$run/ended/$leader") == 0 ]] || until=$((SECONDS + failed_grace_s))
      fi
    elif ((SECONDS >= until)); then
      if [[ -z $told ]]; then scancel --signal=TERM "$SLURM_JOB_ID"; else kill "${alive[@]}"; fi
      told=1 until=$((SECONDS + stop_s)) # srun kills its step if it is ended itself
    fi
    sleep 1 &
    wait "$!"
  done
}

verdict() { # writes the outcome, which `cluster-kit report` and `runs` read; returns the kit's code
  local code options=() evaluator
  for evaluator in "${evaluators[@]}"; do options+=(--evaluator "$evaluator"); done
  if [[ -n $stopped ]]; then options+=(--stopped); fi
  cat "$run"/events/*.jsonl > "$run/events.jsonl" 2> /dev/null
  (
    trap '' TERM INT # the outcome is written even if the job is being ended
    judge --shown "$run" --cluster "$name" --id "slurm-$SLURM_JOB_ID" --leader "$leader" \
      --seconds "$SECONDS" "${options[@]}"
  )
  code=$?
  [[ -e $run/outcome.json ]] || refuse 4 "how the run ended could not be judged (exit code $code)" \
    'see the lines above; a trainer older than this script cannot judge: bring it up to date'
  return "$code"
}

main() { # the job: on the first of its nodes
  local stopped='' steps=() run
  [[ -n ${SLURM_JOB_ID:-} ]] || refuse 2 'this script runs as a job of Slurm' \
    "submit it: sbatch compose/$name/sbatch.sh"
  [[ $output == /* ]] || output=$PWD/$output
  check
  local port=${first_port:-$((10000 + SLURM_JOB_ID * (count + 1) % (22000 - count)))}
  new_run
  place_all > "$run/places" || exit
  read_places "$run"
  write_cluster > "$run/output/cluster.json"
  write_record "$(date +%s.%3N)"
  new_secret
  echo "$name: $count tasks on $hosts; everything is in $run"
  trap 'stopped=1' TERM INT
  start_all
  finish
  verdict
}

if [[ ${1:-} == task ]]; then run_task "$2" "$3"; else main; fi
