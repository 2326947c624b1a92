/**
 * What a shell runs to ask for completions. Each script calls `rlcli __complete -- WORDS…`, which answers with a line `VALUE<tab>ABOUT` for each
 * candidate and a last line `:file`, `:folder`, `:open` (the word goes on: no space after it) or `:done`.
 */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** How to switch it on, for people. */
export const INSTALL: Readonly<Record<Shell, string>> = {
  bash: 'eval "$(rlcli completion bash)"   # in ~/.bashrc',
  zsh: 'eval "$(rlcli completion zsh)"   # in ~/.zshrc, after compinit',
  fish: "rlcli completion fish > ~/.config/fish/completions/rlcli.fish",
};

/** `program` is what is run where no `rlcli` is on PATH: a shell command, quoted. */
export function completionScript(shell: Shell, program: string): string {
  return SCRIPTS[shell].replaceAll("@PROGRAM@", program);
}

const SCRIPTS: Readonly<Record<Shell, string>> = {
  // Bash breaks words at = : @ and completes from the last of these on; candidates are given without what is before it.
  bash: `# rlcli completion for bash: ${INSTALL.bash}
__rlcli_ask() {
  if type -P rlcli >/dev/null; then command rlcli __complete -- "$@"; else @PROGRAM@ __complete -- "$@"; fi 2>/dev/null
}
_rlcli() {
  local line="\${COMP_LINE:0:COMP_POINT}" word="" kept="" answer directive value
  local -a words=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word="\${words[\${#words[@]}-1]}"
  local breaks="\${COMP_WORDBREAKS//[^=:@]/}" at
  for ((at = 0; at < \${#word}; at++)); do
    [[ -n $breaks && $breaks == *"\${word:at:1}"* ]] && kept="\${word:0:at+1}"
  done
  COMPREPLY=()
  while IFS= read -r answer; do
    if [[ $answer == :* ]]; then directive="\${answer#:}"; continue; fi
    value="\${answer%%$'\\t'*}"
    COMPREPLY+=("\${value#"$kept"}")
  done < <(__rlcli_ask "\${words[@]:1}")
  local rest="\${word#*=}"
  [[ $word == --*=* ]] || rest="$word"
  case $directive in
    file) compopt -o filenames; while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$rest") ;;
    folder) compopt -o filenames; while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -d -- "$rest") ;;
    open) compopt -o nospace ;;
  esac
}
complete -F _rlcli rlcli
`,
  zsh: `#compdef rlcli
# rlcli completion for zsh: ${INSTALL.zsh}
__rlcli_ask() {
  if whence -p rlcli >/dev/null; then command rlcli __complete -- "$@"; else @PROGRAM@ __complete -- "$@"; fi 2>/dev/null
}
_rlcli() {
  local answer directive value about prefix=""
  local -a shown values
  [[ $PREFIX == --*=* ]] && prefix="\${PREFIX%%=*}="
  for answer in "\${(@f)$(__rlcli_ask "\${(@)words[2,CURRENT]}")}"; do
    if [[ $answer == :* ]]; then directive="\${answer#:}"; continue; fi
    value="\${answer%%$'\\t'*}"
    about="\${answer#*$'\\t'}"
    value="\${value#"$prefix"}"
    values+=("$value")
    shown+=("\${value//:/\\\\:}:$about")
  done
  [[ -n $prefix ]] && compset -P '*='
  case $directive in
    file) _files ;;
    folder) _files -/ ;;
    open) (( $#values )) && _describe -t values 'rlcli' shown -S '' ;;
    *) (( $#values )) && _describe -t values 'rlcli' shown ;;
  esac
}
# Sourced, it registers itself; found on fpath, it is the function's body.
if [[ \${funcstack[1]} == _rlcli ]]; then _rlcli "$@"; else compdef _rlcli rlcli; fi
`,
  fish: `# rlcli completion for fish: ${INSTALL.fish}
function __rlcli_ask
    if type -fq rlcli
        command rlcli __complete -- $argv 2>/dev/null
    else
        @PROGRAM@ __complete -- $argv 2>/dev/null
    end
end
function __rlcli_complete
    set -l words (commandline -opc) (commandline -ct)
    for answer in (__rlcli_ask $words[2..-1])
        switch $answer
            case ':file' ':folder'
                __fish_complete_path (string replace -r -- '^--[^=]*=' '' (commandline -ct))
            case ':*'
            case '*'
                echo $answer
        end
    end
end
complete -c rlcli -f -a '(__rlcli_complete)'
`,
};
