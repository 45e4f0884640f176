# Given to an interactive bash as PROMPT_COMMAND: reads the kernel's source from descriptor 3 and becomes it.
set +m +H +o history
unset PROMPT_COMMAND
__glovebox_head=
while IFS= LC_ALL=C read -r -N 1 -u 3 __glovebox_byte && [[ $__glovebox_byte != $'\n' ]]; do __glovebox_head+=$__glovebox_byte; done
[[ $__glovebox_head == 'load - '+([0-9]) ]] || exit 65
IFS= LC_ALL=C read -r -N "${__glovebox_head##* }" -u 3 __glovebox_code || exit 65
eval "$__glovebox_code"
