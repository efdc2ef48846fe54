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
