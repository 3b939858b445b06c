#!/bin/sh
# Prolog and Epilog of slurm.conf, as far as profd's metrics are concerned: writes which job has which NPU
# into the folder that profd.toml names, and takes it out again.
#
#   [attribution]
#   job_map_dir = "/run/profd-jobs"
#
# Call it from the Prolog as `profd-job-map.sh begin`, from the Epilog as `profd-job-map.sh end`. Slurm
# drains a node whose Prolog fails: this one never does.
JOB_MAP_DIR=${JOB_MAP_DIR:-/run/profd-jobs}
DEVICES=${DEVICES:-/dev}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

[ -n "$SLURM_JOB_ID" ] || exit 0

# The job's NPUs by their physical numbers: Slurm gives those of a gres named gpu. Without that word the
# job has the whole node.
npus() {
  if [ -n "$SLURM_JOB_GPUS" ]; then
    echo "$SLURM_JOB_GPUS" | tr ',' ' '
  else
    for device in "$DEVICES"/davinci[0-9]*; do
      [ -e "$device" ] && echo "${device##*/davinci}"
    done
  fi
}

# One job of the node at a time; a reader sees the old file or the new one, never half of one.
(
  flock -w 10 9 || exit 0
  case $1 in
    begin)
      for npu in $(npus); do
        { grep -vsxF "$SLURM_JOB_ID" "$JOB_MAP_DIR/$npu"; echo "$SLURM_JOB_ID"; } \
          > "$JOB_MAP_DIR/.$npu.new" && mv "$JOB_MAP_DIR/.$npu.new" "$JOB_MAP_DIR/$npu"
      done
      ;;
    end)
      for file in "$JOB_MAP_DIR"/[0-9]*; do
        grep -qsxF "$SLURM_JOB_ID" "$file" || continue
        npu=${file##*/}
        grep -vsxF "$SLURM_JOB_ID" "$file" > "$JOB_MAP_DIR/.$npu.new"
        if [ -s "$JOB_MAP_DIR/.$npu.new" ]; then
          mv "$JOB_MAP_DIR/.$npu.new" "$file"
        else
          rm -f "$JOB_MAP_DIR/.$npu.new" "$file"
        fi
      done
      ;;
  esac
) 9> "$(mkdir -p "$JOB_MAP_DIR" && echo "$JOB_MAP_DIR/.lock")" 2>/dev/null
exit 0
