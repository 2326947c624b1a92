/** Shell scripts that run inside sandboxes. Only bash and `cat` are taken for granted. */

/** What bash is called with: the script itself is in the environment, so that a list of processes stays readable. */
export const BOOT = 'eval "$RLCLI_SCRIPT"';

/**
 * The container's own process: waits $1 seconds, without a child, and deaf to all but SIGKILL, so that an agent's `pkill sleep` or
 * `kill -TERM -1` does not end the container. One line, since it stands in every list of processes.
 */
export const LIVE_SCRIPT =
  "trap '' TERM INT HUP QUIT USR1 USR2; exec 3<> <(:); until ((SECONDS >= $1)); do read -rt $(($1 - SECONDS)) -u 3; done";

/**
 * Runs RLCLI_COMMAND in RLCLI_CWD, with its streams through readers that outlive it. A server that the command leaves behind thus
 * keeps a place to write to; the end of the command is told by a mark (RLCLI_MARK) behind all that it wrote, not by the streams'
 * end, which such a server delays. Behind the mark stand the exit code and how many processes of the container the kernel has killed for
 * want of memory (of cgroup v2, or v1; 0 where neither is to be seen).
 */
export const RUN_SCRIPT = `
cwd=$RLCLI_CWD mark=$RLCLI_MARK command=$RLCLI_COMMAND
unset RLCLI_CWD RLCLI_MARK RLCLI_COMMAND RLCLI_SCRIPT
cd -- "$cwd" 2>/dev/null || { cd /; printf 'The working directory %s is not there; the command runs in /.\n' "$cwd" >&2; }
exec 3> >(trap '' PIPE INT TERM HUP; cat; exec cat >/dev/null) 4> >(trap '' PIPE INT TERM HUP; cat >&2; exec cat >/dev/null)
bash -c "$command" >&3 2>&4 3>&- 4>&- </dev/null
status=$? kills=0
for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  while read -r key n; do [ "$key" = oom_kill ] && kills=$n; done < "$f"
done 2>/dev/null
printf '%s%d %d\n' "$mark" "$status" "$kills" >&3
printf '%s%d %d\n' "$mark" "$status" "$kills" >&4
`;

/** The same for a command that is too long for an argument: RLCLI_COMMAND is a file with it, which is removed. */
export const RUN_FILE_SCRIPT = RUN_SCRIPT.replace('bash -c "$command"', 'bash "$command"').replace(
  "status=$?",
  'status=$?; rm -f -- "$command"',
);

/**
 * Kills all processes of the command $1, which its environment names: those that carry the name, their descendants, and all in
 * sessions that these lead; and orphans that began after it and carry no other command's name. First all are stopped, so that
 * none can start another meanwhile. Prints how many are left. RLCLI_KILL is the name, or `*` for all but the first process.
 */
export const KILL_SCRIPT = `
id=$RLCLI_KILL me=$$ began=
declare -A mine=()
carries() {
  local v
  while IFS= read -r -d '' v; do [[ $v == RLCLI_EXEC=$2 ]] && return 0; done < "/proc/$1/environ"
  return 1
} 2>/dev/null
scan() {
  local d p s found=1
  declare -A parent=() session=() start=()
  for d in /proc/[0-9]*; do
    p=\${d#/proc/}
    { read -r s < "$d/stat"; } 2>/dev/null || continue
    s=\${s##*) }
    set -- $s
    [ "$1" = Z ] || [ "$1" = X ] || [ "$p" = 1 ] || [ "$p" = "$me" ] && continue
    parent[$p]=$2 session[$p]=$4 start[$p]=\${20}
    if carries "$p" "$id"; then
      mine[$p]=1
      if [ -z "$began" ] || [ "\${20}" -lt "$began" ]; then began=\${20}; fi
    fi
  done
  for p in "\${!parent[@]}"; do
    [ -n "$began" ] && [ "\${parent[$p]}" = 1 ] && [ "\${start[$p]}" -ge "$began" ] && ! carries "$p" "*" && mine[$p]=1
  done
  while [ $found = 1 ]; do
    found=0
    for p in "\${!parent[@]}"; do
      [ -n "\${mine[$p]}" ] && continue
      if [ -n "\${mine[\${parent[$p]}]}" ] || { [ "\${session[$p]}" != 0 ] && [ -n "\${mine[\${session[$p]}]}" ]; }; then
        mine[$p]=1 found=1
      fi
    done
  done
  alive=()
  for p in "\${!parent[@]}"; do [ -n "\${mine[$p]}" ] && alive+=("$p"); done
}
for round in 1 2 3 4 5; do
  scan
  [ \${#alive[@]} = 0 ] && break
  kill -STOP "\${alive[@]}" 2>/dev/null
  scan
  kill -KILL "\${alive[@]}" 2>/dev/null
done
scan
echo "\${#alive[@]}"
`;
