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
