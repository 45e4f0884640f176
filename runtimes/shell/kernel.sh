# The kernel of bash: a shell that evaluates what the engine sends, in itself.
#
# It is an interactive shell without a terminal, because only such a shell survives what goes wrong in it: an interrupt, an unset variable under `set -u`, an
# assignment to something read-only all throw it back to its prompt, with everything it knows. Before a prompt comes PROMPT_COMMAND, and that is the kernel's
# loop: it begins anew after each such throw, and tells how the execution ended that was under way. Standard input is /dev/null; IGNOREEOF makes the prompt come again.
#
# Code is evaluated by the loop itself and not by a function, so that `declare` declares for good. What the kernel calls, it calls as `builtin`, and it names
# nothing that an option could change: code may redefine everything and set what it likes. While code is evaluated, 1 and 2 are the engine's and the kernel's own
# descriptors are closed, which bash undoes afterwards, whatever code did to them.

exec 200<&3 201>&1 202>&2 204>&4 3<&- 4>&- 1>/dev/null 2>/dev/null
PS1= PS2= PS4='+ '
set -E +m
shopt -u checkjobs checkwinsize 2>/dev/null

__glovebox_number=0 __glovebox_state=idle __glovebox_status=0 __glovebox_token=- __glovebox_ending= __glovebox_exit=0 __glovebox_mark=0 __glovebox_line=0 __glovebox_first=1 __glovebox_over=no __glovebox_told=
__glovebox_code= __glovebox_head= __glovebox_payload= __glovebox_kind= __glovebox_pid=$BASHPID
__glovebox_undo=()

# Reads LENGTH bytes into __glovebox_payload.
__glovebox_read() {
  __glovebox_payload=
  (($1 == 0)) || LC_ALL=C builtin read -r -N "$1" -u 200 __glovebox_payload
}

# Reads one frame; 1 at the end of them. The head is kept byte by byte: an interrupt in between loses nothing.
__glovebox_frame() {
  builtin local byte
  while [[ x ]]; do
    # An interrupt is no end.
    LC_ALL=C builtin read -r -N 1 -u 200 byte || { (($? > 128)) && builtin continue || builtin return 1; }
    [[ $byte == $'\n' ]] && builtin break
    __glovebox_head+=$byte
  done
  [[ $__glovebox_head =~ ^([a-z]+)\ ([0-9a-f]+|-)\ ([0-9]+)$ ]] || builtin return 1
  __glovebox_head= __glovebox_kind=${BASH_REMATCH[1]} __glovebox_token=${BASH_REMATCH[2]}
  __glovebox_read "${BASH_REMATCH[3]}"
}

__glovebox_send() {
  builtin local LC_ALL=C
  # Noted by the command that says it: an interrupt comes between commands, and nothing is to be said twice, or not at all.
  builtin printf '%s %s %d\n%s%.0s' "$1" "$2" "${#3}" "$3" "${__glovebox_told:=yes}" >&204
}

# Prints the next mark on both streams, and leaves its number in __glovebox_mark.
__glovebox_print_mark() {
  ((__glovebox_mark += 1))
  builtin printf '\x1e%s:%d\x1e' "$__glovebox_token" "$__glovebox_mark" >&201
  builtin printf '\x1e%s:%d\x1e' "$__glovebox_token" "$__glovebox_mark" >&202
}

# A variable for this execution only; how to have it as it was goes to __glovebox_undo.
__glovebox_set() {
  builtin local name="${1%%=*}"
  [[ $name =~ ^[a-zA-Z_][a-zA-Z0-9_]*$ && $name != __glovebox_* ]] || builtin return 0
  if [[ ${!name+set} == set && ${!name@a} == *x* ]]; then
    __glovebox_undo+=("builtin declare -gx $name=${!name@Q}")
  elif [[ ${!name+set} == set ]]; then
    __glovebox_undo+=("builtin declare -g +x $name=${!name@Q}")
  else
    __glovebox_undo+=("builtin unset -v $name")
  fi
  builtin declare -gx "$1" 2>/dev/null
}

__glovebox_text() {
  builtin local text="${1//\\/\\\\}"
  text=${text//\"/\\\"} text=${text//$'\n'/\\n}
  __glovebox_json="\"$text\""
}

__glovebox_error() {
  builtin local __glovebox_json
  __glovebox_text "$1: $2${3:+ (line $3)}"
  builtin printf -v "$4" '{"name":"%s","value":"%s","traceback":%s,"full":%s%s}' "$1" "$2" "$__glovebox_json" "$__glovebox_json" "${3:+,\"line\":$3}"
}

# Tells how the execution ended. Each step is noted, so that it is done once even if an interrupt throws the shell out of here.
__glovebox_report() {
  builtin local error= code="$__glovebox_status" status=error line=
  ((__glovebox_line > 0)) && line=$__glovebox_line
  case $__glovebox_ending in
    exit) status=exit code=$__glovebox_exit ;;
    interrupt) __glovebox_error KeyboardInterrupt 'the execution was interrupted' '' error ;;
    *) if ((code == 0)); then status=ok; else __glovebox_error ExitStatus "exit status $code" "$line" error; fi ;;
  esac
  if [[ $__glovebox_state == ended ]]; then
    builtin local undo
    for undo in "${__glovebox_undo[@]}"; do builtin eval "$undo" 2>/dev/null; done
    __glovebox_undo=()
    __glovebox_print_mark
    __glovebox_state=marked
  fi
  __glovebox_send "done" "$__glovebox_token" "{\"mark\":$__glovebox_mark,\"status\":\"$status\",\"number\":$__glovebox_number,\"code\":$code${error:+,\"error\":$error}}"
  __glovebox_state=idle
}

# Called where the prompt would be: what was under way has ended, as the loop saw it or by being thrown out of it.
__glovebox_settle() {
  # In this mode no function comes before `unset`, and everything else is called by `builtin`.
  if [[ -o posix ]]; then unset -f builtin unset; else
    POSIXLY_CORRECT=1
    unset -f builtin unset
    unset POSIXLY_CORRECT
  fi
  builtin enable builtin read printf eval exec set trap shopt unset declare local kill cd return break enable 2>/dev/null
  builtin local status="$1"
  [[ $__glovebox_told == yes ]] && __glovebox_state=idle
  [[ $__glovebox_state == idle ]] && builtin return 0
  if [[ $__glovebox_state == running ]]; then
    __glovebox_status=$status __glovebox_state=ended
    [[ $__glovebox_ending == '' ]] && ((status == 130)) && __glovebox_ending=interrupt
  fi
  __glovebox_report
}

# Makes one command of the code, so that what throws the shell out of it throws it out of all of it.
# Not where it sets aliases, which take effect with the next command that is read; nor where it is no command, which bash says best of the code as it is.
__glovebox_wrap() {
  __glovebox_code="{ __glovebox_start \"\$LINENO\"; } 2>/dev/null; $__glovebox_payload"
  [[ $__glovebox_payload =~ \$\{?(\?|PIPESTATUS) ]] && __glovebox_code="{ __glovebox_start \"\$LINENO\"; __glovebox_past; } 2>/dev/null; $__glovebox_payload"
  if [[ ! $__glovebox_payload =~ (^|[[:space:]\;\&])(un)?alias[[:space:]] ]] && builtin eval "__glovebox_try() { $__glovebox_code"$'\n}'; then
    __glovebox_code="{ $__glovebox_code"$'\n}'
  fi
  builtin unset -f __glovebox_try
  __glovebox_payload=
}

# Waits for the next execution and makes everything ready for it; 1 when there will be none.
__glovebox_next() {
  # A `continue` of the code's leads here.
  __glovebox_settle 0
  # As before a prompt: jobs that have ended make room for others, so that %1 is what one expects.
  builtin jobs >/dev/null
  while __glovebox_frame; do
    case $__glovebox_kind in
      cwd) builtin cd -- "$__glovebox_payload" ;;
      env) __glovebox_set "$__glovebox_payload" ;;
      execute) builtin break ;;
      load | option | input | eof) ;;
      *) builtin break ;;
    esac
  done
  [[ $__glovebox_kind == execute ]] || { __glovebox_over=yes && builtin return 1; }
  __glovebox_kind=
  ((__glovebox_number += 1))
  __glovebox_wrap
  __glovebox_mark=-1 __glovebox_ending= __glovebox_exit=0 __glovebox_line=0 __glovebox_told=
  builtin trap '__glovebox_failed "$LINENO"' ERR
  # Running from here on: whoever has seen the mark may interrupt.
  PROMPT_COMMAND=$__glovebox_loop IGNOREEOF=1000000 __glovebox_state=running
  __glovebox_print_mark
}

# What bash calls the line on which code begins.
__glovebox_start() {
  __glovebox_first=$1
}

# What $? is for code that asks for it at once: that of the code before, as at a prompt.
__glovebox_past() {
  [[ -o errexit ]] || builtin return "$__glovebox_status"
}

# Where something of the code's failed, and not the evaluation as a whole; under `set -e` that is the end of the execution, and not of the shell.
__glovebox_failed() {
  builtin local status="$?"
  [[ $BASHPID == "$__glovebox_pid" && $__glovebox_state == running && $BASH_COMMAND != *__glovebox_* ]] || builtin return "$status"
  __glovebox_line=$(($1 - __glovebox_first + 1))
  if [[ -o errexit ]]; then
    __glovebox_ending=failed
    ((status == 130)) && __glovebox_ending=interrupt
    __glovebox_throw "$status"
  fi
  builtin return "$status"
}

# Back to the prompt, as an interrupt goes there.
__glovebox_throw() {
  __glovebox_state=ended __glovebox_status=$1
  builtin trap - INT
  builtin kill -INT "$__glovebox_pid"
}

# `exit` ends the execution; in a subshell it is what it always was.
exit() {
  builtin local status="$?"
  [[ $BASHPID == "$__glovebox_pid" && $__glovebox_state == running ]] || builtin exit "${1-$status}"
  __glovebox_exit=$((${1-$status} & 255)) __glovebox_ending=exit
  builtin local last
  last=$(builtin trap -p EXIT)
  if [[ $last != *__glovebox_last* && $last != '' ]]; then
    builtin trap __glovebox_last EXIT
    builtin eval "builtin set $last"
    builtin eval "$3"
  fi
  __glovebox_throw "$__glovebox_exit"
}

# The shell ends in spite of everything, as after `builtin exit`: at least it is told how.
__glovebox_last() {
  builtin local status="$?"
  [[ $BASHPID == "$__glovebox_pid" && $__glovebox_state == running ]] || builtin return 0
  __glovebox_exit=$status __glovebox_ending=exit __glovebox_state=ended
  __glovebox_report
}

builtin trap __glovebox_last EXIT
# On one line, which is therefore the first of the code too. After its end, where a `break` of the code's leads, comes the prompt, and so it again.
__glovebox_loop='__glovebox_settle "$?" || builtin :; while __glovebox_next; do '
__glovebox_loop+='builtin eval "$__glovebox_code" 0</dev/null 1>&201 2>&202 200<&- 201>&- 202>&- 204>&-; __glovebox_settle "$?" || builtin :; done; '
__glovebox_loop+='[[ $__glovebox_over == yes ]] && builtin exit 0; __glovebox_settle 0 || builtin :'
builtin readonly -f __glovebox_{read,frame,send,print_mark,set,text,error,report,settle,wrap,next,start,past,failed,throw,last}
builtin readonly __glovebox_loop __glovebox_pid
__glovebox_send ready - "{\"language\":\"bash\",\"version\":\"${BASH_VERSION%%(*}\"}"
PROMPT_COMMAND=$__glovebox_loop IGNOREEOF=1000000
